"""Make recordings of the flows of a trace, as input of rate algorithms."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.results.replay import NotReplayable
from tfrctrace.replay.column_arrays import constant, in_order_of_time
from tfrctrace.replay.recordings import tcp_reports
from tfrctrace.replay.recordings.data_packets import data_packets
from tfrctrace.replay.recordings.direction_rows import DirectionRows
from tfrctrace.replay.recordings.rebuilt_receiver import ReturnPath, simulated_reports
from tfrctrace.replay.recordings.receiver_reports import counted_reports, is_usable, received_reports
from tfrctrace.replay.recordings.recording import FlowEnds, Recording, ReportSeries, Source
from tfrctrace.replay.recordings.sender_losses import repairs, with_losses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.parsers._native import DirectionSpool
    from tfrctrace.replay.tfrc import TfrcVariant
    from tfrctrace.trace.passes import TableName
    from tfrctrace.trace.tables import Tables

NS_PER_MS: Final = 1_000_000

TABLES: Final[tuple[TableName, ...]] = ("flows", "feedback", "losses")
"""Tables that are read besides what is spooled."""

IGNORED_MARKS: Final = (
    "its packets got congestion marks (ECN), which a sender takes for losses (RFC 3168 section 6.1.2) and a "
    "replay of TCP does not: windows and rates are too large"
)

_FACTS: Final = (
    "flow",
    "direction",
    "transport",
    "src",
    "src_port",
    "dst",
    "dst_port",
    "mss",
    "rtt_min_ms",
    "handshake_rtt_ms",
    "vantage",
    "notes",
    "ce_packets",
    "reported_ce_packets",
)
"""Columns of the table of flows that recordings need."""

LEAST_PACKETS: Final = 20
"""Fewest data packets worth replaying; excludes control connections and look-ups."""

LOSSES: Final = ("flow", "direction", "time_ns", "seq_rel", "class", "spurious")
"""Columns of the table of losses that recordings need."""

_WITH_HANDSHAKE: Final = ("tcp", "dccp")

UNEVEN_SHARE: Final = 0.2
"""Largest deviation of packet sizes from the segment size before a note is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """Settings of the user that complement the trace."""

    rtt_ms: float | None = None
    """Round-trip time of flows without RTT samples."""
    segment_bytes: float | None = None
    """Segment size; None for that of each flow."""
    rtt_scale: float = 1.0
    """Factor applied to every round-trip time."""
    simulate: bool = False
    """Whether reports are simulated even if the trace has them."""
    least_packets: int = LEAST_PACKETS
    """Fewest data packets of a direction."""
    flows: frozenset[int] | None = None
    """The flows to record; None for all."""


class FlowRecordings:
    """The flows of a trace, read once; recordings can be made with several settings."""

    def __init__(self, trace: Tables) -> None:
        """Read the trace."""
        self._agents = trace.agents

        self._reading = reading = trace.read_spooled(*TABLES)
        self._flows = reading.table("flows")
        echoes = self._flows.rows(("flow", "direction", "ece_packets"))
        self._echoing = {(row["flow"], row["direction"]) for row in echoes if row["ece_packets"]}
        """Directions of TCP that echo congestion marks of the other one."""
        self._repairs = DirectionRows(repairs(reading.table("losses").frame(LOSSES)))
        self._reports = DirectionRows(reading.table("feedback").frame())

    def recordings(
        self, choice: RecordingOptions, receivers: Sequence[TfrcVariant]
    ) -> Iterator[Mapping[TfrcVariant, Recording] | NotReplayable]:
        """Yield a recording of each direction with data for each of `receivers`, or why there is none.

        The receivers simulate the reports that the trace does not have; if it has them, all recordings are
        the same. The packets of one direction are in memory at a time.
        """
        least = max(choice.least_packets, 2)
        for facts in self._flows.rows(_FACTS):
            if choice.flows is not None and facts["flow"] not in choice.flows:
                continue
            few = self._few_packets(facts, least)
            if few is not None:
                if few:
                    yield _too_few(facts, few, least)
                continue
            spool = self._reading.spool_of(facts["flow"])
            packets = data_packets(spool, facts["flow"], facts["direction"])
            if packets.is_empty():
                continue
            if packets.height < least:
                yield _too_few(facts, packets.height, least)
                continue
            flow = _DataFlow(facts, packets, spool, is_marked=self._is_marked(facts))
            del packets
            made = self._of_flow(flow, choice, receivers)
            del flow
            yield made
            # the next direction takes its place in memory
            del made

    def _is_marked(self, facts: Mapping[str, Any]) -> bool:
        """Return whether any packet of a direction got a congestion mark: it shows, or is reported."""
        back = "rev" if facts["direction"] == "fwd" else "fwd"
        is_echoed = (facts["flow"], back) in self._echoing
        return bool(is_echoed or facts["ce_packets"] or facts["reported_ce_packets"])

    def _few_packets(self, facts: Mapping[str, Any], least: int) -> int | None:
        """Return how many data packets a direction has if that is known to be fewer than `least`."""
        flow, direction = facts["flow"], facts["direction"]
        spool = self._reading.spool_of(flow)
        seen = spool.count(flow, direction)
        if seen >= least:
            return None
        if not spool.is_simulated(flow, direction):
            return seen
        rows = spool.packets(flow, direction).rows()
        sent = {row["uid"] for row in rows if row["uid"] is not None and row["point"] == "source"}
        return len(sent) + sum(row["uid"] is None for row in rows)

    def _of_flow(
        self, flow: _DataFlow, choice: RecordingOptions, receivers: Sequence[TfrcVariant]
    ) -> Mapping[TfrcVariant, Recording] | NotReplayable:
        first = self._recorded(flow, choice, receivers[0])
        if isinstance(first, NotReplayable):
            return first
        if first.source == "reports":
            noted = replace(first, notes=(*first.notes, *self._notes_on(receivers)))
            return dict.fromkeys(receivers, noted)
        others = ((receiver, self._recorded(flow, choice, receiver)) for receiver in receivers[1:])
        # what is missing does not depend on the receiver
        made = {one: found for one, found in others if isinstance(found, Recording)}
        return {receivers[0]: first, **made}

    def _recorded(
        self, flow: _DataFlow, choice: RecordingOptions, chosen: TfrcVariant
    ) -> Recording | NotReplayable:
        reports = self._reports.of(flow.facts)
        reported = None if reports.is_empty() or choice.simulate else reports.drop_nulls("received_ns")
        if reported is not None and is_usable(reported):
            made = received_reports(reported, flow.packets, choice.rtt_ms, choice.rtt_scale)
            return flow.made("reports", made, choice)
        if flow.transport == "tcp" and not flow.is_two_ended:
            made = tcp_reports.reports_of(
                flow.tcp(self._repairs.of(flow.facts)),
                flow.facts,
                chosen.for_core(flow.segment_bytes(choice), None),
                given_rtt_ms=choice.rtt_ms,
                rtt_scale=choice.rtt_scale,
            )
            return flow.made("tcp", made, choice)
        simulated = simulated_reports(
            flow.packets,
            flow.segment_bytes(choice),
            chosen,
            self._return_path(flow, choice),
            choice.rtt_scale,
            is_tfrc=flow.transport == "tfrc",
        )
        if flow.transport == "tcp" and simulated.reports is not None:
            known = with_losses(simulated.reports, self._repairs.of(flow.facts), flow.packets)
            simulated = replace(simulated, reports=known)
        return flow.made("simulated_reports", simulated, choice)

    def _notes_on(self, receivers: Sequence[TfrcVariant]) -> tuple[str, ...]:
        """Return notes on parameters without effect, because the reports come from a real receiver."""
        parameters = (pair for receiver in receivers for pair in receiver.receiver_parameters.items())
        idle = dict.fromkeys(name for name, value in parameters if self._agents.get(name) != value)
        if not idle:
            return ()
        names = " and ".join(f"`{name}`" for name in idle)
        return (f"p is what the receiver reported, so {names} has no effect; use `--simulate`",)

    def _return_path(self, flow: _DataFlow, choice: RecordingOptions) -> ReturnPath:
        """Return what the trace or the user gives for the path from the receiver to the sender."""
        if choice.rtt_ms is not None:
            return ReturnPath(rtt_ms=choice.rtt_ms, origin="as given")
        found = self._reports.of(flow.facts)
        reports = None if found.is_empty() else found
        own_ms = flow.facts["rtt_min_ms"]
        if isinstance(own_ms, float):
            origin = "the lowest of its acknowledgements"
            return ReturnPath(rtt_ms=own_ms, origin=origin, own_reports=reports)
        borrowed = None if flow.is_two_ended else tcp_reports.borrowed_rtt_ms(self._tcp_rtts, flow.facts)
        if borrowed is None:
            return ReturnPath(own_reports=reports)
        rtt_ms, origin = borrowed
        return ReturnPath(rtt_ms=rtt_ms, origin=origin, own_reports=reports)

    @cached_property
    def _tcp_rtts(self) -> pl.DataFrame:
        """The round-trip times of TCP flows, for those that show none."""
        import polars as pl

        frame = self._flows.frame(tcp_reports.LENDER)
        return frame.filter(pl.col("transport") == "tcp", pl.col("rtt_p50_ms").is_not_null())


class _DataFlow:
    """One direction of a flow with its packets."""

    def __init__(
        self, facts: Mapping[str, Any], packets: pl.DataFrame, spool: DirectionSpool, *, is_marked: bool
    ) -> None:
        self.facts = facts
        self._is_marked = is_marked
        self.packets = packets
        self._spool = spool
        self.key = (facts["flow"], facts["direction"])
        self.transport = str(facts["transport"])
        self.is_two_ended = bool(packets["is_two_ended"][0])

    def tcp(self, repaired: pl.DataFrame) -> tcp_reports.ObservedConnection:
        """Return what the trace shows of it, a direction of TCP, with what was `repaired`."""
        import polars as pl

        return tcp_reports.ObservedConnection(
            packets=self.packets,
            repaired=repaired,
            rounds=pl.DataFrame(self._spool.rounds(*self.key)),
            round_trips=pl.DataFrame(self._spool.round_trips(*self.key)),
        )

    def lacks(self, what: str, hint: str) -> NotReplayable:
        return _lacking(self.facts, what, hint)

    def segment_bytes(self, choice: RecordingOptions) -> float:
        """Return s: the user's, else the MSS of TCP, else the mean payload."""
        mss = self.facts["mss"]
        if choice.segment_bytes is not None:
            return choice.segment_bytes
        if isinstance(mss, int) and self.transport == "tcp":
            return float(mss)
        sizes = self.packets["payload_bytes"]
        return float(sizes.sum()) / sizes.len()

    def made(self, source: Source, made: ReportSeries, choice: RecordingOptions) -> Recording | NotReplayable:
        if made.reports is None:
            return self.lacks(*(made.lacks or ("it has no reports", "")))
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
        reports = in_order_of_time(reports)
        reported_ns = reports["time_ns"].to_numpy()
        first, late = reported_ns.searchsorted(start_ns), reported_ns.searchsorted(end_ns, "right")
        usable = reports.slice(int(first), int(late - first))
        return Recording(
            flow=flow,
            direction=str(direction),
            ends=_ends(self.facts),
            transport=self.transport,
            source=source,
            start_ns=start_ns,
            end_ns=end_ns,
            segment_bytes=self.segment_bytes(choice),
            handshake_rtt_ms=handshake_ms * choice.rtt_scale if isinstance(handshake_ms, float) else None,
            reports=usable,
            sends=pl.DataFrame(
                [
                    self.packets["time_ns"],
                    self.packets["payload_bytes"].cast(pl.UInt32),
                    self._arrives().alias("arrives"),
                ]
            ),
            notes=(
                *notes,
                *self._notes_of_flow(),
                *self._notes_on_size(choice),
                *_notes_on_end(reports.height - usable.height),
            ),
        )

    def _arrives(self) -> pl.Series:
        """Return which packets arrived; null where the trace does not show that."""
        import polars as pl

        if self.is_two_ended or self.facts["vantage"] == "receiver":
            return self.packets["arrived_ns"].is_not_null()
        return constant("arrives", None, pl.Boolean(), self.packets.height)

    def _notes_of_flow(self) -> tuple[str, ...]:
        """Return what a replay of TCP ignores, or what the table of flows notes on a TFRC flow."""
        if self.transport == "tcp":
            return (IGNORED_MARKS,) if self._is_marked else ()
        notes = self.facts["notes"]
        return (notes,) if self.transport == "tfrc" and isinstance(notes, str) else ()

    def _notes_on_size(self, choice: RecordingOptions) -> tuple[str, ...]:
        s = self.segment_bytes(choice)
        far = abs(self.packets["payload_bytes"].to_numpy() / s - 1) > UNEVEN_SHARE
        share = far.mean()
        if choice.segment_bytes is not None or share <= UNEVEN_SHARE:
            return ()
        return (f"{share:.0%} of its packets differ widely in size from the assumed s = {s:.0f} bytes",)


def _ends(facts: Mapping[str, Any]) -> FlowEnds:
    return FlowEnds(
        src=facts["src"], src_port=facts["src_port"], dst=facts["dst"], dst_port=facts["dst_port"]
    )


def _lacking(facts: Mapping[str, Any], what: str, hint: str) -> NotReplayable:
    return NotReplayable(
        flow=facts["flow"],
        direction=facts["direction"],
        **asdict(_ends(facts)),
        transport=str(facts["transport"]),
        what=what,
        hint=hint,
    )


def _too_few(facts: Mapping[str, Any], count: int, least: int) -> NotReplayable:
    return _lacking(
        facts,
        f"it has {_data_packets(count)}, fewer than {least}",
        "at least 2 are needed; `--least-packets` sets the limit",
    )


def _notes_on_end(late: int) -> tuple[str, ...]:
    came = "came after its last data packet, where a replay ends"
    return (f"{counted_reports(late)} {came}",) if late else ()


def _data_packets(count: int) -> str:
    return f"{count} data packet{'' if count == 1 else 's'}"
