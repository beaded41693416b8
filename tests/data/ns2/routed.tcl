# TCP and CBR over three radio hops, with each routing agent: ns routed.tcl DSR, ns routed.tcl AODV
set routing [lindex $argv 0]
set ns [new Simulator]
set trace [open routed.tr w]
$ns trace-all $trace
set topography [new Topography]
$topography load_flatgrid 1000 500
create-god 4
set queue [expr {$routing eq "DSR" ? "CMUPriQueue" : "Queue/DropTail/PriQueue"}]
$ns node-config -adhocRouting $routing -llType LL -macType Mac/802_11 -ifqType $queue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace ON -routerTrace ON -macTrace OFF
for {set i 0} {$i < 4} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    foreach {name value} [list X_ [expr 200 * $i + 10] Y_ 100 Z_ 0] { $node($i) set $name $value }
}
set tcp [new Agent/TCP/Newreno]
set udp [new Agent/UDP]
set sink [new Agent/TCPSink]
set monitor [new Agent/LossMonitor]
foreach {agent other} [list $tcp $sink $udp $monitor] {
    $ns attach-agent $node(0) $agent
    $ns attach-agent $node(3) $other
    $ns connect $agent $other
}
set ftp [new Application/FTP]
$ftp attach-agent $tcp
set cbr [new Application/Traffic/CBR]
foreach {name value} {packetSize_ 200 rate_ 20kb} { $cbr set $name $value }
$cbr attach-agent $udp
foreach application [list $ftp $cbr] {
    $ns at 1 "$application start"
    $ns at 4 "$application stop"
}
proc finish {} {
    global ns tcp monitor trace routing
    puts "$routing LossMonitor npkts_ [$monitor set npkts_] bytes_ [$monitor set bytes_]"
    puts "$routing TCP ndatapack_ [$tcp set ndatapack_] ndatabytes_ [$tcp set ndatabytes_] nrexmitpack_ [$tcp set nrexmitpack_]"
    $ns flush-trace
    close $trace
    exit 0
}
$ns at 6 finish
$ns run
