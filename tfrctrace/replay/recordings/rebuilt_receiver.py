"""Reports where a trace shows none: a receiver is rebuilt from the arrivals of numbered packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.column_arrays import wholes
from tfrctrace.replay.recordings.recording import ReportSeries

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.replay.tfrc import TfrcVariant

UNKNOWN_NS: Final = -(2**63)
"""In place of a time at which a packet arrived: it never did."""


def simulated_reports(
    packets: pl.DataFrame,
    segment_bytes: float,
    chosen: TfrcVariant,
    rtt_ms: tuple[float, str] | None,
    rtt_scale: float,
    *,
    is_tfrc: bool,
) -> ReportSeries:
    """Return the reports of a receiver that gets `packets`, one direction of a flow.

    Where a trace shows both ends, the way back is taken to last as long as the fastest packet took there,
    without the time in queues that the trace shows: a flow may begin while they are full. The packets of
    ns-2's TFRC tell more of it, as long as nobody says otherwise: in slow start one answers each report.
    Elsewhere `rtt_ms` (and where it is from) is the whole round-trip time.
    """
    is_two_ended = bool(packets["is_two_ended"][0])
    numbered = packets if is_two_ended else packets.drop_nulls("sequence")
    # a greeting or a farewell may have no number
    if 2 * numbered.height < packets.height:
        return ReportSeries(
            lacks=(
                "its packets have no sequence numbers, so losses are not known",
                "`--dissect udp:PORT=LAYOUT` describes the header of a private protocol",
            ),
        )
    took = packets["arrived_ns"] - packets["time_ns"]
    # a least round-trip time that is known has what its packet waited
    forward_s = (took - packets["waited_ns"] if rtt_ms is None else took).min()
    if is_two_ended and forward_s is None:
        return ReportSeries(lacks=("none of its packets arrived", "a longer trace may show some"))
    if not is_two_ended and rtt_ms is None:
        return ReportSeries(
            lacks=(
                "it gives no round-trip time",
                "`--rtt 50ms` supplies it, as would a TCP flow of the same path",
            ),
        )
    fastest_s = float(forward_s) / 1e9 if is_two_ended and isinstance(forward_s, int) else 0.0
    whole_s = rtt_ms[0] / 1e3 if rtt_ms else 2 * fastest_s
    whose = rtt_ms[1] if rtt_ms else "twice the fastest way there"
    reverse_s = max(whole_s * rtt_scale - fastest_s, 0.0)
    is_theirs = is_tfrc and chosen.profile == "ns2" and rtt_ms is None and rtt_scale == 1
    until = ", until packets that answer reports show more" if is_theirs else ""
    least_ms = 1e3 * whole_s
    return ReportSeries(
        reports=_reports(numbered, segment_bytes, chosen, reverse_s, is_theirs=is_theirs),
        notes=(f"reports are simulated, with a least round-trip time of {least_ms:.4g} ms ({whose}){until}",),
    )


def _reports(
    packets: pl.DataFrame, segment_bytes: float, chosen: TfrcVariant, reverse_s: float, *, is_theirs: bool
) -> pl.DataFrame:
    import polars as pl

    from tfrctrace.parsers._native import simulate_reports

    arrived = packets["arrived_ns"].fill_null(UNKNOWN_NS)
    # where the fate of each packet is known, its place among all is the number that tells it from a repeat
    number = packets["sequence"] if not packets["is_two_ended"][0] else packets.with_row_index()["index"]
    made = pl.DataFrame(
        simulate_reports(
            chosen.for_core(segment_bytes, None),
            reverse_s=reverse_s,
            is_theirs=is_theirs,
            number=wholes(number.cast(pl.UInt64)),
            sent_ns=wholes(packets["time_ns"]),
            arrived_ns=wholes(arrived),
            payload_bytes=wholes(packets["payload_bytes"]),
            is_marked=wholes(packets["is_marked"].cast(pl.UInt8)),
        )
    )
    event = (pl.col("p") > pl.col("p").shift(1, fill_value=0.0)).cast(pl.UInt32)
    return made.with_columns(
        event.alias("loss_events"),
        pl.max_horizontal("lost_packets", event.cast(pl.UInt64)).alias("lost_packets"),
        pl.lit(0, dtype=pl.UInt32).alias("timeouts"),
        pl.lit(None, dtype=pl.Boolean).alias("is_data_limited"),
    )
