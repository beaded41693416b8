# Two nodes of 802.11b, so far apart, and one beside the first.
#
# Options: distance (m); propagation, `TwoRayGround` or `Shadowing`, with its exponent and deviation (dB); rate (Mbit/s) of both.
# A flow goes `from` a node `to` another: 0 and 1 are far apart, 2 stands beside 0.

defaults {distance 100 propagation TwoRayGround exponent 2.7 deviation 4 rate 11}
$ns trace-all $trace
ns-random $opt(seed)
Mac/802_11 set dataRate_ $opt(rate)Mb
Mac/802_11 set basicRate_ 1Mb
Mac/802_11 set RTSThreshold_ 3000

set propagation [new Propagation/$opt(propagation)]
if {$opt(propagation) eq "Shadowing"} {
    $propagation set pathlossExp_ $opt(exponent)
    $propagation set std_db_ $opt(deviation)
    $propagation set dist0_ 1.0
    $propagation seed predef [expr {$opt(seed) % 64}]
}
set topography [new Topography]
$topography load_flatgrid 1000 1000
create-god 3
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propInstance $propagation -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace ON -routerTrace OFF -macTrace OFF -movementTrace OFF
foreach {i x} [list 0 10.0 1 [expr {10.0 + $opt(distance)}] 2 9.0] {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ $x
    $node($i) set Y_ 10.0
    $node($i) set Z_ 0.0
}
foreach flow $opt(flows) { add_flow $flow $node([dict get $flow from]) $node([dict get $flow to]) }
foreach i {0 1 2} { $ns at $opt(duration) "$node($i) reset" }
