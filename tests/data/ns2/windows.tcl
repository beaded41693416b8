# TCP agents of ns-2 over a bottleneck each, with the windows that they log: ns windows.tcl
set ns [new Simulator]
set trace [open windows.tr w]
set log [open windows.log w]
$ns trace-all $trace

proc connect {kind sinkkind settings} {
    global ns log
    foreach name {source left right destination} { set $name [$ns node] }
    $ns duplex-link $source $left 10Mb 5ms DropTail
    $ns duplex-link $left $right 1Mb 5ms DropTail
    $ns duplex-link $right $destination 10Mb 5ms DropTail
    $ns queue-limit $left $right 10
    set agent [new Agent/TCP/$kind]
    set sink [new Agent/$sinkkind]
    foreach {name value} $settings { $agent set $name $value }
    $agent set packetSize_ 1000
    $agent set window_ 1000
    $ns attach-agent $source $agent
    $ns attach-agent $destination $sink
    $ns connect $agent $sink
    foreach variable {cwnd_ ssthresh_} { $agent trace $variable }
    $agent attach $log
    set ftp [new Application/FTP]
    $ftp attach-agent $agent
    $ns at 0.1 "$ftp start"
    return $agent
}

connect Newreno TCPSink {}
connect Sack1 TCPSink/Sack1/DelAck {}
connect Vegas TCPSink {}
[connect Linux TCPSink/Sack1 {}] select_ca westwood

proc finish {} {
    global ns trace log
    $ns flush-trace
    close $trace
    close $log
    exit 0
}
$ns at 10 finish
$ns run
