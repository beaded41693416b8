"""Closed loop: an algorithm drives a fluid model of the bottleneck that a trace shows, round by round.

`observed` gathers what the trace shows of one flow and of the others beside it; `inference` makes the
bottleneck of it, each of its numbers with its evidence or with the reason why it is not known. `path` is the
bottleneck, `queue` its buffer, `sender` one algorithm at work and `receiver` what reports to it; `fluid` lets
them run. All is deterministic. Inside, times are seconds and sizes bytes of the flow's payload.
"""
