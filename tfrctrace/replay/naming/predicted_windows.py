"""Observed windows beside those that the best two candidates predict, for figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrctrace.replay.naming.answer import likelihood, predicted_by
from tfrctrace.replay.naming.candidates import possible_candidates
from tfrctrace.replay.naming.observations import Settled, shows_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from tfrctrace.replay.naming.of_trace import Named


def predicted_windows(directions: Iterable[Named]) -> pl.DataFrame:
    """Return the predictions of the best two candidates that differ, of directions with windows."""
    import polars as pl

    rows = [row for named in directions for row in _rows(named)]
    types = {
        "flow": pl.UInt32,
        "direction": pl.String,
        "congestion_control": pl.String,
        "time_ns": pl.Int64,
        "cwnd_bytes": pl.Float64,
        "predicted_bytes": pl.Float64,
    }
    return pl.DataFrame(rows, schema=types, orient="row")


def _rows(named: Named) -> Iterator[tuple[Any, ...]]:
    seen = named.seen
    if seen is None or not named.answer.rounds:
        return
    observed = seen.observed()
    shown = [one for one in observed if shows_window(one)]
    found = predicted_by(
        possible_candidates(has_ecn=seen.has_ecn), observed, seen.start, seen.segments_per_ack
    )
    best, *others = sorted(found, key=lambda name: -likelihood(found[name]))
    # a second one that is equal here would show nothing
    second = next((name for name in others if found[name] != found[best]), None)
    for name in filter(None, (best, second)):
        for one, made in zip(shown, found[name], strict=True):
            if not isinstance(one, Settled):
                sizes = (made.observed * seen.segment_bytes, made.predicted * seen.segment_bytes)
                yield (*named.key, name, one.at.time_ns, *sizes)
