# One-way TCP agents of ns-2 that differ in SYN and header, over one slow link: ns tcp-agents.tcl
set ns [new Simulator]
set trace [open tcp-agents.tr w]
$ns trace-all $trace
foreach name {left right} { set $name [$ns node] }
$ns duplex-link $left $right 2Mb 20ms DropTail
$ns queue-limit $left $right 20

proc connect {kind sinkkind settings} {
    global ns left right flows
    set source [$ns node]
    set destination [$ns node]
    $ns duplex-link $source $left 10Mb 5ms DropTail
    $ns duplex-link $right $destination 10Mb 5ms DropTail
    set agent [new Agent/TCP/$kind]
    set sink [new Agent/$sinkkind]
    foreach {name value} $settings { $agent set $name $value }
    $ns attach-agent $source $agent
    $ns attach-agent $destination $sink
    $ns connect $agent $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $agent
    $ns at 0.1 "$ftp start"
    lappend flows $kind $agent $sink $source $destination
}

connect Vegas TCPSink {}
connect Vegas TCPSink {packetSize_ 700}
connect Newreno TCPSink {packetSize_ 500}
connect Newreno TCPSink {syn_ false delay_growth_ false}
connect Sack1 TCPSink/Sack1 {packetSize_ 1460}

proc finish {} {
    global ns flows trace
    foreach {kind agent sink source destination} $flows {
        puts "$kind [$source id] [$destination id] ndatapack_ [$agent set ndatapack_] ndatabytes_ [$agent set ndatabytes_] nrexmitpack_ [$agent set nrexmitpack_] bytes_ [$sink set bytes_]"
    }
    $ns flush-trace
    close $trace
    exit 0
}
$ns at 2.5 finish
$ns run
