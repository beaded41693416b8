"""Rounds of senders that logged their congestion window, in traces that show none, such as ns-2's."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.replay.naming.of_trace import FACTS, MOST_ROUNDS, OTHER_WAY, seen_of
from tfrctrace.replay.recordings.sender_losses import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import polars as pl

    from tfrctrace.replay.naming.of_trace import Seen
    from tfrctrace.trace.tables import Tables

_KEYS: Final = ("flow", "direction")

_LOG_STEP_NS: Final = 10_000
"""ns-2 prints the times of variables to 10 us."""

_MOST_SEGMENTS: Final = 2**30
"""No window is larger, even with one byte in each segment (RFC 7323 section 2.3)."""


def logged_directions(
    trace: Tables, wanted: Collection[tuple[int, str]]
) -> Iterator[tuple[tuple[int, str], Seen]]:
    """Give what the sender's log tells of the windows of the wanted directions that have one."""
    import polars as pl

    windows = trace.variables.filter(name="cwnd", unit="packets").sort("time_ns", maintain_order=True)
    if windows.is_empty():
        return
    is_possible = pl.col("value").is_between(0, _MOST_SEGMENTS, closed="right")
    windows = windows.with_columns(pl.when(is_possible).then("value").alias("value"))
    rtts, losses = (
        samples.join(windows, on=_KEYS, how="semi")
        .sort("time_ns", maintain_order=True)
        .partition_by(_KEYS, as_dict=True)
        for samples in (trace.rtt.filter(method="ack"), trace.losses)
    )
    no_losses = trace.losses.clear()
    facts = {(row["flow"], row["direction"]): row for row in trace.table("flows").rows(FACTS)}
    for (flow, direction), window in windows.group_by(_KEYS, maintain_order=True):
        key = (flow, direction)
        own, other = (facts.get((flow, way)) for way in (direction, OTHER_WAY[direction]))
        if key not in wanted or key not in rtts or own is None or other is None:
            continue
        # ns-2's SYN counts as a segment, and has no payload
        seen = seen_of([], {**own, "data_segments": own["data_packets"]}, other)
        log = _Log(rtts[key], losses.get(key, no_losses), window)
        rounds = log.rounds(seen.segment_bytes, seen.segments_per_ack)
        yield key, replace(seen, rounds=list(rounds))


@dataclass(slots=True)
class _Log:
    """Samples of one direction, in order of time."""

    rtts: pl.DataFrame
    losses: pl.DataFrame
    windows: pl.DataFrame

    def rounds(self, segment_bytes: float, segments_per_ack: float) -> Iterator[dict[str, Any]]:
        """Give the rounds, with `OF_ROUNDS`, `cwnd_bytes` and `cause`.

        Each ends with the first acknowledgement of what was sent since it began. A repair begins one, and
        lasts until what was sent after it was acknowledged.
        """
        ends, rtts, packets = (self.rtts[name].to_list() for name in ("time_ns", "rtt_ns", "packet"))
        sent = [end - rtt for end, rtt in zip(ends, rtts, strict=True)]
        lost, classes = (self.losses[name].to_list() for name in ("time_ns", "class"))
        begin, place, is_repair = sent[0], 0, False
        for _ in range(MOST_ROUNDS):
            last = next((one for one in range(place, len(sent)) if sent[one] >= begin), None)
            if last is None:
                return
            first_lost, until = bisect_left(lost, begin), bisect_left(lost, ends[last])
            loses = first_lost < until
            starts_repair = loses and not is_repair and lost[first_lost] > begin
            is_repair = loses and not starts_repair
            end = lost[first_lost] if starts_repair else ends[last]
            after = bisect_left(ends, end) if starts_repair else last + 1
            repair = "timeout" if TIMEOUT in classes[first_lost:until] else "recovery"
            known = max(after - 1, 0)
            window = self._window_bytes(end, segment_bytes)
            yield {
                "time_ns": begin,
                "packet": packets[known],
                "duration_ms": (end - begin) / 1e6,
                "flight_bytes": self._window_bytes(begin, segment_bytes),
                "cwnd_least_bytes": window,
                "cwnd_bytes": window,
                "delivered_bytes": (after - place) * segments_per_ack * segment_bytes,
                "rtt_ms": rtts[known] / 1e6,
                "ece_packets": 0,
                "repair": repair if is_repair else None,
                "rtt_before_repair_s": rtts[max(place - 1, 0)] / 1e9 if is_repair else None,
                "cause": None,
            }
            begin, place = end, after
            is_repair = is_repair or starts_repair

    def _window_bytes(self, time_ns: int, segment_bytes: float) -> float | None:
        """Return the window that was logged last before what happened at a time; None if it is impossible."""
        place = self.windows["time_ns"].search_sorted(time_ns - _LOG_STEP_NS) - 1
        window = None if place < 0 else self.windows["value"][place]
        return None if window is None else window * segment_bytes
