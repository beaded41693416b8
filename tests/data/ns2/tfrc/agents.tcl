# A TFRC flow beside a TCP flow, with parameters of its agents that are not the defaults:
#   ns agents.tcl TRACE "AGENT'S VARIABLES" "SINK'S VARIABLES" ?BYTES? ?APPLICATION'S RATE? ?LOSS OF REPORTS?
# as in `ns agents.tcl out.tr "df_ 0.9" "numPkts_ 3"`, or `ns agents.tcl out.tr {} {} 1000 {} 0.15`. It writes the lines of the flow at its two ends to
# TRACE, and time and allowed rate (bytes/s) just after each report to standard output.
foreach {trace agent sink size application loss} $argv {}
if {$size == ""} { set size 1000 }
ns-random 7
set ns [new Simulator]
set out [open "|awk {(\$1 == \"+\" && \$3 == 2 || \$1 == \"r\" && \$4 == 3) && \$5 == \"tcpFriend\" || (\$1 == \"+\" && \$3 == 3 || \$1 == \"r\" && \$4 == 2) && \$5 == \"tcpFriendCtl\"} > $trace" w]
$ns trace-all $out
foreach place {0 1 2 3 4 5} { set n($place) [$ns node] }
$ns duplex-link $n(0) $n(1) 800kb 20ms DropTail
$ns queue-limit $n(0) $n(1) 10
foreach {a b} {2 0 1 3 4 0 1 5} { $ns duplex-link $n($a) $n($b) 10Mb 5ms DropTail }

set tfrc [new Agent/TFRC]
set receiver [new Agent/TFRCSink]
$tfrc set packetSize_ $size
foreach {name value} $agent { $tfrc set $name $value }
foreach {name value} $sink { $receiver set $name $value }
$ns attach-agent $n(2) $tfrc
$ns attach-agent $n(3) $receiver
$ns connect $tfrc $receiver
if {$application == ""} {
    $ns at 0.5 "$tfrc start"
    $ns at 11.5 "$tfrc stop"
} else {
    $tfrc set SndrType_ 1
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $size
    $source set rate_ $application
    $source attach-agent $tfrc
    for {set at 0.5} {$at < 11.5} {set at [expr $at + 1.7]} {
        $ns at $at "$source start"
        $ns at [expr $at + 0.6] "$source stop"
    }
}

if {$loss != ""} {
    set errors [new ErrorModel]
    $errors set rate_ $loss
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $n(1) $n(0)
}

# Much less room for a while, so that what arrives is far from what the equation allows.
$ns at 5.0 "$ns bandwidth $n(0) $n(1) 150kb"
$ns at 7.0 "$ns bandwidth $n(0) $n(1) 800kb"

set tcp [new Agent/TCP/Newreno]
set other [new Agent/TCPSink]
$tcp set window_ 64
$ns attach-agent $n(4) $tcp
$ns attach-agent $n(5) $other
$ns connect $tcp $other
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 3.0 "$ftp start"

Trace instproc handle {line} {
    global ns tfrc
    if {[lindex $line 4] == "tcpFriendCtl"} {
        $ns at [expr [$ns now] + 1e-9] "puts \"[$ns now],\[$tfrc set rate_\]\""
    }
}
[[$ns link $n(0) $n(2)] set rcvT_] set callback_ 1
puts "time,rate_Bps"
$ns at 12.0 "close $out; exit 0"
$ns run
