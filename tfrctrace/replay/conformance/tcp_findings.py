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
from tfrctrace.replay.naming.of_trace import NOT_LIMITED_BY_PATH, named_directions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from tfrctrace.replay.conformance.rules import Departure
    from tfrctrace.replay.naming.of_trace import Named

_OF_DIRECTION: Final = ("flow", "direction")

OF_TCP: Final = (*_OF_DIRECTION, "initial_window_bytes")
OF_LOSSES: Final = (*_OF_DIRECTION, "time_ns", "packet", "seq_rel", "class")


def tcp_findings(
    rounds: Iterable[pl.DataFrame],
    stretches: Iterable[pl.DataFrame],
    losses: Iterable[pl.DataFrame],
    *,
    tcp: pl.DataFrame,
    cause_sums: pl.DataFrame,
    flows: pl.DataFrame,
) -> pl.DataFrame:
    """Return departures of TCP senders as rows of the table of findings, of captures at the sender."""
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    own_losses = pl.concat(losses)
    found = []
    for named in named_directions(rounds, stretches, cause_sums, flows, with_others=True):
        if named.seen is None:
            continue
        own = _Direction(named, *(_row_of(table, named.key) for table in (tcp, flows)))
        retransmissions = own_losses.filter(_is_of(named.key)).rows(named=True)
        found += [_row(named.key, one) for one in _departures(own, retransmissions)]
    return pl.DataFrame(found, schema=polars_schema("findings"), orient="row")


class _Direction(NamedTuple):
    """A direction with its windows, and its rows of the tables of connections and of flows."""

    named: Named
    tcp: Mapping[str, Any]
    flow: Mapping[str, Any]


def _is_of(key: tuple[int, str]) -> pl.Expr:
    import polars as pl

    return (pl.col("flow") == key[0]) & (pl.col("direction") == key[1])


def _row_of(table: pl.DataFrame, key: tuple[int, str]) -> Mapping[str, Any]:
    return next(table.filter(_is_of(key)).iter_rows(named=True), {})


def _departures(own: _Direction, losses: Iterable[Mapping[str, Any]]) -> Iterator[Departure]:
    """Give all departures of a direction, in order of time."""
    seen, names = own.named.seen, own.named.answer.names
    if seen is None:
        return
    found = [
        *initial_window(own.tcp, seen.rounds[0], seen.segment_bytes),
        *missing_backoff(losses),
        *growth_without_data(
            seen.rounds,
            seen.segment_bytes,
            rules.CUBIC_WITHOUT_DATA if names == ("cubic",) else rules.GROWTH_WITHOUT_DATA,
        ),
    ]
    # BBR's flight is not a window, and Linux lets it ignore marks
    if names != (BBR,):
        found += ignored_marks(seen.rounds, own.flow.get("cwr_packets"))
    if own.named.answer.reason != NOT_LIMITED_BY_PATH and names not in {(BBR,), (CDG,)}:
        found += window_departures(seen, names)
    yield from sorted(found, key=lambda one: one.at)


def _row(key: tuple[int, str], one: Departure) -> tuple[Any, ...]:
    rule = one.rule
    source = (rule.finding, "sender", rule.rule, rule.level)
    return (*key, *one.at, *source, one.value, one.limit, rule.unit)
