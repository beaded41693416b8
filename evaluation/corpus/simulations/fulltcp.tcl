# One connection of ns-2's FullTcp over a slow link: `ns fulltcp.tcl FOLDER [NAME VALUE]...`
#
# Writes FOLDER/trace.tr (all links, with the TCP header), FOLDER/variables (what the sender's variables became,
# and when) and FOLDER/sim.json. Node 0 sends, 1 and 2 are routers, 3 receives.
array set run {kind "" bytes 300000 rate 1Mb delay 20ms queue 12 loss 0 ackLoss 0 seed 1}
set folder [lindex $argv 0]
array set run [lrange $argv 1 end]

Trace set show_tcphdr_ 1
set ns [new Simulator]
set trace [open $folder/trace.tr w]
$ns trace-all $trace
for {set i 0} {$i < 4} {incr i} {
    set node($i) [$ns node]
}
$ns duplex-link $node(0) $node(1) 10Mb 1ms DropTail
$ns duplex-link $node(1) $node(2) $run(rate) $run(delay) DropTail
$ns duplex-link $node(2) $node(3) 10Mb 1ms DropTail
$ns queue-limit $node(1) $node(2) $run(queue)

proc lose {from to share stream} {
    global ns
    set random [new RNG]
    $random seed $stream
    set variable [new RandomVariable/Uniform]
    $variable use-rng $random
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $share
    $errors ranvar $variable
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $from $to
}
lose $node(1) $node(2) $run(loss) $run(seed)
lose $node(2) $node(1) $run(ackLoss) [expr $run(seed) + 100]

set sender [new Agent/TCP/FullTcp$run(kind)]
set receiver [new Agent/TCP/FullTcp$run(kind)]
foreach agent [list $sender $receiver] {
    $agent set segsize_ 1000
    $agent set window_ 60
    $agent set tcpTick_ 0.01
    $agent set segsperack_ 2
    $agent set interval_ 0.1
}
$ns attach-agent $node(0) $sender
$ns attach-agent $node(3) $receiver
$ns connect $sender $receiver
$receiver listen
set variables [open $folder/variables w]
$sender attach $variables
foreach name {nrexmit_ ncwndcuts_ ack_} {
    $sender trace $name
}

$ns at 0.1 "$sender sendmsg $run(bytes) DAT_EOF"
$ns at 60 {
    set told [open $folder/sim.json w]
    puts $told "{\"data_packets\": [$sender set ndatapack_], \"timeouts\": [$sender set nrexmit_]}"
    close $told
    $ns flush-trace
    flush $variables
    exit 0
}
$ns run
