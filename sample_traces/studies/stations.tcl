# Stations around an access point, and hosts behind it on a chain of wired hops.
#
# Options: stations; rates, the 802.11b rate (Mbit/s) of the access point and of each station; basic_rate, of acknowledgements; radius (m)
# around the access point; those of `chain.tcl`, one bandwidth for each hop; station_buffer and access_buffer, the bytes that the
# interface of a station and that of the access point hold; update_period (s) of routing; mac, ON if the trace shows the MAC layer too; phy, `b` or `a`.
# With `change_at` stations have the rates `changed_rates` from that time on, one for each as in `rates`.
# With `outages` (first, mean time between two, and mean length, s) the radio loses every frame for a while, each time of another length.
# A flow goes `from` a station (its number) `to up`, to a host of its own behind the last hop, or `to down`, the other way;
# `to N` leads it to a host behind the Nth hop, `to air` to the last station.

defaults {stations 3 rates {11 11 11 11} basic_rate 1Mb radius 20 bandwidths {10Mb} delay 10ms queue 20 host_bandwidth 10Mb
    host_delay 2ms station_buffer 32000 access_buffer 20000 update_period 15 mac OFF phy b change_at -1 changed_rates {} outages {}}
source [file join [file dirname [info script]] chain.tcl]
ns-random $opt(seed)
$ns trace-all $trace
# No RTS: no packet is as long as this.
Mac/802_11 set RTSThreshold_ 3000
Mac/802_11 set basicRate_ $opt(basic_rate)
if {$opt(phy) eq "a"} {
    # IEEE 802.11-2007, table 17-15: preamble and SIGNAL take 20 µs, at 6 Mbit/s 120 bits.
    foreach {name value} {CWMin_ 15 SlotTime_ 0.000009 SIFS_ 0.000016 PreambleLength_ 96 PLCPHeaderLength_ 24 PLCPDataRate_ 6.0e6} {
        Mac/802_11 set $name $value
    }
}
Agent/DSDV set perup_ $opt(update_period)
# A buffer counts bytes; its limit is a number of packets of 1,000.
Queue/DropTail set queue_in_bytes_ true
Queue/DropTail set mean_pktsize_ 1000

$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {1 1}
set hops [llength $opt(bandwidths)]
AddrParams set nodes_num_ [list [expr {$hops + [llength $opt(flows)] + 1}] [expr {$opt(stations) + 2}]]

set topography [new Topography]
$topography load_flatgrid 1000 1000
create-god [expr {$opt(stations) + 1}]
for {set i 0} {$i < $hops + [llength $opt(flows)]} {incr i} { set wired($i) [$ns node 0.0.$i] }

# What each radio loses: nothing, and everything while it is out.
set radios_errors {}
proc radio_errors {} {
    global radios_errors
    set model [random_loss 0]
    lappend radios_errors $model
    return $model
}
proc go_out {draws} {
    global ns opt radios_errors
    foreach {first between length} $opt(outages) break
    foreach model $radios_errors { $model set rate_ 1 }
    $ns at [expr {[$ns now] + [$draws exponential $length]}] [list come_back $draws]
}
proc come_back {draws} {
    global ns opt radios_errors
    foreach {first between length} $opt(outages) break
    foreach model $radios_errors { $model set rate_ 0 }
    $ns at [expr {[$ns now] + [$draws exponential $between]}] [list go_out $draws]
}

$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue \
    -ifqLen [expr {$opt(access_buffer) / 1000}] \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography -wiredRouting ON \
    -agentTrace ON -routerTrace OFF -macTrace $opt(mac) -movementTrace OFF
if {$opt(outages) ne ""} { $ns node-config -IncomingErrProc radio_errors }

# The interface takes its rate from the class when a node is made.
proc place {node x y} { $node random-motion 0; $node set X_ $x; $node set Y_ $y; $node set Z_ 0.0 }
Mac/802_11 set dataRate_ [lindex $opt(rates) 0]Mb
set access_point [$ns node 1.0.0]
place $access_point 500.0 500.0
$ns node-config -wiredRouting OFF -ifqLen [expr {$opt(station_buffer) / 1000}]
for {set i 0} {$i < $opt(stations)} {incr i} {
    Mac/802_11 set dataRate_ [lindex $opt(rates) [expr {$i + 1}]]Mb
    set station($i) [$ns node 1.0.[expr {$i + 1}]]
    $station($i) base-station [AddrParams addr2id [$access_point node-addr]]
    set angle [expr {2 * acos(-1) * $i / $opt(stations)}]
    place $station($i) [expr {500 + $opt(radius) * cos($angle)}] [expr {500 + $opt(radius) * sin($angle)}]
}
Queue/DropTail set queue_in_bytes_ false
if {$opt(outages) ne ""} {
    set draws [new RNG]
    $draws seed [expr {1000 * $opt(seed)}]
    $ns at [lindex $opt(outages) 0] [list come_back $draws]
}

proc change_rates {nodes rates} {
    foreach node $nodes rate $rates { [$node set mac_(0)] set dataRate_ ${rate}Mb }
}
if {$opt(change_at) >= 0} {
    set radios [list $access_point]
    for {set i 0} {$i < $opt(stations)} {incr i} { lappend radios $station($i) }
    $ns at $opt(change_at) [list change_rates $radios $opt(changed_rates)]
}

set routers {}
for {set i 0} {$i < $hops} {incr i} { lappend routers $wired($i) }
chain $access_point $routers

set next $hops
foreach flow $opt(flows) {
    set way [dict get $flow to]
    set there $station([dict get $flow from])
    if {$way eq "air"} {
        add_flow $flow $there $station([expr {$opt(stations) - 1}])
        continue
    }
    set host $wired($next)
    incr next
    join_host $host $wired([expr {[string is integer $way] ? $way - 1 : $hops - 1}])
    if {$way eq "down"} { add_flow $flow $host $there } else { add_flow $flow $there $host }
}
for {set i 0} {$i < $opt(stations)} {incr i} { $ns at $opt(duration) "$station($i) reset" }
