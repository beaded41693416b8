# ns-2: pairs of a TFRC and a Sack1 flow share a bottleneck of 600 kbit/s for six seconds.
#
#   ns dumbbell.tcl QUEUE PAIRS RUN TRACE
#
# QUEUE is DropTail or RED, PAIRS how many pairs, RUN a seed. Prints what the agents themselves counted, as CSV:
# the trace, the flow, packets sent, and bytes that arrived at the sink.

foreach {queue pairs run path} $argv break
ns-random [expr {1000 * $run + $pairs}]
set ns [new Simulator]
set trace [open $path w]

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 600kb 20ms $queue
$ns queue-limit $left $right 15
$ns trace-queue $left $right $trace

proc flow {fid agent sink start} {
    global ns left right trace agents sinks
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $left 10Mb 2ms DropTail
    $ns duplex-link $right $to 10Mb 3ms DropTail
    $ns trace-queue $from $left $trace
    $ns trace-queue $right $to $trace
    set agents($fid) [new $agent]
    set sinks($fid) [new $sink]
    $agents($fid) set packetSize_ 1000
    $agents($fid) set fid_ $fid
    $sinks($fid) set fid_ $fid
    $ns attach-agent $from $agents($fid)
    $ns attach-agent $to $sinks($fid)
    $ns connect $agents($fid) $sinks($fid)
    set source $agents($fid)
    if {$agent ne "Agent/TFRC"} {
        $source set window_ 30
        set source [new Application/FTP]
        $source attach-agent $agents($fid)
    }
    $ns at $start "$source start"
    $ns at 6.0 "$source stop"
}

set random [new RandomVariable/Uniform]
$random set min_ 0.0
$random set max_ 0.5
for {set pair 0} {$pair < $pairs} {incr pair} {
    flow [expr {2 * $pair + 1}] Agent/TFRC Agent/TFRCSink [$random value]
    flow [expr {2 * $pair + 2}] Agent/TCP/Sack1 Agent/TCPSink/Sack1 [$random value]
}

proc finish {} {
    global ns trace agents sinks path
    $ns flush-trace
    close $trace
    foreach fid [lsort -integer [array names agents]] {
        puts "[file tail $path],$fid,[$agents($fid) set ndatapack_],[$sinks($fid) set bytes_]"
    }
    exit 0
}

$ns at 7.5 finish
$ns run
