"""Simulate the reports of a receiver from the arrivals of numbered packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.column_arrays import wholes
from tfrctrace.replay.recordings.recording import ReportSeries

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.replay.tfrc import TfrcVariant

UNKNOWN_NS: Final = -(2**63)
"""Stands for the arrival of a packet or report that was lost."""

NS_PER_MS: Final = 1_000_000


def simulated_reports(
    packets: pl.DataFrame,
    segment_bytes: float,
    chosen: TfrcVariant,
    path: ReturnPath,
    rtt_scale: float,
    *,
    is_tfrc: bool,
) -> ReportSeries:
    """Return the reports of a receiver that gets `packets`, one direction of a flow.

    They get back as the trace's own reports did. Without any, the return path takes what completes the
    given round-trip time, or, where a trace shows both ends, as long as the fastest packet took forward,
    without its time in queues: a flow may begin while they are full. Packets of ns-2's TFRC reveal more: in
    slow start it sends one at each report.
    """
    is_two_ended = bool(packets["is_two_ended"][0])
    numbered = packets if is_two_ended else packets.drop_nulls("sequence")
    # the first and the last packet of a flow may have no number
    if 2 * numbered.height < packets.height:
        return ReportSeries(
            lacks=(
                "its packets have no sequence numbers, so losses are not known",
                "`--dissect udp:PORT=LAYOUT` describes the header of a private protocol",
            ),
        )
    took = packets["arrived_ns"] - packets["time_ns"]
    # a given least round-trip time includes the time its packet waited
    way_ns = took - packets["waited_ns"] if path.rtt_ms is None else took
    # a clock that goes back makes some of them negative
    forward_ns = way_ns.filter(way_ns >= 0).min()
    if is_two_ended and forward_ns is None:
        return ReportSeries(lacks=("none of its packets arrived", "a longer trace may show some"))
    fastest_s = forward_ns / 1e9 if is_two_ended and isinstance(forward_ns, int) else 0.0
    own = _scaled(path.passages(is_two_ended=is_two_ended), fastest_s, rtt_scale)
    if not own.is_empty():
        reports = _reports(numbered, segment_bytes, chosen, fastest_s, own, reveals_arrivals=False)
        return ReportSeries(reports=reports, notes=(_note_on_own(own),))
    if not is_two_ended and path.rtt_ms is None:
        return ReportSeries(
            lacks=(
                "it gives no round-trip time",
                "`--rtt 50ms` supplies it, as would a TCP flow of the same path",
            ),
        )
    whole_s = 2 * fastest_s if path.rtt_ms is None else path.rtt_ms / 1e3
    least_s = max(whole_s * rtt_scale - fastest_s, 0.0)
    reveals_arrivals = is_tfrc and chosen.profile == "ns2" and path.rtt_ms is None and rtt_scale == 1
    until = ", until packets that answer reports show more" if reveals_arrivals else ""
    return ReportSeries(
        reports=_reports(numbered, segment_bytes, chosen, least_s, own, reveals_arrivals=reveals_arrivals),
        notes=(
            f"reports are simulated, with a least round-trip time of {1e3 * whole_s:.4g} ms "
            f"({path.origin}){until}; queues and losses on the return path are unknown, so X may be far off",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnPath:
    """What is known of the path from the receiver to the sender."""

    rtt_ms: float | None = None
    """Least round-trip time, if any is known."""
    origin: str = "twice the fastest way there"
    """Where `rtt_ms` comes from."""
    own_reports: pl.DataFrame | None = None
    """The trace's own reports (`tfrctrace.parsers.schema.FEEDBACK`)."""

    def passages(self, *, is_two_ended: bool) -> pl.DataFrame:
        """Return `made_ns` and `arrived_ns` (null if lost) of the trace's own reports.

        Where a trace shows one end only, a report counts as made one round-trip time before its arrival,
        because packets count as arrived when they were sent.
        """
        import polars as pl

        if self.own_reports is None:
            return pl.DataFrame(schema={"made_ns": pl.Int64, "arrived_ns": pl.Int64})
        made_ns = pl.col("time_ns")
        known = self.own_reports
        if not is_two_ended:
            known = known.filter(pl.col("rtt_ms") > 0).drop_nulls("received_ns")
            made_ns = pl.col("received_ns") - (pl.col("rtt_ms") * NS_PER_MS).cast(pl.Int64)
        passages = known.select(made_ns.alias("made_ns"), pl.col("received_ns").alias("arrived_ns"))
        return passages.clear() if passages["arrived_ns"].null_count() == passages.height else passages


def _scaled(passages: pl.DataFrame, forward_s: float, rtt_scale: float) -> pl.DataFrame:
    """Return passages so much longer or shorter that each round-trip time is scaled by `rtt_scale`."""
    import polars as pl

    took = (pl.col("arrived_ns") - pl.col("made_ns")) * rtt_scale + (rtt_scale - 1) * forward_s * 1e9
    arrived = pl.col("made_ns") + took.clip(lower_bound=0).round().cast(pl.Int64)
    return passages if rtt_scale == 1 else passages.with_columns(arrived.alias("arrived_ns"))


def _note_on_own(passages: pl.DataFrame) -> str:
    lost = passages["arrived_ns"].null_count()
    losses = f"; {lost} of {passages.height} were lost, and simulated ones with them" if lost else ""
    return f"reports are simulated; they get back as the trace's own reports did{losses}"


def _reports(
    packets: pl.DataFrame,
    segment_bytes: float,
    chosen: TfrcVariant,
    least_s: float,
    own: pl.DataFrame,
    *,
    reveals_arrivals: bool,
) -> pl.DataFrame:
    import polars as pl

    from tfrctrace.parsers._native import simulate_reports

    # where the trace shows which packets arrived, the index of a packet is its number, which no repeat shares
    number = packets["sequence"] if not packets["is_two_ended"][0] else packets.with_row_index()["index"]
    made = pl.DataFrame(
        simulate_reports(
            chosen.for_core(segment_bytes, None),
            {
                "number": wholes(number.cast(pl.UInt64)),
                "sent_ns": wholes(packets["time_ns"]),
                "arrived_ns": wholes(packets["arrived_ns"].fill_null(UNKNOWN_NS)),
                "payload_bytes": wholes(packets["payload_bytes"]),
                "is_marked": wholes(packets["is_marked"].cast(pl.UInt8)),
            },
            {
                "least_s": least_s,
                "made_ns": wholes(own["made_ns"]),
                "arrived_ns": wholes(own["arrived_ns"].fill_null(UNKNOWN_NS)),
                "reveals_arrivals": reveals_arrivals,
            },
        )
    )
    event = (pl.col("p") > pl.col("p").shift(1, fill_value=0.0)).cast(pl.UInt32)
    return made.with_columns(
        event.alias("loss_events"),
        pl.lit(None, dtype=pl.Int64).alias("lost_ns"),
        pl.max_horizontal("lost_packets", event.cast(pl.UInt64)).alias("lost_packets"),
        pl.lit(0, dtype=pl.UInt32).alias("timeouts"),
        pl.lit(None, dtype=pl.Boolean).alias("is_data_limited"),
    )
