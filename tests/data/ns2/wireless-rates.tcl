# Stations of an 802.11b network whose data rates change, for ns-2.35: ns wireless-rates.tcl OUT.tr ?sparing?
# Station 1 sends at 11 Mbit/s; station 2 at 5.5 and from 2 s on at 11; station 3 comes at 1.2 s with 2 Mbit/s
# and goes at 2.5 s; the base station sends at 11. MAC lines are on, so that the trace tells all of that.
# With `sparing` stations 1 and 2 alone are greedy, and station 3 sends 20 packets/s from 0.5 s on, 60 from 2 s on.
set ns [new Simulator]
ns-random 12
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {1 1}
AddrParams set nodes_num_ {2 4}
set file [open [lindex $argv 0] w]
$ns trace-all $file
set topography [new Topography]
$topography load_flatgrid 500 500
create-god 4
Mac/802_11 set basicRate_ 1Mb
Mac/802_11 set RTSThreshold_ 3000
Mac/802_11 set dataRate_ 11Mb
set host [$ns node 0.0.0]
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 60 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography -wiredRouting ON \
    -agentTrace ON -routerTrace OFF -macTrace ON -movementTrace OFF
set base [$ns node 1.0.0]
$base random-motion 0
$base set X_ 250.0; $base set Y_ 250.0; $base set Z_ 0.0
$ns node-config -wiredRouting OFF
foreach {n rate x} {1 11Mb 230.0 2 5.5Mb 270.0 3 2Mb 255.0} {
    Mac/802_11 set dataRate_ $rate
    set station($n) [$ns node 1.0.$n]
    $station($n) random-motion 0
    $station($n) base-station [AddrParams addr2id [$base node-addr]]
    $station($n) set X_ $x; $station($n) set Y_ 240.0; $station($n) set Z_ 0.0
}
$ns duplex-link $base $host 10Mb 5ms DropTail
proc flow {from to number start stop} {
    global ns
    set sender [new Agent/TFRC]
    set sink [new Agent/TFRCSink]
    $sender set packetSize_ 1000
    $sender set fid_ $number
    $sink set fid_ $number
    $ns attach-agent $from $sender
    $ns attach-agent $to $sink
    $ns connect $sender $sink
    $ns at $start "$sender start"
    $ns at $stop "$sender stop"
}
flow $station(1) $host 1 0.3 4.0
if {[lindex $argv 1] == "sparing"} {
    flow $station(2) $host 2 0.3 4.0
    set sender [new Agent/UDP]
    $ns attach-agent $station(3) $sender
    set sink [new Agent/Null]
    $ns attach-agent $host $sink
    $ns connect $sender $sink
    $sender set packetSize_ 1000
    set source [new Application/Traffic/CBR]
    $source set packetSize_ 1000
    $source set interval_ 0.05
    $source attach-agent $sender
    $ns at 0.5 "$source start"
    $ns at 2.0 "$source set interval_ [expr 1 / 60.0]"
    $ns at 4.0 "$source stop"
} else {
    flow $station(2) $host 2 0.9 4.0
    flow $station(3) $host 3 1.2 2.5
}
$ns at 2.0 "[$station(2) set mac_(0)] set dataRate_ 11Mb"
foreach n {1 2 3} { $ns at 4.1 "$station($n) reset" }
$ns at 4.2 "$ns flush-trace; close $file; exit 0"
$ns run
