# An ad hoc network: AODV, 802.11 at 2 Mbit/s, nodes that stand or move by random waypoints.
#
# Options: nodes; side of the square (m); speed (m/s; 0: nobody moves) and pause (s); place, the seed of positions and movements,
# apart from that of everything else, so that protocols meet the same network. A flow goes `from` a node `to` a node.

defaults {nodes 20 side 600 speed 10 pause 2 place 1}
$ns trace-all $trace
ns-random $opt(seed)
Mac/802_11 set dataRate_ 2Mb
Mac/802_11 set basicRate_ 1Mb

set topography [new Topography]
$topography load_flatgrid $opt(side) $opt(side)
create-god $opt(nodes)
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace ON -routerTrace OFF -macTrace OFF -movementTrace OFF

set places [new RNG]
$places seed $opt(place)
proc somewhere {} { global places opt; return [$places uniform 1 [expr {$opt(side) - 1}]] }

for {set i 0} {$i < $opt(nodes)} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    set x [somewhere]
    set y [somewhere]
    $node($i) set X_ $x
    $node($i) set Y_ $y
    $node($i) set Z_ 0.0
    # A way point after the other: the next begins when this one is reached and the pause is over.
    for {set t $opt(pause)} {$opt(speed) > 0 && $t < $opt(duration)} {} {
        set to_x [somewhere]
        set to_y [somewhere]
        $ns at $t "$node($i) setdest $to_x $to_y $opt(speed)"
        set t [expr {$t + hypot($to_x - $x, $to_y - $y) / $opt(speed) + $opt(pause)}]
        set x $to_x
        set y $to_y
    }
}
foreach flow $opt(flows) { add_flow $flow $node([dict get $flow from]) $node([dict get $flow to]) }
for {set i 0} {$i < $opt(nodes)} {incr i} { $ns at $opt(duration) "$node($i) reset" }
