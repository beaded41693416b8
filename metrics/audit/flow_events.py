"""Flows as events that are good or bad, by what an incident is about: they have times of their own."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.audit.attribution import main_trouble
from tfrctrace.metrics.audit.edges import Edge, change_between, share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tfrctrace.metrics.audit.attribution import Attribution
    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.audit.signals import SignalKey, Trouble
    from tfrctrace.metrics.objectives import Objective

FLOW_COLUMNS: Final = (
    *("flow", "direction", "transport", "src", "dst", "dst_port", "state", "start_ns", "end_ns"),
    *("payload_bytes", "rtt_p50_ms", "lost_before_capture", "lost_behind_capture", "capture_gap_bytes"),
)
"""What events are made of."""

_OUTSIDE: Final = 6
_INSIDE: Final = 2
"""Widths of an interval outside of an incident and in it, within which begin and end are looked for."""
_SHORT_NS: Final = 60 * 10**9
"""A flow that lasts longer has no time of its own."""
_LEAST_GAPS: Final = 20
"""Of fewer gaps between packets the longest says little of how long others may be."""
_CHANCE: Final = 0.05
_DNS_PORT: Final = 53
_FAILED: Final = ("attempted", "refused", "opening")
"""States of connections that were not established."""


def with_edges_of_flows(
    incident: Incident,
    where: Attribution,
    objectives: Sequence[Objective],
    flows: pl.DataFrame,
    near: Sequence[str] | None,
) -> Incident:
    """Return an incident with the begin and the end that flows around it show, as far as they do."""
    events = _flow_events(flows, main_trouble(incident, objectives), where, near)
    if events is None:
        return incident
    first, last = _edges(incident, events, incident.width_ns)
    is_over = all(stretch.ended == "recovered" for stretch in incident.stretches)
    last = last if is_over else None
    begin_ns = incident.begin_ns if first is None else first.at_ns
    end_ns = incident.end_ns if last is None else last.at_ns
    if begin_ns >= end_ns:
        return incident
    return replace(
        incident,
        begin_ns=begin_ns,
        end_ns=end_ns,
        began_ns=incident.began_ns if first is None else first.span_ns,
        ended_ns=incident.ended_ns if last is None else last.span_ns,
    )


def without_packets(gap: Incident, files_ns: tuple[int, int], flows: pl.DataFrame) -> Incident:
    """Return a silence from the last packet before it to the first one after it.

    `files_ns` is when it began and ended by files that end or begin with it; else flows show it, of which
    none has packets in it. Its cause may have begun later, and ended sooner, by as long as beginnings and
    ends of flows were apart.
    """
    import polars as pl

    times_ns = pl.concat([flows["start_ns"], flows["end_ns"]]).drop_nulls().unique().sort()
    begin_ns, end_ns = files_ns
    if begin_ns == gap.begin_ns:
        begin_ns = max(times_ns.filter(times_ns.is_between(*gap.began_ns)), default=begin_ns)
    if end_ns == gap.end_ns:
        end_ns = min(times_ns.filter(times_ns.is_between(*gap.ended_ns)), default=end_ns)
    before_ns, after_ns = times_ns.filter(times_ns <= begin_ns), times_ns.filter(times_ns >= end_ns)
    wait_ns, rest_ns = _time_to_next_ns(before_ns), _time_to_next_ns(after_ns)
    began_until_ns = gap.began_ns[1] if wait_ns is None else begin_ns + wait_ns
    ended_from_ns = gap.ended_ns[0] if rest_ns is None else end_ns - rest_ns
    return replace(
        gap,
        begin_ns=begin_ns,
        end_ns=end_ns,
        began_ns=(begin_ns, max(begin_ns, min(began_until_ns, end_ns))),
        ended_ns=(min(end_ns, max(ended_from_ns, begin_ns)), end_ns),
    )


def _time_to_next_ns(times_ns: pl.Series) -> int | None:
    """Return the time within which the next of these events comes after 95 % of moments.

    Moments fall into gaps between events in proportion to their length, and anywhere in them (D. R. Cox,
    "Renewal Theory", 1962, section 5.1): `share` of moments have an event within t if that is the share of
    the sum of min(gap, t) in the sum of the gaps. The time since the last event is distributed likewise.
    """
    gaps_ns: list[int] = sorted(times_ns.diff().drop_nulls().to_list())
    if len(gaps_ns) < _LEAST_GAPS:
        return None
    wanted_ns, shorter_ns = (1 - _CHANCE) * sum(gaps_ns), 0
    for place, gap_ns in enumerate(gaps_ns):
        if shorter_ns + (len(gaps_ns) - place) * gap_ns >= wanted_ns:
            return round((wanted_ns - shorter_ns) / (len(gaps_ns) - place))
        shorter_ns += gap_ns
    return None


def _flow_events(
    flows: pl.DataFrame, trouble: Trouble | None, where: Attribution, near: Sequence[str] | None
) -> pl.DataFrame | None:
    """Return `time_ns` and `is_bad` of short flows in order; None if flows do not show this trouble.

    Round-trip times and losses are of all of a flow: its middle counts, give or take `half_ns`. What happens
    to a connection or a question happens at its begin.
    """
    import polars as pl

    is_short = pl.col("end_ns") - pl.col("start_ns") < _SHORT_NS
    rows = flows.filter(is_short.fill_null(value=True))
    if where.hosts:
        rows = rows.filter(pl.any_horizontal(pl.col("src", "dst").is_in(list(where.hosts))))
    found = _judged(rows, trouble, where, near)
    if found is None:
        return None
    half_ns = (pl.col("end_ns") - pl.col("start_ns")) // 2 if trouble in {"delay", "loss"} else pl.lit(0)
    events = found.select(time_ns=pl.col("start_ns") + half_ns, is_bad="is_bad", half_ns=half_ns)
    return events.drop_nulls().sort("time_ns", "is_bad")


def _judged(
    rows: pl.DataFrame, trouble: Trouble | None, where: Attribution, near: Sequence[str] | None
) -> pl.DataFrame | None:
    import polars as pl

    side = _side_of(where, near)
    if where.place == "capture":
        return rows.filter(pl.col("payload_bytes") > 0).with_columns(is_bad=pl.col("capture_gap_bytes") > 0)
    if trouble == "delay":
        return _by_delay(rows, where, side)
    if trouble == "loss":
        received, sent = (side(pl.col(end)) for end in ("dst", "src"))
        is_bad = received & (pl.col("lost_behind_capture") > 0) | sent & (pl.col("lost_before_capture") > 0)
        return rows.filter(pl.col("payload_bytes") > 0, received | sent).with_columns(is_bad=is_bad)
    if trouble == "connections":
        attempts = rows.filter(direction="fwd", transport="tcp")
        return attempts.with_columns(is_bad=pl.col("state").is_in(_FAILED))
    return _by_answers(rows, trouble, where) if trouble in {"requests", "names"} else None


def _by_answers(rows: pl.DataFrame, trouble: Trouble | None, where: Attribution) -> pl.DataFrame:
    import polars as pl

    back = rows.filter(direction="rev").select("flow", back_ns="start_ns", answered="payload_bytes")
    asked = rows.filter(pl.col("payload_bytes") > 0, direction="fwd").join(back, on="flow", how="left")
    is_silent = pl.col("answered").fill_null(0) == 0
    if trouble == "requests":
        return asked.filter(transport="tcp").with_columns(is_bad=is_silent)
    is_slow = pl.col("back_ns") - pl.col("start_ns") > 1e6 * _limit_ms(where, "dns_time")
    return asked.filter(dst_port=_DNS_PORT).with_columns(is_bad=is_silent | is_slow.fill_null(value=False))


def _limit_ms(where: Attribution, key: SignalKey) -> float:
    """Return a duration between the usual one and that of the incident; infinite if it did not get longer."""
    for signal in where.signals:
        before, during = signal.before.value, signal.during.value
        if signal.key == key and signal.has_changed and before is not None and during is not None:
            return math.sqrt(max(before, 1e-3) * during)
    return math.inf


def _side_of(where: Attribution, near: Sequence[str] | None) -> Callable[[pl.Expr], pl.Expr]:
    """Return which addresses are on the side of the place; all if it has none."""
    import polars as pl

    hosts = list(near or ())

    def is_there(address: pl.Expr) -> pl.Expr:
        if where.place == "client side":
            return address.is_in(hosts)
        return ~address.is_in(hosts) if where.place == "server side" else pl.lit(value=True)

    return is_there


def _by_delay(
    rows: pl.DataFrame, where: Attribution, side: Callable[[pl.Expr], pl.Expr]
) -> pl.DataFrame | None:
    import polars as pl

    key: SignalKey = "near_rtt" if where.place == "client side" else "far_rtt"
    limit_ms = _limit_ms(where, key)
    if where.place not in {"client side", "server side"} or math.isinf(limit_ms):
        return None
    timed = rows.filter(pl.col("rtt_p50_ms").is_not_null(), side(pl.col("dst")))
    return timed.with_columns(is_bad=pl.col("rtt_p50_ms") > limit_ms)


def _edges(incident: Incident, events: pl.DataFrame, width_ns: int) -> tuple[Edge | None, Edge | None]:
    """Return when an incident began and ended by events around it, as far as they show it.

    What is usual is taken from those farther away; `width_ns` is that of the intervals which say when it was.
    """
    import polars as pl

    begin_ns, end_ns = incident.begin_ns, incident.end_ns
    times_ns, bad = events["time_ns"].to_list(), events["is_bad"].to_list()
    middle_ns = (begin_ns + end_ns) // 2
    outside_ns, inside_ns = _OUTSIDE * width_ns, _INSIDE * width_ns
    doubt_ns = int(events.select(pl.col("half_ns").median()).item() or 0)

    def within(since_ns: int, until_ns: int) -> slice:
        return slice(bisect_left(times_ns, since_ns), bisect_left(times_ns, until_ns))

    def edge(own: slice, before: float, after: float) -> Edge | None:
        found = change_between(times_ns[own], bad[own], before, after)
        return found and Edge(found.at_ns, (found.span_ns[0] - doubt_ns, found.span_ns[1] + doubt_ns))

    first = bisect_left(times_ns, begin_ns - outside_ns)
    last = bisect_left(times_ns, end_ns + outside_ns)
    usual, ill = share_of([*bad[:first], *bad[last:]]), share_of(bad[within(begin_ns, end_ns)])
    if ill <= usual:
        return None, None
    begins = slice(
        first, bisect_left(times_ns, max(min(begin_ns + inside_ns, middle_ns), begin_ns + width_ns))
    )
    ends = slice(bisect_left(times_ns, min(max(end_ns - inside_ns, middle_ns), end_ns - width_ns)), last)
    return edge(begins, usual, ill), edge(ends, ill, usual)
