# A dumbbell: a link of its own for each end of each flow, and a bottleneck between two routers.
#
# Options: bandwidth, delay and queue (packets) of the bottleneck, back_bandwidth of its way back; access and access_delay of each link
# beside it; varying, the least share of its bandwidth that the bottleneck has: another one each half second, as of a radio
# link whose rate follows its signal; rates and delays, times and what the bottleneck has from each on; outage, from when until when
# all packets to receivers are lost. The trace has what hosts send and receive, and every drop.
# A flow with `to back` goes from the right to the left; `loss` is the share of packets that the link to its receiver loses at random,
# and `far` the delay of that link where it is not access_delay.

defaults {bandwidth 1.5Mb back_bandwidth {} delay 20ms queue 25 access 10Mb access_delay 2ms varying 1 rates {} delays {} outage {}}
$ns trace-all $trace
ns-random $opt(seed)

set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right $opt(bandwidth) $opt(delay) DropTail
$ns simplex-link $right $left [expr {$opt(back_bandwidth) eq "" ? $opt(bandwidth) : $opt(back_bandwidth)}] $opt(delay) DropTail
$ns queue-limit $left $right $opt(queue)
$ns queue-limit $right $left $opt(queue)
trace_only $left $right none
trace_only $right $left none

# The shares are drawn apart from everything else: the same seed varies the link alike for any flow.
set shares [new RNG]
$shares seed [expr {1000 * $opt(seed)}]
proc vary {link bandwidth} {
    global ns opt shares
    $link set bandwidth_ [expr {$bandwidth * [$shares uniform $opt(varying) 1]}]
    $ns at [expr {[$ns now] + 0.5}] [list vary $link $bandwidth]
}
if {$opt(varying) < 1} { vary [[$ns link $left $right] link] [bw_parse $opt(bandwidth)] }

foreach {time rate} $opt(rates) { $ns at $time "[[$ns link $left $right] link] set bandwidth_ [bw_parse $rate]" }
foreach {time delay} $opt(delays) {
    foreach {from to} [list $left $right $right $left] { $ns at $time "[[$ns link $from $to] link] set delay_ $delay" }
}

foreach flow $opt(flows) {
    set source [$ns node]
    set target [$ns node]
    set near $left
    set far $right
    if {[dict get $flow to] eq "back"} { set near $right; set far $left }
    $ns duplex-link $source $near $opt(access) $opt(access_delay) DropTail
    $ns duplex-link $far $target $opt(access) [expr {[dict exists $flow far] ? [dict get $flow far] : $opt(access_delay)}] DropTail
    trace_ends $source $near
    trace_ends $target $far
    set share [expr {[dict exists $flow loss] ? [dict get $flow loss] : 0}]
    if {$share > 0 || $opt(outage) ne ""} {
        set losing [random_loss $share]
        $ns link-lossmodel $losing $far $target
        foreach time $opt(outage) rate [list 1 $share] { if {$time ne ""} { $ns at $time "$losing set rate_ $rate" } }
    }
    add_flow $flow $source $target
}
