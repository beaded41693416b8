# ns-2: one run of a study.
#
#   ns sample_traces/studies/simulate.tcl TOPOLOGY TRACE FOLDER [OPTION VALUE ...]
#
# TOPOLOGY is `wired`, `hops`, `stations`, `adhoc` or `signal`: the file of that name beside this one says which options it has. TRACE
# is the packet trace. FOLDER gets `truth.json`, what the agents counted, and `tcpN.txt`, the variables of flow N where it has
# `variables 1`. The option `flows` is a list; each flow is a list of names and values:
#
#   kind newreno id 1 from 0 to 0 start 0.5 stop 20 size 1000 [window 20] [rate 200kb] [port 11] [variables 1]
#
# The kind `linux` has an `algorithm` of the Linux agent, with `parameters {beta 1000}` if some are not its own. `packets` ends a
# transfer.

foreach {topology trace_name folder} $argv break
array set opt {seed 1 duration 30 flows {}}

# What a topology leaves to its caller; the command line goes first.
proc defaults {pairs} {
    global opt argv
    array set opt $pairs
    array set opt [lrange $argv 3 end]
}

# ---- agents -----------------------------------------------------------------

# TCP variants: the sender's class, the sink's, and the algorithm of the Linux agent.
array set tcp_classes {
    reno {Agent/TCP/Reno Agent/TCPSink {}}
    newreno {Agent/TCP/Newreno Agent/TCPSink {}}
    sack {Agent/TCP/Sack1 Agent/TCPSink/Sack1 {}}
    vegas {Agent/TCP/Vegas Agent/TCPSink {}}
    veno {Agent/TCP/Linux Agent/TCPSink/Sack1 veno}
    westwood {Agent/TCP/Linux Agent/TCPSink/Sack1 westwood}
    cubic {Agent/TCP/Linux Agent/TCPSink/Sack1 cubic}
    linux {Agent/TCP/Linux Agent/TCPSink/Sack1 {}}
}

# A port for each kind, so that a rule such as `newreno=port 11` names its flows in every format of trace.
array set ports {tfrc 10 newreno 11 reno 12 sack 13 vegas 14 veno 15 westwood 16 cubic 17 linux 18 cbr 20 pareto 21}

set agents {}

# Put a flow between two nodes and note what counts it.
proc add_flow {flow source target} {
    global ns agents ports tcp_classes
    array set f {start 0.5 stop 20 size 1000 window 20 rate 200kb sink {} variables 0 algorithm {} parameters {} packets {}}
    set f(port) $ports([dict get $flow kind])
    array set f $flow
    set limited [dict exists $flow rate]
    if {$f(kind) eq "tfrc"} {
        set agent [new Agent/TFRC]
        set sink [new Agent/TFRCSink]
        set application $agent
        # An application that has less to send than TFRC would allow.
        if {$limited || [dict exists $flow bounds]} { $agent set SndrType_ 1 }
        if {$limited} {
            set application [constant_rate $agent $f(size) $f(rate)]
        } elseif {[dict exists $flow bounds]} {
            set application [bounded_application $agent $f(size) $f(bounds)]
        }
    } elseif {[info exists tcp_classes($f(kind))]} {
        foreach {sender receiver algorithm} $tcp_classes($f(kind)) break
        if {$algorithm eq ""} { set algorithm $f(algorithm) }
        set agent [new $sender]
        set sink [new [expr {$f(sink) eq "" ? $receiver : "Agent/TCPSink/$f(sink)"}]]
        $agent set window_ $f(window)
        if {$algorithm ne ""} {
            $agent set timestamps_ true
            $sink set ts_echo_rfc1323_ true
            $ns at 0 "$agent select_ca $algorithm"
            foreach {name value} $f(parameters) { $ns at 0 "$agent set_ca_param $algorithm $name $value" }
        }
        if {$limited} {
            set application [constant_rate $agent $f(size) $f(rate)]
        } else {
            set application [new Application/FTP]
            $application attach-agent $agent
        }
    } else {
        set agent [new Agent/UDP]
        set sink [new Agent/LossMonitor]
        set application [expr {$f(kind) eq "cbr" ? [constant_rate $agent $f(size) $f(rate)] : [bursts $agent $f(id) $f(size) $f(rate)]}]
    }
    $agent set packetSize_ $f(size)
    $agent set fid_ $f(id)
    $sink set fid_ $f(id)
    $source attach $agent $f(port)
    $target attach $sink $f(port)
    $ns connect $agent $sink
    $ns at $f(start) [expr {$f(packets) eq "" ? "$application start" : "$application produce $f(packets)"}]
    $ns at $f(stop) "$application stop"
    if {$f(variables)} { trace_variables $agent $f(id) }
    lappend agents [list $f(id) $f(kind) $agent $sink]
}

proc constant_rate {agent size rate} {
    set application [new Application/Traffic/CBR]
    $application set packetSize_ $size
    $application set rate_ $rate
    $application attach-agent $agent
    return $application
}

# Bursts and pauses with Pareto's distribution, drawn apart from everything else: the same seed makes the same bursts beside any flow.
proc bursts {agent id size rate} {
    global opt
    set application [new Application/Traffic/Pareto]
    $application set packetSize_ $size
    $application set rate_ $rate
    $application attach-agent $agent
    set draws [new RNG]
    $draws seed [expr {1000 * $opt(seed) + $id}]
    $application use-rng $draws
    return $application
}

# An application that offers TFRC no more than `bounds`: times and rates, each from its time on. One packet waits at most, so that nothing
# is made up for later: what is sent is the least of TFRC's own rate and the bound, as MTFRC's X_send = min(X_tfrc, X_t, X_fair).
Class Bounded
Bounded instproc start {} {
    global ns
    $self instvar agent size bounds offered stopped
    if {$stopped} return
    foreach {time rate} $bounds {
        if {$time <= [$ns now]} { set bound [bw_parse $rate] }
    }
    if {$offered - [$agent set ndatapack_] < 2} {
        incr offered
        $agent advanceby 1
    }
    $ns at [expr {[$ns now] + 8.0 * $size / $bound}] "$self start"
}
Bounded instproc stop {} {
    $self instvar agent stopped
    set stopped 1
    $agent stop
}
proc bounded_application {agent size bounds} {
    set application [new Bounded]
    foreach {name value} [list agent $agent size $size bounds $bounds offered 0 stopped 0] { $application set $name $value }
    return $application
}

# The sender's own variables, one line for each change, beside the packet trace.
proc trace_variables {agent id} {
    global folder
    set file [open [file join $folder tcp$id.txt] w]
    $agent attach $file
    foreach variable {cwnd_ ssthresh_ srtt_} { $agent tracevar $variable }
}

# ---- truth ------------------------------------------------------------------

# What the agents counted: packets sent (with retransmissions), retransmitted packets, and bytes that the sink received.
proc counters {kind agent sink} {
    if {$kind eq "tfrc"} { return "\"sent_packets\": [$agent set ndatapack_], \"sink_bytes\": [$sink set bytes_]" }
    if {$kind in {cbr pareto}} {
        return "\"received_packets\": [$sink set npkts_], \"sink_bytes\": [$sink set bytes_]"
    }
    return "\"sent_packets\": [$agent set ndatapack_], \"retransmitted_packets\": [$agent set nrexmitpack_], \"sink_bytes\": [$sink set bytes_]"
}

proc write_truth {} {
    global agents folder
    set lines {}
    foreach entry $agents {
        foreach {id kind agent sink} $entry break
        lappend lines " \"$id\": {\"kind\": \"$kind\", [counters $kind $agent $sink]}"
    }
    set truth [open [file join $folder truth.json] w]
    puts $truth "{\n[join $lines ",\n"]\n}"
    close $truth
}

proc finish {} {
    global ns trace
    $ns flush-trace
    close $trace
    write_truth
    exit 0
}

# What is made after this leaves no lines, until `trace-all` is called again.
Simulator instproc trace-none {} { $self instvar traceAllFile_; unset traceAllFile_ }

# Of a traced link between a host and its router only what the host sends and what reaches it leaves lines; drops do everywhere.
# Everything else would repeat each packet up to six times.
proc trace_ends {host router} { trace_only $host $router enqT_; trace_only $router $host rcvT_ }
proc trace_only {from to kept} {
    global ns
    foreach kind {enqT_ deqT_ rcvT_} {
        if {$kind ne $kept} { [[$ns link $from $to] set $kind] detach }
    }
}

# ---- losses -----------------------------------------------------------------

# Drop `share` of the packets at random.
proc random_loss {share} {
    set model [new ErrorModel]
    $model unit packet
    $model set rate_ $share
    $model ranvar [new RandomVariable/Uniform]
    $model drop-target [new Agent/Null]
    return $model
}

# ---- run --------------------------------------------------------------------

set ns [new Simulator]
set trace [open $trace_name w]
source [file join [file dirname [info script]] $topology.tcl]
$ns at $opt(duration) finish
$ns run
