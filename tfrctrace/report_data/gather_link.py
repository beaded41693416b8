"""The tables of a link for a report: hosts or networks over time, from one more pass over the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.memory import trim_heap
from tfrctrace.trace.time_zero import YEAR_NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.link import LinkTables
    from tfrctrace.trace.tables import Tables

_MOST_HOSTS: Final = 1_000
"""Hosts that are counted one by one; of more, their networks are."""

_PREFIXES: Final = ("prefix/24/64", "prefix/16/48", "prefix/8/32")

_MOST_INTERVALS: Final = 240
_LEAST_INTERVALS: Final = 60

_MOST_ROWS: Final = 100_000
"""Intervals of all hosts together; many hosts are drawn in wider ones."""

_PACKETS_IN_INTERVAL: Final = 10
"""Mean packets of the link in an interval; with fewer, only single packets would be seen."""

_LEAST_COVERED: Final = 0.02
"""Share of the time that inputs must cover; others have no course in common."""


def gather_link(trace: Tables, hosts: pl.Series, sources: Sequence[Mapping[str, Any]]) -> LinkTables | None:
    """Return the tables of a link with these hosts; None if no packet counts, or there is no second pass.

    Inputs whose times have nothing in common are one interval.
    """
    from tfrctrace.base.grouping import Grouping, parse_grouping
    from tfrctrace.metrics.link import interval_ns, link_tables
    from tfrctrace.trace.gather_groups import gather_groups

    if trace.is_pair:
        sources = sources[:1]  # whose clock times are of
    span_ns = _common_span_ns(sources, is_one=trace.is_joined)
    if trace.is_read_once or hosts.is_empty():
        return None
    by, groups = _grouped_by(hosts)
    packets = sum(source["packets"] for source in sources)
    most = min(max(_MOST_ROWS // groups, _LEAST_INTERVALS), _MOST_INTERVALS)
    most = min(most, max(packets // _PACKETS_IN_INTERVAL, 1))
    grouping: Grouping = parse_grouping(by, f"{interval_ns(span_ns, most)}ns" if span_ns else None)
    found = gather_groups(trace, grouping)
    # it has every flow once more
    trace.forget(trace.read_groups(grouping))
    trim_heap()
    # no packet of a simulation may be seen at the layer that is asked for
    return None if found.rows.is_empty() else link_tables(found)


def _common_span_ns(sources: Sequence[Mapping[str, Any]], *, is_one: bool) -> int:
    """Return the time that the inputs cover together; 0 if their clocks have nothing in common."""
    spans = [
        (source["start_ns"], source["end_ns"])
        for source in sources
        if source["start_ns"] is not None and source["end_ns"] is not None
    ]
    if not spans:
        return 0
    span_ns = max(end for _, end in spans) - min(start for start, _ in spans)
    covered_ns = sum(end - start for start, end in spans)
    simulated = sum(start < YEAR_NS for start, _ in spans)
    is_common = is_one or len(spans) == 1 or (not simulated and covered_ns >= _LEAST_COVERED * span_ns)
    return span_ns if is_common else 0


def _grouped_by(hosts: pl.Series) -> tuple[str, int]:
    """Return the finest groups of hosts of which there are few enough, and how many."""
    by, found = "host", len(hosts)
    if found <= _MOST_HOSTS:
        return by, found
    for by in _PREFIXES:
        octets, groups_of_16_bit = (int(length) for length in by.split("/")[1:])
        found = hosts.str.extract(
            rf"^((?:[0-9]+\.){{{octets // 8}}}|(?:[0-9a-f]*:){{1,{groups_of_16_bit // 16}}})"
        ).n_unique()
        if found <= _MOST_HOSTS:
            return by, found
    return by, found
