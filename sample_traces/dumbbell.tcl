# ns-2: a TFRC flow and a NewReno flow share a bottleneck; every second a probe carries its own send time.
#
#   ns sample_traces/dumbbell.tcl TRACE TRUTH
#
# TRACE is the packet trace, TRUTH what the agents and queues themselves counted, as JSON.

set ns [new Simulator]
set trace [open [lindex $argv 0] w]
$ns trace-all $trace
ns-random 7

# senders 0 2 4, routers 6 7, receivers 1 3 5
for {set i 0} {$i < 8} {incr i} { set n($i) [$ns node] }
foreach sender {0 2 4} { $ns duplex-link $n($sender) $n(6) 10Mb 2ms DropTail }
foreach receiver {1 3 5} { $ns duplex-link $n(7) $n($receiver) 10Mb 3ms DropTail }
$ns duplex-link $n(6) $n(7) 1.5Mb 20ms DropTail
$ns queue-limit $n(6) $n(7) 25

set tfrc [new Agent/TFRC]
set tfrc_sink [new Agent/TFRCSink]
$tfrc set packetSize_ 1000
$tfrc set fid_ 1
$tfrc_sink set fid_ 1
$ns attach-agent $n(0) $tfrc
$ns attach-agent $n(1) $tfrc_sink
$ns connect $tfrc $tfrc_sink

set tcp [new Agent/TCP/Newreno]
set tcp_sink [new Agent/TCPSink]
$tcp set packetSize_ 1000
$tcp set window_ 60
$tcp set fid_ 2
$ns attach-agent $n(2) $tcp
$ns attach-agent $n(3) $tcp_sink
$ns connect $tcp $tcp_sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

# A probe is a message that says when it was sent; the receiver takes the difference.
set probes_sent 0
set probes_received 0
set probe_delay 0.0
Agent/MessagePassing instproc recv {source port size data} {
    global ns probes_received probe_delay
    incr probes_received
    set probe_delay [expr {$probe_delay + [$ns now] - $data}]
}
set probe [new Agent/MessagePassing]
set probe_sink [new Agent/MessagePassing]
$probe set fid_ 3
$ns attach-agent $n(4) $probe
$ns attach-agent $n(5) $probe_sink
$ns connect $probe $probe_sink
proc send_probe {} {
    global ns probe probe_sink n probes_sent
    if {[$ns now] > 19} return
    incr probes_sent
    $probe sendto 100 [format %.17g [$ns now]] [$n(5) node-addr] [$probe_sink set agent_port_]
    $ns at [expr {[$ns now] + 0.5}] send_probe
}

set queue [$ns monitor-queue $n(6) $n(7) [open /dev/null w] 1]

proc finish {} {
    global ns trace tfrc tfrc_sink tcp tcp_sink queue argv probes_sent probes_received probe_delay
    $ns flush-trace
    close $trace
    set truth [open [lindex $argv 1] w]
    puts $truth "{\"simulator\": \"ns-2.35\","
    puts $truth " \"tfrc\": {\"sent_packets\": [$tfrc set ndatapack_], \"sink_bytes\": [$tfrc_sink set bytes_]},"
    puts $truth " \"tcp\": {\"sent_packets\": [$tcp set ndatapack_], \"retransmitted_packets\": [$tcp set nrexmitpack_], \"sink_bytes\": [$tcp_sink set bytes_]},"
    puts $truth " \"probe\": {\"sent_packets\": $probes_sent, \"received_packets\": $probes_received, \"delay_mean_s\": [format %.12g [expr {$probe_delay / $probes_received}]]},"
    puts $truth " \"bottleneck\": {\"arrivals\": [$queue set parrivals_], \"departures\": [$queue set pdepartures_], \"drops\": [$queue set pdrops_]}}"
    close $truth
    exit 0
}

$ns at 0.2 "$tfrc start"
$ns at 2.0 "$ftp start"
$ns at 1.0 send_probe
# Sending ends before the trace does, so that nothing is on its way at the end.
$ns at 19.0 "$tfrc stop"
$ns at 19.0 "$ftp stop"
$ns at 21.0 finish
$ns run
