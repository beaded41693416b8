# A dumbbell: a link of its own for each end of each flow, and a bottleneck between two routers.
#
# Options: bandwidth, delay and queue (packets) of the bottleneck; access_delay of each link beside it; loss, the share of
# packets that the last link before a receiver loses at random. The trace has what hosts send and receive, and every drop.
# A flow with `to back` goes from the right to the left.

defaults {bandwidth 1.5Mb delay 20ms queue 25 access_delay 2ms loss 0}
$ns trace-all $trace
ns-random $opt(seed)

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $opt(bandwidth) $opt(delay) DropTail
$ns queue-limit $left $right $opt(queue)
$ns queue-limit $right $left $opt(queue)
trace_only $left $right none
trace_only $right $left none

proc random_loss {rate} {
    set model [new ErrorModel]
    $model unit packet
    $model set rate_ $rate
    $model ranvar [new RandomVariable/Uniform]
    $model drop-target [new Agent/Null]
    return $model
}

foreach flow $opt(flows) {
    set source [$ns node]
    set target [$ns node]
    set near $left
    set far $right
    if {[dict get $flow to] eq "back"} { set near $right; set far $left }
    $ns duplex-link $source $near 10Mb $opt(access_delay) DropTail
    $ns duplex-link $far $target 10Mb $opt(access_delay) DropTail
    trace_ends $source $near
    trace_ends $target $far
    if {$opt(loss) > 0} { $ns link-lossmodel [random_loss $opt(loss)] $far $target }
    add_flow $flow $source $target
}
