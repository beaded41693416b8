"""From a trace to the recordings of its flows: what a rate algorithm needs, and which flows lack it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.recordings import tcp_reports
from tfrctrace.replay.recordings.data_packets import data_packets
from tfrctrace.replay.recordings.rebuilt_receiver import simulated_reports
from tfrctrace.replay.recordings.receiver_reports import counted_reports, is_usable, received_reports
from tfrctrace.replay.recordings.recording import Recording, ReportSeries, Source
from tfrctrace.replay.recordings.sender_losses import with_losses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.table_names import TableName
    from tfrctrace.replay.tfrc import TfrcVariant
    from tfrctrace.trace.trace import Trace

NS_PER_MS: Final = 1_000_000

TABLES: Final[tuple[TableName, ...]] = ("flows", "feedback", "rtt", "losses", "rounds")
"""What is read of a trace beside its packets."""

LEAST_PACKETS: Final = 20
"""Data packets below which there is little to replay: control connections, look-ups."""

_WITH_HANDSHAKE: Final = ("tcp", "dccp")

UNEVEN_SHARE: Final = 0.2
"""How far the payload of packets may differ from the mean before one segment size tells little of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReplayable:
    """A direction of a flow that cannot be replayed."""

    flow: int
    direction: str
    transport: str
    what: str
    """What is missing."""
    hint: str
    """What would supply it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """What a user says of the flows, beside what the trace shows."""

    rtt_ms: float | None = None
    """Round-trip time of flows that do not tell their own."""
    segment_bytes: float | None = None
    """Segment size; None takes what each flow sends."""
    rtt_scale: float = 1.0
    """What every round-trip time is multiplied with."""
    simulate: bool = False
    """Whether reports are simulated also where the trace shows them."""
    least_packets: int = LEAST_PACKETS
    """Data packets that a direction must have."""
    flows: frozenset[int] | None = None
    """Only these; None is all."""


class FlowRecordings:
    """The flows of a trace, read once and recorded as often as somebody asks with other settings."""

    def __init__(self, trace: Trace) -> None:
        """Read the trace: its tables in one pass, its packets in another."""
        import polars as pl

        self._agents = trace.agents

        reading = trace.read(*TABLES)
        self._flows = reading.table("flows").frame()
        self._tcp = tcp_reports.TcpTables(
            rounds=reading.table("rounds").frame(),
            losses=reading.table("losses").frame(),
            rtt=reading.table("rtt").frame(),
        )
        packets = data_packets(trace.packets())
        self._packets: Mapping[tuple[object, ...], pl.DataFrame] = packets.partition_by(
            "flow", "direction", as_dict=True, maintain_order=True
        )
        known = reading.table("feedback").frame().filter(pl.col("received_ns").is_not_null())
        self._reports: Mapping[tuple[object, ...], pl.DataFrame] = known.partition_by(
            "flow", "direction", as_dict=True, maintain_order=True
        )

    def recordings(
        self, choice: RecordingOptions, receivers: Sequence[TfrcVariant]
    ) -> Iterator[Mapping[TfrcVariant, Recording] | NotReplayable]:
        """Give each direction that carries data, recorded once for each of `receivers`, or what it lacks.

        These are senders whose receivers make the reports that the trace does not show; where it shows them
        all recordings are the same one.
        """
        for row in self._flows.iter_rows(named=True):
            key = (row["flow"], row["direction"])
            packets = self._packets.get(key)
            if packets is None or (choice.flows is not None and row["flow"] not in choice.flows):
                continue
            flow = _DataFlow(row, packets)
            first = self._recorded(flow, choice, receivers[0])
            if isinstance(first, NotReplayable):
                yield first
            elif first.source == "reports":
                noted = replace(first, notes=(*first.notes, *self._notes_on(receivers)))
                yield dict.fromkeys(receivers, noted)
            else:
                others = ((one, self._recorded(flow, choice, one)) for one in receivers[1:])
                # what a flow lacks does not depend on its receiver
                made = {one: found for one, found in others if isinstance(found, Recording)}
                yield {receivers[0]: first, **made}

    def _recorded(
        self, flow: _DataFlow, choice: RecordingOptions, chosen: TfrcVariant
    ) -> Recording | NotReplayable:
        least = max(choice.least_packets, 2)
        if flow.packets.height < least:
            return flow.lacks(
                f"it has {_data_packets(flow.packets.height)}, fewer than {least}",
                "a rate needs at least 2, and `--least-packets` says how many are asked for",
            )
        reported = None if choice.simulate else self._reports.get(flow.key)
        if reported is not None and is_usable(reported):
            made = received_reports(reported, flow.packets, choice.rtt_ms, choice.rtt_scale)
            return flow.made("reports", made, choice)
        if flow.transport == "tcp" and not flow.is_two_ended:
            made = tcp_reports.reports_of(
                self._tcp,
                flow.facts,
                flow.packets,
                chosen.for_core(flow.segment_bytes(choice), None),
                given_rtt_ms=choice.rtt_ms,
                rtt_scale=choice.rtt_scale,
            )
            return flow.made("tcp", made, choice)
        simulated = simulated_reports(
            flow.packets,
            flow.segment_bytes(choice),
            chosen,
            self._rtt_ms(flow, choice),
            choice.rtt_scale,
            is_tfrc=flow.transport == "tfrc",
        )
        if flow.transport == "tcp" and simulated.reports is not None:
            known = with_losses(simulated.reports, self._tcp.repairs(flow.facts), flow.packets)
            simulated = replace(simulated, reports=known)
        return flow.made("simulated_reports", simulated, choice)

    def _notes_on(self, receivers: Sequence[TfrcVariant]) -> tuple[str, ...]:
        """Return which parameters change nothing, as they are not those of the receiver that reported."""
        told = (pair for one in receivers for pair in one.receiver_parameters.items())
        idle = dict.fromkeys(name for name, value in told if self._agents.get(name) != value)
        if not idle:
            return ()
        names = " and ".join(f"`{name}`" for name in idle)
        return (
            f"p is what its receiver reported, which {names} cannot change; `--simulate` makes reports anew",
        )

    def _rtt_ms(self, flow: _DataFlow, choice: RecordingOptions) -> tuple[float, str] | None:
        """Return the round-trip time of a flow that does not tell its own, and where it is from."""
        if choice.rtt_ms is not None:
            return choice.rtt_ms, "as given"
        own_ms = flow.facts["rtt_min_ms"]
        if isinstance(own_ms, float):
            return own_ms, "the least of its acknowledgements"
        if flow.is_two_ended:
            return None
        return self._tcp.borrowed_rtt_ms(self._flows, flow.facts)


class _DataFlow:
    """One direction of a flow with its packets."""

    def __init__(self, facts: Mapping[str, object], packets: pl.DataFrame) -> None:
        self.facts = facts
        self.packets = packets
        self.key = (facts["flow"], facts["direction"])
        self.transport = str(facts["transport"])
        self.is_two_ended = bool(packets["is_two_ended"][0])

    def lacks(self, what: str, hint: str) -> NotReplayable:
        flow, direction = self.key
        assert isinstance(flow, int)
        return NotReplayable(
            flow=flow, direction=str(direction), transport=self.transport, what=what, hint=hint
        )

    def segment_bytes(self, choice: RecordingOptions) -> float:
        """Return s: what the user says, the MSS of TCP, else the mean payload (one size is its own mean)."""
        mss = self.facts["mss"]
        if choice.segment_bytes is not None:
            return choice.segment_bytes
        if isinstance(mss, int) and self.transport == "tcp":
            return float(mss)
        sizes = self.packets["payload_bytes"]
        return float(sizes.sum()) / sizes.len()

    def made(self, source: Source, made: ReportSeries, choice: RecordingOptions) -> Recording | NotReplayable:
        if made.reports is None:
            return self.lacks(*(made.lacks or ("it gives no reports", "")))
        return self.recording(source, made.reports, choice, made.notes)

    def recording(
        self, source: Source, reports: pl.DataFrame, choice: RecordingOptions, notes: tuple[str, ...]
    ) -> Recording:
        import polars as pl

        flow, direction = self.key
        assert isinstance(flow, int)
        own_ms = self.facts["handshake_rtt_ms"] if choice.rtt_ms is None else choice.rtt_ms
        handshake_ms = own_ms if self.transport in _WITH_HANDSHAKE else None
        start_ns = int(self.packets["time_ns"][0])
        end_ns = int(self.packets["time_ns"][-1])
        usable = reports.filter(pl.col("time_ns").is_between(start_ns, end_ns))
        return Recording(
            flow=flow,
            direction=str(direction),
            transport=self.transport,
            source=source,
            start_ns=start_ns,
            end_ns=end_ns,
            segment_bytes=self.segment_bytes(choice),
            handshake_rtt_ms=handshake_ms * choice.rtt_scale if isinstance(handshake_ms, float) else None,
            reports=usable,
            sends=self.packets.select("time_ns", pl.col("payload_bytes").cast(pl.UInt32)),
            notes=(*notes, *self._notes_on_size(choice), *_notes_on_end(reports.height - usable.height)),
        )

    def _notes_on_size(self, choice: RecordingOptions) -> tuple[str, ...]:
        s = self.segment_bytes(choice)
        far = (self.packets["payload_bytes"].cast(float) / s - 1).abs() > UNEVEN_SHARE
        share = far.sum() / far.len()
        if choice.segment_bytes is not None or share <= UNEVEN_SHARE:
            return ()
        return (f"{share:.0%} of its packets are far from s = {s:.0f} bytes, with which the equation counts",)


def _notes_on_end(late: int) -> tuple[str, ...]:
    came = "came after its last data packet, where a replay ends"
    return (f"{counted_reports(late)} {came}",) if late else ()


def _data_packets(count: int) -> str:
    return f"{count} data packet{'' if count == 1 else 's'}"
