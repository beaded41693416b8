# One SACK connection for 6 s over a link of RATE that loses a share LOSS of its data packets.
# Its window does not fill the queue; nothing is lost in the first 0.5 s, in which the connection opens.
# ns path.tcl SEED RATE LOSS TRACE; the seed draws the losses and when the connection starts.
lassign $argv seed rate loss trace
ns-random $seed
set ns [new Simulator]
set out [open $trace w]
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver $rate 20ms DropTail
$ns queue-limit $sender $receiver 20
$ns trace-queue $sender $receiver $out
$ns trace-queue $receiver $sender $out

set drawn [new RNG]
$drawn seed [expr {7919 * $seed}]
set uniform [new RandomVariable/Uniform]
$uniform use-rng $drawn
set errors [new ErrorModel]
$errors unit pkt
$errors set rate_ 0
$errors ranvar $uniform
$errors drop-target [new Agent/Null]
$ns link-lossmodel $errors $sender $receiver

set tcp [new Agent/TCP/Sack1]
$tcp set packetSize_ 1000
$tcp set window_ 20
$tcp set minrto_ 0.2
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
set start [expr {0.1 + 0.2 * $seed / 100.0}]
$ns at $start "$ftp start"
$ns at 0.5 "$errors set rate_ $loss"
$ns at 6.0 "close $out; puts \"\[$tcp set ndatapack_\] \[$tcp set nrexmitpack_\] \[$sink set bytes_\]\"; exit 0"
$ns run
