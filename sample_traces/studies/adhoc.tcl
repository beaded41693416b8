# An ad hoc network: 802.11 at 2 Mbit/s, nodes that stand or move.
#
# Options: routing, AODV or DSDV; side of the square (m); speed (m/s); ways, for each node where it begins and what it does then:
# {x y {time x y} {time x y} ...}, each time to set out for a point. A flow goes `from` a node `to` a node.

defaults {routing AODV side 600 speed 10 ways {}}
$ns trace-all $trace
ns-random $opt(seed)
Mac/802_11 set dataRate_ 2Mb
Mac/802_11 set basicRate_ 1Mb

set topography [new Topography]
$topography load_flatgrid $opt(side) $opt(side)
create-god [llength $opt(ways)]
$ns node-config -adhocRouting $opt(routing) -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace ON -routerTrace OFF -macTrace OFF -movementTrace OFF

set nodes {}
foreach way $opt(ways) {
    set node [$ns node]
    lappend nodes $node
    $node random-motion 0
    $node set X_ [lindex $way 0]
    $node set Y_ [lindex $way 1]
    $node set Z_ 0.0
    foreach leg [lrange $way 2 end] {
        foreach {time x y} $leg { $ns at $time "$node setdest $x $y $opt(speed)" }
    }
}
foreach flow $opt(flows) { add_flow $flow [lindex $nodes [dict get $flow from]] [lindex $nodes [dict get $flow to]] }
foreach node $nodes { $ns at $opt(duration) "$node reset" }
