# Sources on links of their own, a chain of wired hops, and a receiver for each source behind one of them.
#
# Options: source_bandwidth and source_delay of the links of the sources, and those of `chain.tcl`, one bandwidth for each hop.
# A flow goes `from` a source of its own `to N`, a host behind the Nth hop.

defaults {source_bandwidth 1Mb source_delay 10ms bandwidths {1Mb 1Mb 1Mb} delay 10ms queue 20 host_bandwidth 1Mb host_delay 10ms}
source [file join [file dirname [info script]] chain.tcl]
$ns trace-all $trace
ns-random $opt(seed)

set base [$ns node]
set routers {}
foreach bandwidth $opt(bandwidths) { lappend routers [$ns node] }
chain $base $routers

foreach flow $opt(flows) {
    set source [$ns node]
    $ns duplex-link $source $base $opt(source_bandwidth) $opt(source_delay) DropTail
    $ns queue-limit $base $source $opt(queue)
    trace_ends $source $base
    set host [$ns node]
    join_host $host [lindex $routers [expr {[dict get $flow to] - 1}]]
    add_flow $flow $source $host
}
