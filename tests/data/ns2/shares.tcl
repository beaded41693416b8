# Two Sack1 flows and a third one through a bottleneck of 300 kbit/s for 32 s; prints the bytes that each
# sink counted from 5 to 30 s. The third one is
#   probe   CBR of 1.5 kbit/s
#   telnet  Sack1 that sends 60 bytes once a second on average; the greedy ones have windows of 5 packets,
#           so that nothing is dropped
#   lossy   a greedy Sack1 behind a link that loses 20 %
#   far     a greedy Sack1 with an RTT above 1 s and a window of 1 packet
#
#     ns shares.tcl probe|telnet|lossy|far FILE
set kind [lindex $argv 0]
set file [open [lindex $argv 1] w]
set ns [new Simulator]
$ns trace-all $file
ns-random 7
foreach node {s0 s1 s2 left right d0 d1 d2} { set $node [$ns node] }
foreach {a b rate delay limit} {
    s0 left 10Mb 2ms 100   s1 left 10Mb 2ms 100
    left right 300Kb 20ms 12
    right d0 10Mb 2ms 100  right d1 10Mb 2ms 100  right d2 10Mb 2ms 100
} {
    $ns duplex-link [set $a] [set $b] $rate $delay DropTail
    $ns queue-limit [set $a] [set $b] $limit
}
$ns duplex-link $s2 $left 10Mb [expr {$kind eq "far" ? "500ms" : "2ms"}] DropTail
$ns queue-limit $s2 $left 100

proc tcp {from to id} {
    global ns
    set agent [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $agent set fid_ $id
    $agent set packetSize_ 960
    $agent set window_ [expr {$::kind eq "telnet" ? 5 : 30}]
    $ns attach-agent $from $agent
    $ns attach-agent $to $sink
    $ns connect $agent $sink
    return [list $agent $sink]
}

foreach id {0 1} {
    lassign [tcp [set s$id] [set d$id] $id] agent sinks($id)
    $ns at [expr {0.1 + 0.3 * $id}] "[$agent attach-app FTP] start"
}
if {$kind eq "probe"} {
    set agent [new Agent/UDP]
    $agent set fid_ 2
    $ns attach-agent $s2 $agent
    set sinks(2) [new Agent/LossMonitor]
    $ns attach-agent $d2 $sinks(2)
    $ns connect $agent $sinks(2)
    set source [new Application/Traffic/CBR]
    $source set packetSize_ 94
    $source set rate_ 1.5Kb
    $source attach-agent $agent
    $ns at 0.7 "$source start"
} else {
    lassign [tcp $s2 $d2 2] agent sinks(2)
    if {$kind eq "telnet"} {
        set source [$agent attach-app Telnet]
        $source set interval_ 1.0
        $agent set packetSize_ 60
    } else {
        set source [$agent attach-app FTP]
        if {$kind eq "far"} { $agent set window_ 1 }
    }
    $ns at 0.7 "$source start"
    if {$kind eq "lossy"} {
        set errors [new ErrorModel]
        $errors set rate_ 0.2
        $errors unit pkt
        $errors ranvar [new RandomVariable/Uniform]
        $errors drop-target [new Agent/Null]
        $ns lossmodel $errors $s2 $left
    }
}
proc counted {} {
    global sinks
    set bytes {}
    foreach id {0 1 2} { lappend bytes [$sinks($id) set bytes_] }
    return $bytes
}
$ns at 5.0 { set before [counted] }
$ns at 30.0 { foreach b $before a [counted] { puts [expr {$a - $b}] } }
$ns at 32.0 { $ns flush-trace; close $file; exit 0 }
$ns run
