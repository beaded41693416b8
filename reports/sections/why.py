"""Why flows were no faster: sentences, ledgers, and causes over time."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.causes import CAUSES, without_small
from tfrctrace.reports.elements import Cell, FlowProperty, Heading, Name, Section, Words
from tfrctrace.reports.figures.causes import trace_causes_figure
from tfrctrace.reports.figures.charts import REST, Chart, Series
from tfrctrace.reports.figures.predicted_windows import predicted_windows_figure
from tfrctrace.reports.flow_rows import endpoint, flow_name
from tfrctrace.reports.units import MISSING, counted, format_duration_s, format_share
from tfrctrace.reports.why_words import (
    BOTTLENECK_REASONS,
    CAUSE_WORDS,
    CONTROL_REASONS,
    OF_THE_PATH,
    SIGN_WORDS,
    bloat,
    bottleneck,
    queue_ms,
    sentences,
    untold,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.metrics.results.why import Cause, FlowCauses
    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.report_content import ReportContent

CAUSE_HEADING: Final = Heading(
    "Held back by",
    numeric=False,
    meaning="the cause with the largest share of the time from the first packet of the flow to the last",
)

_MOST_DESCRIBED: Final = 3
_MOST_BARS: Final = 12
_LEAST_DRAWN: Final = 0.005

_AS_LARGE: Final = 0.5
"""Payload of a second flow that the first screen names, over that of the largest."""

_BESIDE_OTHERS: Final = 0.01
"""Payload of a flow that the first screen names, over that of all flows of which nothing tells."""

_MOST_NAMED: Final = 2


def why_section(content: ReportContent) -> Section:
    """Return why the largest flows were no faster; of flows that are not TCP's, why that is not told."""
    largest = _largest(content)
    others = tuple((sentence,) for sentence in untold(content.untold))
    if not largest:
        return Section("why", "Why no faster", paragraphs=others)
    rows = content.results.table("causes")
    figures = chain(
        (trace_causes_figure(trace, rows, content.causes) for trace in content.traces),
        (predicted_windows_figure(trace, content.results.predicted_windows) for trace in content.traces),
    )
    return Section(
        "why",
        "Why no faster",
        paragraphs=(*(_described(flow, largest) for flow in largest[:_MOST_DESCRIBED]), *others),
        figures=tuple(filter(None, figures)),
        charts=(_ledgers(largest[:_MOST_BARS], len(largest)),),
    )


def why_no_faster(content: ReportContent) -> Iterator[Words]:
    """Give a sentence on each of the largest flows, and on the longest queue, for the first screen."""
    every = _largest(content)
    others = sum(flow.payload_bytes or 0 for flow in content.untold)
    for flow in every[:_MOST_NAMED]:
        if _payload(flow) < max(_AS_LARGE * _payload(every[0]), _BESIDE_OTHERS * others):
            break
        named: Words = (Name("Why", "why"), " ", flow_name(flow.flow))
        if flow.main_cause == "unknown":
            yield (*named, f" was no faster is unknown: {SIGN_WORDS[flow.main_sign]}.")
        else:
            yield (*named, f" was no faster: {_held_back(flow)}.")
    longest = max(every, key=queue_ms, default=None)
    if longest is not None and (words := bloat(longest, every)):
        yield "Bufferbloat of ", flow_name(longest.flow), f": {words}."


def _held_back(flow: FlowCauses) -> str:
    lasted, words = format_duration_s(flow.duration_s), CAUSE_WORDS[flow.main_cause]
    if flow.main_cause not in OF_THE_PATH:
        return f"for {format_share(flow.main_cause_share)} of {lasted} {words}"
    # that the window held it back is certain, what held back the window is inferred
    share = sum(getattr(flow, f"{cause}_share") for cause in OF_THE_PATH)
    return f"for {format_share(min(share, 1.0))} of {lasted} the network limited it; it looks as if {words}"


def cause_cell(content: ReportContent, pair: Conversation) -> Cell:
    """Return the main cause of both directions of a flow, and its share."""
    lead, *back = (content.causes.get(row.key) for row in pair.directions)
    return Cell(_main(lead), "".join(map(_main, back)), None if lead is None else lead.main_cause_share)


def ledger(directions: Sequence[FlowCauses | None]) -> Iterator[FlowProperty]:
    """Give the causes of a flow with their shares, as in the table of `why`."""
    if not any(directions):
        return
    main = tuple(one.main_cause if one else MISSING for one in directions)
    yield FlowProperty("main_cause", "the cause with the largest share of the time", main)
    controls = tuple(map(_control, directions))
    yield FlowProperty("congestion_control", "what it behaves like, or why that is not known", controls)
    yield FlowProperty(
        "bottleneck",
        "capacity, queue and policer, or why they are not known",
        tuple(map(_bottleneck, directions)),
    )
    signs = tuple(SIGN_WORDS[one.main_sign] if one else MISSING for one in directions)
    yield FlowProperty("main_sign", "the sign that decided", signs)
    for cause in CAUSES:
        shares = [getattr(one, f"{cause}_share") if one else None for one in directions]
        if any(shares):
            values = tuple(MISSING if share is None else format_share(share) for share in shares)
            yield FlowProperty(f"{cause}_share", f"share of the time in which {CAUSE_WORDS[cause]}", values)


def _control(flow: FlowCauses | None) -> str:
    """Return the names of a congestion control, or why there are none."""
    if flow is None:
        return MISSING
    names, reason = flow.congestion_control, flow.congestion_control_reason
    if names is not None:
        return " or ".join(names.split("|"))
    return MISSING if reason is None else CONTROL_REASONS.get(reason) or SIGN_WORDS[reason]


def _bottleneck(flow: FlowCauses | None) -> str:
    """Return what is known of the bottleneck, or why its capacity is not."""
    if flow is None:
        return MISSING
    reason = flow.capacity_reason
    why = "" if reason is None else BOTTLENECK_REASONS.get(reason) or SIGN_WORDS[reason]
    return " ".join(bottleneck(flow)) or why or MISSING


def _largest(content: ReportContent) -> list[FlowCauses]:
    shown = without_small(tuple(content.causes.values()))
    return sorted(shown, key=lambda flow: (-_payload(flow), flow.flow, flow.direction))


def _payload(flow: FlowCauses) -> int:
    return flow.payload_bytes or 0


def _main(flow: FlowCauses | None) -> str:
    if flow is None:
        return MISSING
    return f"{flow.main_cause.replace('_', ' ')} ({format_share(flow.main_cause_share)})"


def _described(flow: FlowCauses, every: Sequence[FlowCauses]) -> Words:
    ends = f"{endpoint(flow.src, flow.src_port)} → {endpoint(flow.dst, flow.dst_port)}"
    return (flow_name(flow.flow), " (", Name(ends), "): ", " ".join(sentences(flow, every)))


def _colour(cause: Cause) -> int:
    return REST if cause == "unknown" else CAUSES.index(cause)


def _ledgers(flows: Sequence[FlowCauses], total: int) -> Chart:
    """Return a bar for each flow, of its time by cause."""
    shares = {cause: tuple(getattr(flow, f"{cause}_share") for flow in flows) for cause in CAUSES}
    places = tuple(map(float, range(len(flows))))
    series = tuple(
        Series(label=cause.replace("_", " "), x=places, values=shares[cause], colour=_colour(cause))
        for cause in CAUSES
        if max(shares[cause]) >= _LEAST_DRAWN
    )
    rest = (
        f" Drawn are the {len(flows)} with most payload, {counted(total - len(flows), 'direction')} are not."
    )
    return Chart(
        key="ledgers",
        title="Time by cause",
        description=f"Stacked bars of {counted(len(flows), 'direction')}.",
        caption="Shares of the time from the first packet of each flow to its last."
        f"{rest if len(flows) < total else ''} `tfrctrace why` has the evidence for each.",
        kind="stacks",
        x_label="flow",
        y_label="share of time",
        unit="",
        series=series,
        categories=tuple(f"{flow.flow}" if flow.direction == "fwd" else f"{flow.flow} rev" for flow in flows),
    )
