"""Closed loop: run an algorithm against a fluid model of the trace's bottleneck, round by round.

`observed_path` collects the observations of a flow and of its cross traffic; `infer_path` infers the
bottleneck, each value with its evidence or the reason why it is unknown. `path` is the bottleneck, `queue`
its buffer, `sender` a running algorithm, `receiver` the source of its reports; `fluid` runs them. Everything
is deterministic. Internal units are seconds and bytes of the flow's payload.
"""
