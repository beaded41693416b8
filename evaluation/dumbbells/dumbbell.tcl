# Flows of ns-2's agents from one host each to one host each, over a bottleneck:
#   ns dumbbell.tcl SECONDS SEED BITS_PER_SECOND DELAY_MS BUFFER_PACKETS RANDOM_LOSS CBR PARETO TRACE AGENT...
# CBR is the rate of a UDP source beside them in bit/s, or 0, PARETO that of two each. The trace goes to TRACE without
# the lines of what left a queue, and to standard output each agent and the bytes with headers that its flow received.
foreach {seconds seed bandwidth delay buffer loss cbr pareto path} $argv break
set agents [lrange $argv 9 end]
# TFRC draws a random number at each packet: losses and sources have their own, which are the same whoever sends.
proc own_numbers {which} {
    global seed
    set numbers [new RNG]
    $numbers seed [expr {100 * $seed + $which}]
    return $numbers
}
ns-random $seed
set ns [new Simulator]
set trace [open "|grep -v ^- > $path" w]
$ns trace-all $trace
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $bandwidth ${delay}ms DropTail
$ns queue-limit $left $right $buffer
if {$loss > 0} {
    set chance [new ErrorModel]
    $chance unit pkt
    $chance set rate_ $loss
    set drawn [new RandomVariable/Uniform]
    $drawn use-rng [own_numbers 1]
    $chance ranvar $drawn
    $chance drop-target [new Agent/Null]
    $ns lossmodel $chance $left $right
}

proc hosts {} {
    global ns left right
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $left 10Mb 5ms DropTail
    $ns duplex-link $right $to 10Mb 5ms DropTail
    foreach {a b} [list $from $left $left $from $right $to $to $right] { $ns queue-limit $a $b 1000 }
    return [list $from $to]
}

proc connect {agent sink fid} {
    global ns
    foreach {from to} [hosts] break
    $agent set fid_ $fid
    $sink set fid_ $fid
    $ns attach-agent $from $agent
    $ns attach-agent $to $sink
    $ns connect $agent $sink
}

proc tcp {kind sink} {
    set tcp [new Agent/TCP/$kind]
    $tcp set window_ 1000
    $tcp set packetSize_ 1000
    return [list $tcp [new Agent/TCPSink$sink]]
}

proc ends {name} {
    global ns
    switch $name {
        newreno { return [tcp Newreno ""] }
        sack { return [tcp Sack1 /Sack1] }
        vegas { return [tcp Vegas ""] }
        tfrc { return [list [new Agent/TFRC] [new Agent/TFRCSink]] }
    }
    foreach {tcp sink} [tcp Linux /Sack1] break
    $tcp set timestamps_ true
    $sink set ts_echo_rfc1323_ true
    $ns at 0 "$tcp select_ca $name"
    return [list $tcp $sink]
}

set fid 0
foreach name $agents {
    incr fid
    foreach {agent sink} [ends $name] break
    connect $agent $sink $fid
    set sinks($fid) $sink
    set source $agent
    if {$name ne "tfrc"} {
        set source [new Application/FTP]
        $source attach-agent $agent
    } else {
        $agent set packetSize_ 1000
    }
    $ns at [expr {0.5 * $fid}] "$source start"
}

proc background {kind rate} {
    global ns fid
    incr fid
    set udp [new Agent/UDP]
    $udp set packetSize_ 1000
    connect $udp [new Agent/Null] $fid
    set source [new Application/Traffic/$kind]
    $source set packetSize_ [expr {$kind eq "CBR" ? 1000 : 500}]
    $source set rate_ $rate
    if {$kind eq "Pareto"} {
        $source set burst_time_ 500ms
        $source set idle_time_ 500ms
        $source set shape_ 1.5
        $source use-rng [own_numbers $fid]
    }
    $source attach-agent $udp
    $ns at 0.1 "$source start"
}
if {$cbr > 0} { background CBR $cbr }
if {$pareto > 0} { background Pareto $pareto; background Pareto $pareto }

proc finish {} {
    global ns trace sinks agents
    $ns flush-trace
    close $trace
    foreach fid [lsort -integer [array names sinks]] {
        puts "[lindex $agents [expr {$fid - 1}]],[$sinks($fid) set bytes_]"
    }
    exit 0
}
$ns at $seconds finish
$ns run
