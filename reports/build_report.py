"""The sections of a report in their order; those without content are left out."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.timezones import UTC_ZONE
from tfrctrace.reports.conversations import largest_conversations
from tfrctrace.reports.drawn_traces import drawn_traces, left_out
from tfrctrace.reports.elements import Figure, FlowDetails, Report, Section, Term
from tfrctrace.reports.figures.flight import flight_figure
from tfrctrace.reports.figures.link_overview import link_overview
from tfrctrace.reports.figures.rtt_distribution import rtt_distribution_figure
from tfrctrace.reports.figures.throughput_and_rtt import rtt_figure, spread_figure, throughput_figure
from tfrctrace.reports.sections.burstiness import burstiness_section
from tfrctrace.reports.sections.caveats import caveats
from tfrctrace.reports.sections.delivery import delivery_section
from tfrctrace.reports.sections.fairness import fairness_section
from tfrctrace.reports.sections.flow_details import flow_details
from tfrctrace.reports.sections.flow_table import MOST_FLOWS, flow_table, source_table
from tfrctrace.reports.sections.hops import hops_section
from tfrctrace.reports.sections.losses import LOSS_TERMS, losses_section
from tfrctrace.reports.sections.objectives import bad_stretches_ns, objectives_section, verdicts
from tfrctrace.reports.sections.pair import pair_section
from tfrctrace.reports.sections.quic import quic_section
from tfrctrace.reports.sections.replay import replay_section
from tfrctrace.reports.sections.rtp import rtp_section
from tfrctrace.reports.sections.sequence import sequence_section
from tfrctrace.reports.sections.summary import summary
from tfrctrace.reports.sections.tfrc import tfrc_section
from tfrctrace.reports.sections.wifi_stations import stations_section
from tfrctrace.reports.time_axis import time_axis
from tfrctrace.reports.units import format_time_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.parsers._native import Clock
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.elements import Words
    from tfrctrace.reports.results import Results

_BAD_WORDS: Final = " In red: an objective was violated."

Facts = list[dict[str, Any]]
"""Sources or problems."""


def build_report(
    results: Results,
    *,
    title: str,
    index: str = "",
    zone: TimeZone = UTC_ZONE,
    objectives: Sequence[ObjectiveResult] = (),
) -> Report:
    """Return the report on `results`; `index` is the page that lists it among others.

    Times of day are those of `zone`. `objectives` were judged on the same trace.
    """
    import polars as pl

    inputs = source_table(results.sources, zone)
    short = _short_names((*results.sources, *results.problems))
    flows = results.flows.with_columns(pl.col("source").replace(short))
    hops = results.table("hops").with_columns(pl.col("from", "to").replace(short))
    sources, problems = (_with_short_names(facts, short) for facts in (results.sources, results.problems))
    conversations = largest_conversations(flows, MOST_FLOWS)
    joined, clock = results.joined, results.clock
    if clock is not None:
        joined, sources = True, _by_first_clock(sources, clock)
    starts_ns: dict[str, int] = {
        source["source"]: source["start_ns"] for source in sources if source["start_ns"] is not None
    }
    if joined and starts_ns:
        starts_ns = dict.fromkeys(starts_ns, min(starts_ns.values()))
    traces = drawn_traces(flows, results.bins, sources, starts_ns, joined=joined, window_ns=results.window_ns)
    table = flow_table(conversations, flows=flows["flow"].n_unique(), starts_ns=starts_ns)
    notes = caveats(flows, conversations, sources, problems, traces)
    begin_ns = traces[0].start_ns if len(traces) == 1 else None
    sections = (
        summary(
            flows,
            sources,
            conversations,
            results.link,
            results.table("feedback"),
            joined=joined,
            caveats=notes,
            overview=link_overview(results.link, begin_ns, zone, objectives),
            verdicts=tuple(verdicts(objectives, zone)),
            zone=zone,
        ),
        objectives_section(objectives, zone),
        Section("flows", "Flows", tables=(table,) if table.rows else ()),
        pair_section(traces, clock),
        hops_section(hops, flows),
        _throughput_section(traces, sources),
        sequence_section(traces, results, flows),
        _rtt_section(traces, results.rtt_quantiles),
        _windows_section(traces, results),
        losses_section(
            flows,
            {pair.lead["flow"] for pair in conversations},
            traces=traces,
            course=results.loss_course,
        ),
        quic_section(flows),
        rtp_section(traces, results, flows),
        tfrc_section(traces, results, flows),
        replay_section(traces, results.table("replay"), flows),
        fairness_section(results.measured, flows, results.bins, traces),
        burstiness_section(results.measured, flows),
        # a pair of captures has its own section for that
        delivery_section(traces, flows.clear() if clock else flows),
        stations_section(results.table("links"), results.link_bins, traces),
        notes,
        Section("inputs", "Inputs", tables=(inputs,) if inputs.rows else ()),
        Section("definitions", "Definitions", terms=_DEFINITIONS),
    )
    origins_ns = {trace.linked: trace.start_ns for trace in traces}
    return Report(
        title,
        tuple(
            _with_times_of_day(section, origins_ns, zone, bad_stretches_ns(objectives))
            for section in sections
            if _has_content(section)
        ),
        tuple(
            _details_with_times(details, starts_ns.get(pair.lead["source"]), zone)
            for pair, details in zip(
                conversations, flow_details(conversations, results.bins, starts_ns), strict=True
            )
        ),
        index=index,
        footer=_footer(results, zone),
    )


def _footer(results: Results, zone: TimeZone) -> tuple[Words, ...]:
    """Return what made the report, and the date of its data: not that of today, which would change bytes."""
    starts = [source["start_ns"] for source in results.sources if source["start_ns"] is not None]
    dated = f" Data from {format_time_ns(min(starts), zone)} on." if starts else ""
    made = f"Made with {results.made_with}." if results.made_with else "Made with tfrctrace."
    return ((f"{made}{dated}",),)


def _with_times_of_day(
    section: Section,
    origins_ns: Mapping[str, int | None],
    zone: TimeZone,
    bad_ns: Sequence[tuple[int, int]],
) -> Section:
    """Return a section whose time axes show times of day, and when objectives were violated."""
    figures = tuple(
        _on_time_axis(figure, origins_ns[figure.linked], zone, bad_ns)
        if figure.axis.is_time and figure.linked in origins_ns
        else figure
        for figure in section.figures
    )
    return replace(section, figures=figures)


def _on_time_axis(
    figure: Figure, origin_ns: int | None, zone: TimeZone, bad_ns: Sequence[tuple[int, int]]
) -> Figure:
    axis = time_axis(origin_ns, figure.lasted_s, zone)
    if origin_ns is None:
        return replace(figure, axis=axis)
    spans = [((begin - origin_ns) / 1e9, (end - origin_ns) / 1e9) for begin, end in bad_ns]
    bad_s = tuple((begin, end) for begin, end in spans if begin < figure.lasted_s and end > 0)
    caption = f"{figure.caption}{_BAD_WORDS}" if bad_s else figure.caption
    return replace(figure, axis=axis, bad_s=bad_s, caption=caption)


def _details_with_times(details: FlowDetails, origin_ns: int | None, zone: TimeZone) -> FlowDetails:
    figures = tuple(
        replace(figure, axis=time_axis(origin_ns, figure.lasted_s, zone)) for figure in details.figures
    )
    return replace(details, figures=figures)


def _by_first_clock(sources: Facts, clock: Clock) -> Facts:
    """Return the two sources of a pair with the times of both by the clock of the first, without drift."""
    first, second = sources
    times = {
        name: second[name] - clock["offset_ns"] for name in ("start_ns", "end_ns") if second[name] is not None
    }
    return [first, {**second, **times}]


def _short_names(facts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of inputs without their common folder, which the table of inputs shows."""
    paths = {fact["source"] for fact in facts}
    folder = _common_folder(paths)
    return {path: path.removeprefix(f"{folder}/") for path in paths} if folder else {}


def _with_short_names(facts: Iterable[Mapping[str, Any]], short: Mapping[str, str]) -> Facts:
    return [{**fact, "source": short.get(fact["source"], fact["source"])} for fact in facts]


def _common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that all `paths` are in; empty if there is none, or only the root."""
    folders = (path.split("/")[:-1] for path in paths)
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    return "/".join(level[0] for level in shared)


def _has_content(section: Section) -> bool:
    return any(
        (
            section.headline,
            section.paragraphs,
            section.facts,
            section.overview,
            section.findings,
            section.notes,
            section.figures,
            section.tables,
            section.terms,
        )
    )


def _throughput_section(traces: Sequence[DrawnTrace], sources: Sequence[Mapping[str, Any]]) -> Section:
    shown = tuple(filter(None, map(throughput_figure, traces)))
    return Section("throughput", "Throughput", left_out(traces, sources) if shown else (), figures=shown)


def _rtt_section(traces: Sequence[DrawnTrace], quantiles: pl.DataFrame | None) -> Section:
    """Return the RTT over time and its distribution, or only its spread where not all samples are at hand."""
    figures: list[Figure | None] = []
    for trace in traces:
        whole = None if quantiles is None else rtt_distribution_figure(trace, quantiles)
        figures += [rtt_figure(trace), whole or spread_figure(trace)]
    return Section("rtt", "Round-trip time", figures=tuple(figure for figure in figures if figure))


def _windows_section(traces: Sequence[DrawnTrace], results: Results) -> Section:
    rounds, variables = results.table("rounds"), results.table("variables")
    figures = (flight_figure(trace, rounds, variables) for trace in traces)
    return Section("windows", "Windows", figures=tuple(filter(None, figures)))


_DEFINITIONS: Final = (
    Term(
        "Throughput",
        "Bytes of whole frames on the wire over the time from the first to the last packet of the flow and "
        "direction. Undefined for fewer than two packets.",
    ),
    Term(
        "Goodput",
        "Payload with every sequence number counted once, over the same time; for UDP all payload.",
    ),
    Term(
        "Rates over time",
        "Bytes of a bin over its width. Between the first and the last packet of a flow, a bin without "
        "packets counts as zero.",
    ),
    Term(
        "Retransmissions",
        "TCP data packets with at least one byte that the capture already has. A packet lost before the "
        "capture point appears only once and is not counted.",
    ),
    *LOSS_TERMS,
    Term(
        "Round-trip time",
        "From a data packet to the acknowledgement that covers it, both at the capture point. Retransmitted "
        "data gives no sample, as either copy may have been acknowledged (Karn's rule, RFC 6298 section 3). "
        "Delayed acknowledgements are included.",
    ),
    Term(
        "Flight and rounds",
        "Data (and SYN, FIN) sent and not yet acknowledged. A round ends when the highest sequence number "
        "sent at its start is acknowledged. Its flight is a lower bound of the congestion window. At the "
        "sender it equals the window to within a segment, unless the application (the newest segment is not "
        "full, or nothing is outstanding) or the receiver (no room in its window) is the limit.",
    ),
    Term(
        "Percentiles",
        "Nearest rank, within 0.8 %; minimum, mean and maximum are exact.",
    ),
    Term(
        "Units",
        "1 kB is 1000 bytes and 1 Mbit/s is 1,000,000 bit/s. Times of day are UTC. A dash means unknown from "
        "this capture; 0 means measured zero.",
    ),
)
