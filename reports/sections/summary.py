"""The summary of a report: what was captured, and what stands out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.place import has_lower_bound
from tfrctrace.reports.elements import Fact, Name, Section, Words
from tfrctrace.reports.figures.link_overview import link_overview
from tfrctrace.reports.flow_rows import flow_name
from tfrctrace.reports.inputs import volume
from tfrctrace.reports.link_facts import both_sides, path_sides
from tfrctrace.reports.sections.flow_table import span_s
from tfrctrace.reports.sections.headline import LOST_SEGMENTS, link_facts, other_rtts, when_it_was_bad
from tfrctrace.reports.sections.losses import retransmission_causes, upstream_losses
from tfrctrace.reports.sections.objectives import verdicts
from tfrctrace.reports.sections.rtp import reported_facts, reported_losses
from tfrctrace.reports.sections.why import why_no_faster
from tfrctrace.reports.units import (
    MISSING,
    counted,
    enumerated,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
    format_stretch_ns,
    format_time_ns,
    is_simulated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.link import LinkTables
    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.elements import Severity
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.inputs import Input
    from tfrctrace.reports.report_content import ReportContent

_MOST_NAMES: Final = 4
"""Inputs named in the opening sentence."""

_FEWEST_DATA_SEGMENTS: Final = 100
"""With fewer segments the share of retransmissions is not significant."""

_FEWEST_RTTS: Final = 20
"""With fewer samples of acknowledged data, RTTs of another kind say more."""

_SEVERITIES: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}

_LOST: Final = {
    "lost_packets": ("Lost on the way", "never arrived", ""),
    "lost_before_capture": (
        "Lost before the capture",
        "were lost before the capture",
        "; losses after it are not known unless `--vantage` places it at the receiver",
    ),
}
"""Label of lost packets, what happened to them, and what is not known, by their column."""

_UNSUCCESSFUL: Final = {"attempted": "{} not answered", "refused": "{} refused", "reset": "{} reset"}


def summary(content: ReportContent) -> Section:
    """Return the summary: key figures, and what stands out."""
    import polars as pl

    flows, inputs, conversations = content.flows, content.inputs, content.conversations
    link, zone = content.results.link, content.zone
    begin_ns = content.traces[0].start_ns if len(content.traces) == 1 else None
    overview = link_overview(link, begin_ns, zone, content.objectives)
    hidden = reported_losses(flows)
    has_more = not flows.filter(pl.col("sent_packets") > 0, pl.col("lost_packets").is_null()).is_empty()
    findings = (
        _no_flow(flows, inputs),
        _largest_flow(flows, conversations),
        _retransmissions(flows),
        retransmission_causes(flows),
        upstream_losses(flows),
        # where the RTTs of all flows are known, those of one are among its own
        () if link and path_sides(link) else _round_trips(conversations),
        _unsuccessful(flows),
        _closed_windows(flows),
        _icmp_errors(flows),
        *(
            _delivery(column, known, _missed(known, inputs))
            for column, known in zip(_LOST, _by_known_losses(flows), strict=True)
        ),
        hidden,
    )
    return Section(
        key="summary",
        title="Summary",
        headline=(
            *verdicts(content.objectives, zone),
            *(when_it_was_bad(link, zone, has_more=has_more) if link and overview else ()),
            *why_no_faster(content),
        ),
        paragraphs=_opening(content),
        facts=_facts(content),
        overview=overview,
        findings=tuple(words for words in findings if words),
    )


def caveats_line(caveats: Section) -> tuple[Words, ...]:
    """Return how many caveats there are, and where."""
    if not caveats.notes:
        return ()
    severities = [note.severity for note in caveats.notes]
    counts = ((severities.count(severity), noun) for severity, noun in _SEVERITIES.items())
    parts = [counted(count, noun) for count, noun in counts if count]
    return ((Name("Caveats", caveats.key), f": {enumerated(parts)}."),)


def _opening(content: ReportContent) -> tuple[Words, ...]:
    flows = content.flows
    packets, _ = volume(flows, content.inputs)
    # an input that is no capture is named among the errors
    inputs = [source for source in content.inputs if source.format] or content.inputs
    apart = (
        " Each input is a separate trace: a connection in two of them counts twice."
        if len(inputs) > 1 and not content.is_one_trace
        else ""
    )
    held: Words = (
        *_input_names(inputs),
        f" {'holds' if len(inputs) == 1 else 'hold'} {counted(packets, 'packet')} in "
        f"{counted(flows['flow'].n_unique(), 'flow')}{_by_transport(flows)}.{apart}",
    )
    when = _when(_covered(inputs, joined=content.is_one_trace), content.zone)
    return (held, (when,)) if when else (held,)


def _when(covered: Sequence[tuple[int, int]], zone: TimeZone) -> str:
    """Return the time span of the inputs; separate periods have no common one."""
    if not covered:
        return ""
    if len(covered) > 1:
        return f"The inputs cover {len(covered)} separate periods, listed in the table of inputs."
    ((first, last),) = covered
    if first == last:
        return f"The only packet is at {format_time_ns(first, zone)}."
    return (
        f"The first packet is at {format_time_ns(first, zone)}, the last one "
        f"{format_duration_s(span_s(first, last))} later."
    )


def _input_names(inputs: Sequence[Input]) -> Words:
    """Return the names of the inputs as an enumeration, the rest of many as a count."""
    shown = [Name(source.name) for source in inputs[:_MOST_NAMES]]
    rest = len(inputs) - len(shown)
    words: list[str | Name] = []
    for position, name in enumerate(shown):
        if position:
            words.append(" and " if position == len(shown) - 1 and not rest else ", ")
        words.append(name)
    if rest:
        words.append(f" and {counted(rest, 'more input')}")
    return tuple(words)


def _by_transport(flows: pl.DataFrame) -> str:
    """Return `: 2 TCP and 1 UDP`, or nothing for no flow."""
    import polars as pl

    counts = (
        flows.select("flow", "transport")
        .unique("flow", keep="first")
        .group_by("transport")
        .agg(pl.len().alias("flows"))
        .sort("flows", "transport", descending=[True, False])
    )
    parts = [
        f"{format_count(count)} {str(transport).upper()}"
        for transport, count in counts.select("transport", "flows").iter_rows()
    ]
    return f": {enumerated(parts)}" if parts else ""


def _facts(content: ReportContent) -> tuple[Fact, ...]:
    """Return the key figures, each over all flows."""
    flows, link = content.flows, content.results.link
    packets, wire_bytes = volume(flows, content.inputs)
    copies = int(flows["capture_duplicates"].sum())
    without = f", without {format_count(copies)} captured again" if copies else ""
    if copies:
        # captured at several interfaces, a packet was on the wire once
        packets, wire_bytes = (int(flows[name].sum()) for name in ("packets", "wire_bytes"))
    covered = _covered(content.inputs, joined=content.is_one_trace)
    lasted_s = sum(last - first for first, last in covered) / 1e9 if covered else None
    whose = _from_when_to_when(covered, content.zone)
    lost_facts = tuple(_lost_facts(flows, content.inputs))
    facts = list(link_facts(link, with_losses=not lost_facts)) if link else []
    rtts = sum(side.rtt_samples for side in path_sides(link)) if link else 0
    others = list(other_rtts(flows, content.results.table("feedback"))) if rtts < _FEWEST_RTTS else []
    if others:
        facts = [*others, *(fact for fact in facts if not fact.label.startswith("RTT"))]
    retransmitted, data = retransmitted_segments(flows)
    lost_tile = next((place for place, fact in enumerate(facts) if fact.label == LOST_SEGMENTS), None)
    if link and lost_tile is not None and _are_losses(link, retransmitted, data):
        # two tiles with one number would read as two facts
        repaired = "as many" if retransmitted else "none"
        facts[lost_tile] = replace(
            facts[lost_tile], detail=f"{facts[lost_tile].detail}; {repaired} retransmitted"
        )
    elif data:
        seen = ", as captured" if _hides_repairs(flows) else ""
        detail = f"{format_count(retransmitted)} of {counted(data, 'TCP data segment')}{seen}"
        facts.append(Fact("TCP retransmissions", format_share(retransmitted / data), detail))
    facts += lost_facts
    facts += reported_facts(flows)
    return (
        *facts,
        Fact("Duration", format_duration_s(lasted_s), whose),
        Fact(
            "On the wire",
            format_bytes(wire_bytes),
            f"{_mean_rate(wire_bytes, lasted_s)} on average; {counted(packets, 'packet')} in "
            f"{counted(flows['flow'].n_unique(), 'flow')}{without}",
        ),
    )


def _lost_facts(flows: pl.DataFrame, inputs: Sequence[Input]) -> Iterator[Fact]:
    """Yield the share of packets lost on the whole path or, where that is not known, before the capture."""
    for (column, (label, _, rest)), known in zip(_LOST.items(), _by_known_losses(flows), strict=True):
        packets, lost = int(known["sent_packets"].sum()), int(known[column].sum())
        # a few flows with numbered packets do not speak for all others
        if packets and known["packets"].sum() >= flows["packets"].sum() / 2:
            detail = (
                f"{format_count(lost)} of {counted(packets, 'packet')} sent{rest}{_missed(known, inputs)}"
            )
            yield Fact(label, format_share(lost / packets), detail)


def _missed(known: pl.DataFrame, inputs: Sequence[Input]) -> str:
    """Return how many of the packets whose numbers are missing the capture may have dropped itself."""
    counts = (interface["dropped_packets"] or 0 for source in inputs for interface in source.interfaces)
    dropped = min(sum(counts), int(known["lost_before_capture"].sum()))
    return f"; the capture itself may have dropped {format_count(dropped)} of them" if dropped else ""


def _by_known_losses(flows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return directions whose packets' losses are known, and others of which those before the capture are.

    The latter have numbered packets that were not captured where they arrive, or nobody knows where.
    """
    import polars as pl

    sent = flows.filter(pl.col("sent_packets") > 0)
    is_bound = has_lower_bound()
    return sent.filter(pl.col("lost_packets").is_not_null() & ~is_bound), sent.filter(is_bound)


def _are_losses(link: LinkTables, retransmitted: int, data: int) -> bool:
    """Return whether as many segments were lost as were retransmitted, of the same number."""
    whole = both_sides(link)
    return (whole.lost_segments, whole.sent_segments) == (retransmitted, data)


def _from_when_to_when(covered: Sequence[tuple[int, int]], zone: TimeZone) -> str:
    """Return the times that the inputs cover; those of simulations and of captures have no common ones."""
    if not covered:
        return ""
    (begin_ns, _), (_, end_ns) = covered[0], covered[-1]
    periods = f"{len(covered)} separate periods"
    if is_simulated(begin_ns) and not is_simulated(end_ns):
        return periods
    when = format_stretch_ns(begin_ns, end_ns, zone)
    return when if len(covered) == 1 else f"{periods}, {when}"


def _mean_rate(byte_count: int, lasted_s: float | None) -> str:
    return format_rate_bps(byte_count * 8 / lasted_s) if lasted_s else MISSING


def _covered(inputs: Sequence[Input], *, joined: bool) -> list[tuple[int, int]]:
    """Return the spans of time in ns that the inputs cover, in order and without overlap.

    A simulation begins at 0 and a capture half a century later: what is between them is no duration. Joined
    inputs are one trace, with whatever is between two of them.
    """
    covered: list[tuple[int, int]] = []
    for start, end in sorted(filter(None, (source.span_ns for source in inputs))):
        if covered and (joined or start <= covered[-1][1]):
            covered[-1] = (covered[-1][0], max(covered[-1][1], end))
        else:
            covered.append((start, end))
    return covered


def _no_flow(flows: pl.DataFrame, inputs: Sequence[Input]) -> Words:
    """Return why there are no flows."""
    packets = sum(source.packets for source in inputs)
    if not flows.is_empty() or not packets:
        return ()
    counts = (
        (sum(source.non_ip_packets for source in inputs), "not IP"),
        (sum(source.other_ip_packets for source in inputs), "IP, but neither TCP nor UDP nor DCCP"),
        (sum(source.undecoded_packets for source in inputs), "without a readable IP header"),
    )
    parts = [f"{format_count(count)} {words}" for count, words in counts if count]
    why = f": {', '.join(parts)}" if parts else ""
    return (f"No packet belongs to a flow{why}.",)


def _largest_flow(flows: pl.DataFrame, conversations: Sequence[Conversation]) -> Words:
    if not conversations:
        return ()
    pair = conversations[0]
    own = sum(row.wire_bytes for row in pair.directions)
    total = int(flows["wire_bytes"].sum())
    share = f", {format_share(own / total)} of the bytes of all flows" if total else ""
    rate = pair.lead.goodput_bps
    goodput = f" at a goodput of {format_rate_bps(rate)}" if rate is not None else ""
    return (
        "The largest is ",
        pair.lead.name,
        " (",
        Name(pair.lead.ends),
        f"): {format_bytes(own)} on the wire{share}{goodput}.",
    )


def retransmitted_segments(flows: pl.DataFrame) -> tuple[int, int]:
    """Return retransmitted and all data segments of the TCP flows for which both are known."""
    known = flows.select("retransmitted_segments", "data_segments").drop_nulls()
    return int(known["retransmitted_segments"].sum()), int(known["data_segments"].sum())


def _hides_repairs(flows: pl.DataFrame) -> bool:
    """Return whether data was lost before the capture, so that a retransmission looks like the original."""
    return bool(flows.filter(transport="tcp")["lost_before_capture"].sum())


def _retransmissions(flows: pl.DataFrame) -> Words:
    import polars as pl

    retransmitted, data = retransmitted_segments(flows)
    if not data:
        return ()
    if not retransmitted:
        if _hides_repairs(flows):
            return ()
        return (f"None of the {counted(data, 'TCP data segment')} was retransmitted.",)
    opening = (
        f"{format_count(retransmitted)} of {counted(data, 'TCP data segment')} "
        f"{'was' if retransmitted == 1 else 'were'} retransmitted ({format_share(retransmitted / data)})"
    )
    share = pl.col("retransmitted_segments") / pl.col("data_segments")
    worst = (
        flows.select("flow", "data_segments", "retransmitted_segments", share.alias("_share"))
        .filter(pl.col("data_segments") >= _FEWEST_DATA_SEGMENTS, pl.col("retransmitted_segments") > 0)
        .sort("_share", "flow", descending=[True, False])
        .head(1)
    )
    for flow, worst_share in worst.select("flow", "_share").iter_rows():
        # with a share that all have, none has most
        if worst_share * data > retransmitted * (1 + 1e-9):
            return (f"{opening}, most in ", flow_name(flow), f" ({format_share(worst_share)}).")
    return (f"{opening}.",)


def first_with_rtt(conversations: Sequence[Conversation]) -> FlowRow | None:
    """Return the leading direction of the largest flow that has RTT samples."""
    return next((pair.lead for pair in conversations if pair.lead.rtt_p50_ms is not None), None)


def _round_trips(conversations: Sequence[Conversation]) -> Words:
    row = first_with_rtt(conversations)
    if row is None:
        return ()
    seen_from = (
        " The capture was taken near the receiver, so this is only the receiver's own delay"
        f"{_handshake(row)}."
        if row.is_near_receiver
        else ""
    )
    return (
        "The round-trip time of ",
        row.name,
        f" was between {format_ms(row.rtt_min_ms)} and {format_ms(row.rtt_max_ms)}, "
        f"95 % of its {counted(row.rtt_samples or 0, 'sample')} at or below {format_ms(row.rtt_p95_ms)}."
        f"{seen_from}",
    )


def _handshake(row: FlowRow) -> str:
    handshake_ms = row.handshake_rtt_ms
    return "" if handshake_ms is None else f"; the handshake took {format_ms(handshake_ms)}"


def _unsuccessful(flows: pl.DataFrame) -> Words:
    states = flows.select("flow", "state").unique("flow", keep="first")["state"]
    counts = {state: int((states == state).sum()) for state in _UNSUCCESSFUL}
    parts = [
        words.format(format_count(counts[state])) for state, words in _UNSUCCESSFUL.items() if counts[state]
    ]
    return (f"TCP connections that did not end normally: {', '.join(parts)}.",) if parts else ()


def _closed_windows(flows: pl.DataFrame) -> Words:
    import polars as pl

    closed = flows.filter(pl.col("zero_windows") > 0)
    if closed.is_empty():
        return ()
    packets = counted(int(closed["zero_windows"].sum()), "packet")
    return (f"{packets} advertised a zero window, in {counted(closed['flow'].n_unique(), 'flow')}.",)


def _delivery(column: str, sent: pl.DataFrame, missed: str) -> Words:
    """Return how many packets of directions were lost by `column`, and of all losses where most were."""
    import polars as pl

    if sent.is_empty():
        return ()
    packets, lost = int(sent["sent_packets"].sum()), int(sent[column].sum())
    _, missing, rest = _LOST[column]
    opening = f"{format_count(lost)} of {counted(packets, 'packet')} sent {missing}"
    share = f" ({format_share(lost / packets)}){missed}"
    worst = sent.filter(pl.col("lost_packets") > 0).sort("pdr", "flow").head(1)
    for flow, pdr, reasons in worst.select("flow", "pdr", "drop_reasons").iter_rows():
        if pdr < 1 - lost / packets:
            where = f", dropped at {reasons}" if reasons else ""
            return (
                f"{opening}{share}, most in ",
                flow_name(flow),
                f": {format_share(pdr)} delivered{where}.",
            )
    return (f"{opening}{share}{rest}.",)


def _icmp_errors(flows: pl.DataFrame) -> Words:
    errors = int(flows["icmp_errors"].sum())
    return (f"{counted(errors, 'ICMP error')} returned for packets of these flows.",) if errors else ()
