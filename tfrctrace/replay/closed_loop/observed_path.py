"""Observations of one flow's path: round-trip times, losses, and rates of this and of other flows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.closed_loop.outages import outages
from tfrctrace.replay.naming.of_trace import OTHER_WAY
from tfrctrace.replay.recordings.direction_rows import DirectionRows
from tfrctrace.replay.recordings.sender_losses import TIMEOUT, repairs, seems_needed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import polars as pl

    from tfrctrace.replay.closed_loop.outages import Span
    from tfrctrace.replay.recordings.recording import Recording
    from tfrctrace.trace.passes import TableName
    from tfrctrace.trace.tables import Tables

WINDOW_RTTS: Final = 5
"""Width of the windows for rates, in minimum round-trip times."""

LEAST_STEP_NS: Final = 100_000
"""Minimum step, as a LAN's round-trip time is shorter than a packet."""

MOST_STEPS: Final = 500_000
"""Most steps of a flow: as many as a run of the model has rounds."""

NS_PER_MS: Final = 1_000_000
BOTH_ENDS: Final = "both"

_OF_DIRECTION: Final = ("flow", "direction")
_COLUMNS: Final[Mapping[TableName, tuple[str, ...]]] = {
    "flows": (*_OF_DIRECTION, "vantage", "payload_bytes", "wire_bytes", "receive_window_max_bytes"),
    "feedback": (*_OF_DIRECTION, "received_ns", "rtt_ms"),
    "rtt": (*_OF_DIRECTION, "time_ns", "rtt_ns"),
    "losses": (*_OF_DIRECTION, "time_ns", "class", "evidence", "spurious"),
    "loss_events": (*_OF_DIRECTION, "lost_ns", "packets"),
    "rounds": (*_OF_DIRECTION, "time_ns", "duration_ms", "delivered_bytes", "repair"),
}
"""What is read of each table."""


class PathTables:
    """The tables of a trace that show paths, each read once for all flows."""

    def __init__(self, trace: Tables) -> None:
        """Take a trace."""
        self.trace = trace
        self._rows: dict[TableName, DirectionRows] = {}

    def rows(self, name: TableName, flow: int, direction: str) -> pl.DataFrame:
        """Return the rows of one direction in a table."""
        if name not in self._rows:
            self._rows[name] = DirectionRows(self.trace.table(name).frame(_COLUMNS[name]))
        return self._rows[name].of({"flow": flow, "direction": direction})

    def of(self, name: TableName, recording: Recording) -> pl.DataFrame:
        """Return the rows of a recorded direction in a table."""
        return self.rows(name, recording.flow, recording.direction)

    @cached_property
    def data_directions(self) -> pl.DataFrame:
        """Flow and data direction, which is the one with more payload."""
        import polars as pl

        # the payload of a direction is not known if a header in it was cut
        size = pl.coalesce("payload_bytes", "wire_bytes")
        return (
            self.trace.table("flows")
            .frame(_COLUMNS["flows"])
            .filter(size > 0)
            .sort(size, descending=True, maintain_order=True)
            .unique("flow", keep="first", maintain_order=True)
            .select(_OF_DIRECTION)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPath:
    """One direction of a flow, and its cross traffic. Rates are bit/s of payload."""

    start_ns: int
    """First and last data packet."""
    end_ns: int
    segment_bytes: float
    packets: int
    """Data packets sent."""
    vantage: str | None
    """Vantage point, as in the flow table."""
    rtts: pl.DataFrame
    """`time_ns` and `rtt_ms` of each sample of data, in order of time."""
    losses: pl.DataFrame
    """`packets` lost together, and `rtt_ms`, the round-trip time of those that passed beside them."""
    windows: pl.DataFrame
    """`time_ns` (start), `own_bps` and `others_bps` of each whole window, and whether the flow `is_repairing`
    losses then; empty without round-trip times. The others count in this flow's share of payload, since
    capacity is given in its payload."""
    width_ns: int
    others: pl.DataFrame
    """`time_ns` and `bps`: what others sent that do not react, in steps of a round-trip time."""
    receive_window_bytes: float | None
    """Largest window that the receiver announced."""
    outages: tuple[Span, ...] = ()
    """Outages; known only from a trace of both ends."""
    timeouts_s: tuple[float, ...] = ()
    """Time that a TCP sender's timer ran before each of its retransmissions."""


def observe_path(
    shown: PathTables, recording: Recording, reacting: Collection[tuple[int, str]] = ()
) -> ObservedPath:
    """Return the observations of the recorded flow, of whose others some are `reacting`."""
    import polars as pl

    facts, payload_share = _flow_facts(shown, recording)
    receive_window = _receive_window_bytes(shown, recording)
    rtts = _rtts(shown, recording)
    smallest_ms = rtts["rtt_ms"].min()
    vantage = facts["vantage"]
    rtt_ns, rates = LEAST_STEP_NS, _no_rates()
    if isinstance(smallest_ms, float):
        least_ns = max(LEAST_STEP_NS, (recording.end_ns - recording.start_ns) // MOST_STEPS)
        rtt_ns = max(round(smallest_ms * NS_PER_MS), least_ns)
        rates = _rates(shown, recording, rtt_ns, reacting, is_two_ended=vantage == BOTH_ENDS)
        rates = rates.with_columns(pl.col("own_bps", "others_bps", "recorded_bps") * payload_share)
        if vantage != BOTH_ENDS:
            rates = _as_acknowledged(rates, shown.of("rounds", recording), rtt_ns)
    width_ns = WINDOW_RTTS * rtt_ns
    windows = _windows(rates, recording, width_ns)
    rounds = shown.of("rounds", recording)
    return ObservedPath(
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        segment_bytes=recording.segment_bytes,
        packets=recording.sends.height,
        vantage=vantage if isinstance(vantage, str) else None,
        rtts=rtts,
        losses=_losses(shown, recording, rtts),
        windows=windows.with_columns(is_repairing=_is_repairing(windows, rounds, width_ns)),
        width_ns=width_ns,
        others=rates.select("time_ns", pl.col("recorded_bps").alias("bps")),
        receive_window_bytes=receive_window,
        outages=outages(rates, recording.sends, rtt_ns) if vantage == BOTH_ENDS else (),
        timeouts_s=_timeouts_s(shown, recording, rtts),
    )


def _no_rates() -> pl.DataFrame:
    import polars as pl

    rates = dict.fromkeys(("own_bps", "others_bps", "recorded_bps"), pl.Float64())
    return pl.DataFrame(schema={"time_ns": pl.Int64(), **rates})


def _flow_facts(shown: PathTables, recording: Recording) -> tuple[Mapping[str, object], float]:
    """Return the flow's data row and the share of payload in its frames."""
    facts = shown.of("flows", recording).row(0, named=True)
    payload_bytes = facts["payload_bytes"]
    if payload_bytes is None:  # a header was cut: the payload of the other packets is known
        payload_bytes = recording.sends["payload_bytes"].sum()
    return facts, payload_bytes / facts["wire_bytes"]


def _receive_window_bytes(shown: PathTables, recording: Recording) -> float | None:
    """Return the largest window that the receiver of the data announced, in its own direction."""
    of_receiver = shown.rows("flows", recording.flow, OTHER_WAY[recording.direction])
    largest = of_receiver["receive_window_max_bytes"].max()
    return float(largest) if isinstance(largest, int) else None


def _rtts(shown: PathTables, recording: Recording) -> pl.DataFrame:
    """Return the samples from reports if there are any, else from acknowledgements.

    Samples of packets up to the first data packet are left out: the SYN is smaller.
    """
    import polars as pl

    reported = shown.of("feedback", recording).filter(pl.col("rtt_ms").is_not_null())
    if not reported.is_empty():
        return reported.select(pl.col("received_ns").alias("time_ns"), "rtt_ms").sort("time_ns")
    return (
        shown.of("rtt", recording)
        .filter(pl.col("time_ns") - pl.col("rtt_ns") > recording.start_ns)
        .select("time_ns", (pl.col("rtt_ns") / NS_PER_MS).alias("rtt_ms"))
        .sort("time_ns")
    )


def _losses(shown: PathTables, recording: Recording, rtts: pl.DataFrame) -> pl.DataFrame:
    """Return the losses detected by TFRC's receiver or repaired by TCP."""
    import polars as pl

    if recording.source == "reports":
        events = shown.of("loss_events", recording).filter(pl.col("lost_ns").is_not_null()).sort("lost_ns")
        # one sample in a round-trip time: the queue was as long as before the loss or after it
        samples = rtts.rename({"time_ns": "lost_ns"})
        before = events.join_asof(samples, on="lost_ns", strategy="backward")["rtt_ms"]
        after = events.join_asof(samples, on="lost_ns", strategy="forward")["rtt_ms"]
        longest = pl.max_horizontal(before, after).alias("rtt_ms")
        return events.select(pl.col("packets").cast(pl.UInt32), longest)
    # the last acknowledgement before the first repair of a window is for the packet before the one lost; when
    # the others are repaired, the queue that all of them met may be shorter
    repaired = repairs(shown.of("losses", recording)).select("time_ns")
    events = recording.reports.select(first_ns="lost_ns").drop_nulls()
    of_event = repaired.join_asof(events, left_on="time_ns", right_on="first_ns", strategy="backward")
    at_repair = of_event.join_asof(rtts, on="time_ns", strategy="backward")
    first = rtts.rename({"time_ns": "first_ns", "rtt_ms": "first_rtt_ms"})
    at_loss = at_repair.join_asof(first, on="first_ns", strategy="backward", check_sortedness=False)
    longest = pl.max_horizontal("rtt_ms", "first_rtt_ms").alias("rtt_ms")
    return at_loss.select(pl.lit(1, dtype=pl.UInt32).alias("packets"), longest)


def _timeouts_s(shown: PathTables, recording: Recording, rtts: pl.DataFrame) -> tuple[float, ...]:
    """Return how long a TCP sender's timer ran before each retransmission that it sent.

    It began with the last acknowledgement of new data (RFC 6298 section 5.3), as far as one gives a
    round-trip time: those of repeats do not, after which the time is too long.
    """
    import numpy as np
    import polars as pl

    of_timer = (pl.col("class") == TIMEOUT) & (pl.col("evidence") == "timer") & seems_needed()
    repeats = shown.of("losses", recording).filter(of_timer)["time_ns"].sort().to_numpy()
    acknowledged = rtts["time_ns"].to_numpy()
    before = np.searchsorted(acknowledged, repeats, "left")
    known = before > 0
    return tuple(((repeats[known] - acknowledged[before[known] - 1]) / 1e9).tolist())


def _rates(
    shown: PathTables,
    recording: Recording,
    rtt_ns: int,
    reacting: Collection[tuple[int, str]],
    *,
    is_two_ended: bool,
) -> pl.DataFrame:
    """Return the rates of this flow, of all others that send data, and of those that stay as recorded.

    They are in steps of a round-trip time.
    """
    import polars as pl

    bits = _arrival_rates(shown.trace, rtt_ns) if is_two_ended else _capture_rates(shown.trace, rtt_ns)
    is_own = (pl.col("flow") == recording.flow) & (pl.col("direction") == recording.direction)
    does_react = pl.any_horizontal(
        pl.lit(value=False),
        *((pl.col("flow") == flow) & (pl.col("direction") == direction) for flow, direction in reacting),
    )
    rate = pl.col("bps")
    return (
        bits.join(shown.data_directions, on=_OF_DIRECTION, how="semi")
        .filter(pl.col("time_ns").is_between(recording.start_ns - rtt_ns, recording.end_ns))
        .group_by("time_ns")
        .agg(
            rate.filter(is_own).sum().alias("own_bps"),
            rate.filter(~is_own).sum().alias("others_bps"),
            rate.filter(~is_own & ~does_react).sum().alias("recorded_bps"),
        )
        .sort("time_ns")
        .upsample("time_ns", every=f"{rtt_ns}i")
        .with_columns(pl.col("own_bps", "others_bps", "recorded_bps").fill_null(0.0))
    )


def _as_acknowledged(rates: pl.DataFrame, rounds: pl.DataFrame, rtt_ns: int) -> pl.DataFrame:
    """Return the rates with that of a TCP flow as it was acknowledged: a window is sent in bursts."""
    import numpy as np
    import polars as pl

    if rounds.is_empty():
        return rates
    ends = (rounds["time_ns"] + (rounds["duration_ms"] * NS_PER_MS).cast(pl.Int64)).to_numpy()
    totals = rounds["delivered_bytes"].cum_sum().to_numpy()
    starts = rates["time_ns"].to_numpy()
    steps = np.interp(np.append(starts, starts[-1:] + rtt_ns), ends, totals, left=0)
    return rates.with_columns(pl.Series("own_bps", np.diff(steps) * 8e9 / rtt_ns))


def _windows(rates: pl.DataFrame, recording: Recording, width_ns: int) -> pl.DataFrame:
    """Return the rates in the wider windows that are within the flow."""
    import polars as pl

    start = (pl.col("time_ns") // width_ns * width_ns).alias("time_ns")
    return (
        rates.group_by(start)
        .agg(pl.col("own_bps", "others_bps").sum() / WINDOW_RTTS)
        .filter(pl.col("time_ns") >= recording.start_ns, pl.col("time_ns") + width_ns <= recording.end_ns)
        .sort("time_ns")
    )


def _is_repairing(windows: pl.DataFrame, rounds: pl.DataFrame, width_ns: int) -> pl.Series:
    """Return in which of the windows the flow repairs losses."""
    import numpy as np
    import polars as pl

    repairing = rounds.filter(pl.col("repair").is_not_null())
    starts = repairing["time_ns"]
    ends = starts + (repairing["duration_ms"] * NS_PER_MS).cast(pl.Int64)
    begun = np.searchsorted(starts.to_numpy(), (windows["time_ns"] + width_ns).to_numpy(), "left")
    ended = np.searchsorted(ends.to_numpy(), windows["time_ns"].to_numpy(), "right")
    return pl.Series(begun > ended, dtype=pl.Boolean)


def _arrival_rates(trace: Tables, width_ns: int) -> pl.DataFrame:
    """Return the rates of received packets, if the trace shows packets at their destination."""
    import polars as pl

    from tfrctrace.metrics.flow.arrivals import COLUMNS, arrival_bins

    bits = pl.col("received_bytes") * 8e9 / pl.col("width_ns")
    return arrival_bins(trace.packets(COLUMNS), width_ns).with_columns(bits.alias("bps"))


def _capture_rates(trace: Tables, width_ns: int) -> pl.DataFrame:
    """Return the rates at the capture point, without rows where nothing was captured."""
    from tfrctrace.metrics.flow.throughput import with_rates

    return with_rates(trace.counted("throughput", width_ns)).rename({"throughput_bps": "bps"})
