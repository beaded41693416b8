# Stations around an access point, and hosts behind it on a chain of wired hops.
#
# Options: stations; rates, the 802.11b rate of the access point and of each station; hops, bandwidth, delay and queue (packets)
# of the wired hops; ifqueue, packets that each wireless interface holds; mac, ON if the trace shows the MAC layer too.
# With `change_at` stations have the rates `changed_rates` from that time on, one for each as in `rates`.
# A flow goes `from` a station (its number) `to up`, to a host of its own behind the last hop, or `to down`, the other way;
# `to N` leads it to a host behind the Nth hop.

defaults {stations 3 rates {11Mb 11Mb 11Mb 11Mb} hops 1 bandwidth 10Mb delay 10ms queue 20 ifqueue 20 mac OFF change_at -1
    changed_rates {}}
$ns trace-all $trace
ns-random $opt(seed)
Mac/802_11 set basicRate_ 1Mb
# No RTS: no packet is as long as this.
Mac/802_11 set RTSThreshold_ 3000

$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {1 1}
set hosts [llength $opt(flows)]
AddrParams set nodes_num_ [list [expr {$opt(hops) + $hosts + 1}] [expr {$opt(stations) + 2}]]

set topography [new Topography]
$topography load_flatgrid 100 100
create-god [expr {$opt(stations) + 1}]
for {set i 0} {$i < $opt(hops) + $hosts} {incr i} { set wired($i) [$ns node 0.0.$i] }

$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen $opt(ifqueue) \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography -wiredRouting ON \
    -agentTrace ON -routerTrace OFF -macTrace $opt(mac) -movementTrace OFF

# The interface takes its rate from the class when a node is made.
proc place {node x y} { $node random-motion 0; $node set X_ $x; $node set Y_ $y; $node set Z_ 0.0 }
Mac/802_11 set dataRate_ [lindex $opt(rates) 0]
set access_point [$ns node 1.0.0]
place $access_point 50.0 50.0
$ns node-config -wiredRouting OFF
for {set i 0} {$i < $opt(stations)} {incr i} {
    Mac/802_11 set dataRate_ [lindex $opt(rates) [expr {$i + 1}]]
    set station($i) [$ns node 1.0.[expr {$i + 1}]]
    $station($i) base-station [AddrParams addr2id [$access_point node-addr]]
    set angle [expr {2 * acos(-1) * $i / $opt(stations)}]
    place $station($i) [expr {50 + 20 * cos($angle)}] [expr {50 + 20 * sin($angle)}]
}

proc change_rates {nodes rates} {
    foreach node $nodes rate $rates { [$node set mac_(0)] set dataRate_ $rate }
}
if {$opt(change_at) >= 0} {
    set radios [list $access_point]
    for {set i 0} {$i < $opt(stations)} {incr i} { lappend radios $station($i) }
    $ns at $opt(change_at) [list change_rates $radios $opt(changed_rates)]
}

proc hop {a b} {
    global ns opt
    $ns duplex-link $a $b $opt(bandwidth) $opt(delay) DropTail
    $ns queue-limit $a $b $opt(queue)
    $ns queue-limit $b $a $opt(queue)
}
# Only the ends are traced: the hops between would repeat every packet.
$ns trace-none
hop $access_point $wired(0)
for {set i 1} {$i < $opt(hops)} {incr i} { hop $wired([expr {$i - 1}]) $wired($i) }
$ns trace-all $trace

set next $opt(hops)
foreach flow $opt(flows) {
    set way [dict get $flow to]
    set behind [expr {[string is integer $way] ? $way - 1 : $opt(hops) - 1}]
    set host $wired($next)
    incr next
    $ns duplex-link $wired($behind) $host 10Mb 2ms DropTail
    trace_ends $host $wired($behind)
    set there $station([dict get $flow from])
    if {$way eq "down"} { add_flow $flow $host $there } else { add_flow $flow $there $host }
}
for {set i 0} {$i < $opt(stations)} {incr i} { $ns at $opt(duration) "$station($i) reset" }
