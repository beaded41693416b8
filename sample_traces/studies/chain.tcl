# A chain of wired hops, with hosts behind them: what `stations` and `hops` have in common.
#
# Options: bandwidths and delay of the hops, one bandwidth for each; queue (packets) of each end of a hop; host_bandwidth and
# host_delay of the link between a host and its hop. Only the ends are traced: the hops between would repeat every packet.

proc hop {a b bandwidth} {
    global ns opt
    $ns duplex-link $a $b $bandwidth $opt(delay) DropTail
    $ns queue-limit $a $b $opt(queue)
    $ns queue-limit $b $a $opt(queue)
    trace_only $a $b none
    trace_only $b $a none
}

# Join `first` and the routers, one hop after the other.
proc chain {first routers} {
    global opt
    foreach router $routers bandwidth $opt(bandwidths) {
        hop $first $router $bandwidth
        set first $router
    }
}

proc join_host {host router} {
    global ns opt
    $ns duplex-link $host $router $opt(host_bandwidth) $opt(host_delay) DropTail
    $ns queue-limit $router $host $opt(queue)
    trace_ends $host $router
}
