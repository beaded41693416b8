"""A report on the results of a trace: its sections in order, with times of day."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.base.timezones import UTC_ZONE
from tfrctrace.reports.drawn_traces import left_out
from tfrctrace.reports.elements import Figure, FlowDetails, Report, Section
from tfrctrace.reports.figures.flight import flight_figure
from tfrctrace.reports.figures.rtt_distribution import rtt_distribution_figure
from tfrctrace.reports.figures.throughput_and_rtt import rtt_figure, spread_figure, throughput_figure
from tfrctrace.reports.inputs import inputs_of
from tfrctrace.reports.report_content import prepare
from tfrctrace.reports.sections.burstiness import burstiness_section
from tfrctrace.reports.sections.caveats import caveats
from tfrctrace.reports.sections.closed_loop import closed_loop_section
from tfrctrace.reports.sections.conformance import conformance_section
from tfrctrace.reports.sections.definitions import definitions_section
from tfrctrace.reports.sections.delivery import delivery_section
from tfrctrace.reports.sections.fairness import fairness_section
from tfrctrace.reports.sections.flow_details import flow_details
from tfrctrace.reports.sections.flow_table import flows_section, inputs_section
from tfrctrace.reports.sections.hops import hops_section
from tfrctrace.reports.sections.losses import losses_section
from tfrctrace.reports.sections.objectives import bad_stretches_ns, objectives_section
from tfrctrace.reports.sections.pair import pair_section
from tfrctrace.reports.sections.quic import quic_section
from tfrctrace.reports.sections.replay import replay_section
from tfrctrace.reports.sections.rtp import rtp_section
from tfrctrace.reports.sections.sequence import sequence_section
from tfrctrace.reports.sections.summary import caveats_line, summary
from tfrctrace.reports.sections.tfrc import tfrc_section
from tfrctrace.reports.sections.why import why_section
from tfrctrace.reports.sections.wifi_stations import stations_section
from tfrctrace.reports.time_axis import time_axis
from tfrctrace.reports.units import format_time_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.reports.elements import Words
    from tfrctrace.reports.report_content import ReportContent
    from tfrctrace.reports.report_input import ReportInput

_BAD_WORDS: Final = " In red: an objective was violated."


def build_report(
    results: ReportInput,
    *,
    title: str,
    index: str = "",
    zone: TimeZone = UTC_ZONE,
    objectives: Sequence[ObjectiveResult] = (),
) -> Report:
    """Return the report on `results`; `index` is the page that lists it among others.

    Times of day are those of `zone`. `objectives` were judged on the same trace.
    """
    content = prepare(results, zone, objectives)
    made = {section.key: section for section in (make(content) for make in SECTIONS)}
    made["summary"] = _counting_caveats(made["summary"], made["caveats"])
    origins_ns = {trace.linked: trace.start_ns for trace in content.traces}
    bad_ns = bad_stretches_ns(objectives)
    return Report(
        title,
        tuple(
            _with_times_of_day(section, origins_ns, zone, bad_ns)
            for section in made.values()
            if _has_content(section)
        ),
        tuple(
            _details_with_times(details, content.starts_ns.get(pair.lead.source), zone)
            for pair, details in zip(content.conversations, flow_details(content), strict=True)
        ),
        index=index,
        footer=_footer(results, zone),
    )


def _counting_caveats(shown: Section, notes: Section) -> Section:
    """Return the summary with how many caveats there are, which are written out further down."""
    return replace(shown, headline=(*shown.headline, *caveats_line(notes)))


def _footer(results: ReportInput, zone: TimeZone) -> tuple[Words, ...]:
    """Return what made the report, and the date of its data: not that of today, which would change bytes."""
    starts = [source.start_ns for source in inputs_of(results.sources) if source.start_ns is not None]
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


def _objectives_section(content: ReportContent) -> Section:
    return objectives_section(content.objectives, content.zone)


def _throughput_section(content: ReportContent) -> Section:
    shown = tuple(filter(None, map(throughput_figure, content.traces)))
    words = left_out(content.traces, len(content.inputs)) if shown else ()
    return Section("throughput", "Throughput", words, figures=shown)


def _rtt_section(content: ReportContent) -> Section:
    """Return the RTT over time and its distribution, or only its spread where not all samples are at hand."""
    quantiles = content.results.rtt_quantiles
    figures: list[Figure | None] = []
    for trace in content.traces:
        whole = None if quantiles is None else rtt_distribution_figure(trace, quantiles)
        figures += [rtt_figure(trace), whole or spread_figure(trace)]
    return Section("rtt", "Round-trip time", figures=tuple(figure for figure in figures if figure))


def _windows_section(content: ReportContent) -> Section:
    rounds, variables = (content.results.table(name) for name in ("rounds", "variables"))
    figures = (flight_figure(trace, rounds, variables) for trace in content.traces)
    return Section("windows", "Windows", figures=tuple(filter(None, figures)))


SECTIONS: Final[tuple[Callable[[ReportContent], Section], ...]] = (
    summary,
    _objectives_section,
    why_section,
    flows_section,
    pair_section,
    hops_section,
    _throughput_section,
    sequence_section,
    _rtt_section,
    _windows_section,
    losses_section,
    quic_section,
    rtp_section,
    tfrc_section,
    replay_section,
    closed_loop_section,
    conformance_section,
    fairness_section,
    burstiness_section,
    delivery_section,
    stations_section,
    caveats,
    inputs_section,
    definitions_section,
)
"""Every section of a report, in order; those without content are left out."""
