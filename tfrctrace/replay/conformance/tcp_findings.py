"""Where the TCP senders of a trace depart from their specifications, by its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrctrace.replay.conformance import rules
from tfrctrace.replay.conformance.limits import (
    growth_without_data,
    ignored_marks,
    initial_window,
    missing_backoff,
)
from tfrctrace.replay.conformance.windows import window_departures
from tfrctrace.replay.naming.candidates import BBR, CDG
from tfrctrace.replay.naming.of_trace import NOT_LIMITED_BY_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.replay.conformance.rules import Departure
    from tfrctrace.replay.naming.answer import Answer
    from tfrctrace.replay.naming.of_trace import Named, Seen

_OF_DIRECTION: Final = ("flow", "direction")

OF_LOSSES: Final = (*_OF_DIRECTION, "time_ns", "packet", "seq_rel", "class")
OF_TCP: Final = (*_OF_DIRECTION, "initial_window_bytes")
OF_FLOWS: Final = (*_OF_DIRECTION, "cwr_packets")
"""Columns of the tables of losses, connections and flows that are needed."""


def tcp_findings(
    every_named: Iterable[Named], losses: Iterable[pl.DataFrame], *, tcp: pl.DataFrame, flows: pl.DataFrame
) -> pl.DataFrame:
    """Return departures of TCP senders as rows of the table of findings, of captures at the sender.

    `every_named` are directions, and `losses` all of those that were captured there.
    """
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    retransmitted = pl.concat(losses).partition_by(_OF_DIRECTION, as_dict=True, include_key=False)
    initial = _by_direction(tcp, "initial_window_bytes")
    reduced = _by_direction(flows, "cwr_packets")
    found = []
    for named in every_named:
        if named.seen is None or named.is_estimated:
            continue
        losses_of = retransmitted.get(named.key)
        own = _Direction(
            named.seen,
            named.answer,
            initial.get(named.key),
            reduced.get(named.key),
            [] if losses_of is None else losses_of.rows(named=True),
        )
        found += [_row(named.key, one) for one in _departures(own)]
    # those of a direction are in order of time
    return pl.DataFrame(found, schema=polars_schema("findings"), orient="row").sort(
        _OF_DIRECTION, maintain_order=True
    )


class _Direction(NamedTuple):
    """What a trace shows of a direction, at its sender."""

    seen: Seen
    answer: Answer
    initial_window_bytes: int | None
    cwr_packets: int | None
    losses: Sequence[Mapping[str, Any]]


def _by_direction(table: pl.DataFrame, column: str) -> dict[tuple[int, str], int | None]:
    rows = table.select(*_OF_DIRECTION, column).iter_rows()
    return {(flow, direction): value for flow, direction, value in rows}


def _departures(own: _Direction) -> Iterator[Departure]:
    """Give all departures of a direction, in order of time."""
    seen, names = own.seen, own.answer.names
    rule = rules.CUBIC_WITHOUT_DATA if names == ("cubic",) else rules.GROWTH_WITHOUT_DATA
    found = [
        *initial_window(own.initial_window_bytes, seen.rounds[0], seen.segment_bytes),
        *missing_backoff(own.losses),
        *growth_without_data(seen.rounds, seen.segment_bytes, rule),
    ]
    # BBR's flight is not a window, and Linux lets it ignore marks
    if names != (BBR,):
        found += ignored_marks(seen.rounds, own.cwr_packets)
    if own.answer.reason != NOT_LIMITED_BY_PATH and names not in {(BBR,), (CDG,)}:
        found += window_departures(seen, names)
    yield from sorted(found, key=lambda one: one.at)


def _row(key: tuple[int, str], one: Departure) -> tuple[Any, ...]:
    rule = one.rule
    source = (rule.finding, "sender", rule.rule, rule.level)
    return (*key, *one.at, *source, one.value, one.limit, rule.unit)
