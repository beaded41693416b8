"""What the sections of a report are made of, prepared once: short names of inputs, flows, drawn traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.timezones import UTC_ZONE
from tfrctrace.metrics.flow.causes import CausesOfRows, rows_of_causes, untold_flows
from tfrctrace.reports.conversations import largest_conversations
from tfrctrace.reports.drawn_traces import drawn_traces
from tfrctrace.reports.inputs import inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.metrics.results.why import FlowCauses, UntoldFlow
    from tfrctrace.parsers._native import Clock
    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.inputs import Input
    from tfrctrace.reports.report_input import ReportInput

MOST_FLOWS: Final = 1000
"""Rows in the table of flows, each with its details; a page with more is slow to open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContent:
    """The results and what is shown of them; names of inputs are without their common folder."""

    results: ReportInput
    """With the whole names."""
    flows: pl.DataFrame
    inputs: Sequence[Input]
    problems: Sequence[Mapping[str, Any]]
    conversations: Sequence[Conversation]
    """The largest flows."""
    causes: Mapping[tuple[int, str], FlowCauses]
    """Why they were no faster, by flow and direction."""
    untold: Sequence[UntoldFlow]
    """Shown flows with data whose cause is unknown."""
    starts_ns: Mapping[str, int]
    """When each input began; of one trace, when this did."""
    traces: Sequence[DrawnTrace]
    zone: TimeZone
    """Of times of day."""
    objectives: Sequence[ObjectiveResult]
    """Judged on the same trace."""

    @property
    def is_one_trace(self) -> bool:
        """Whether all inputs have one time axis."""
        return self.results.joined or self.results.clock is not None


def prepare(
    results: ReportInput, zone: TimeZone = UTC_ZONE, objectives: Sequence[ObjectiveResult] = ()
) -> ReportContent:
    """Return the content of a report on `results`."""
    import polars as pl

    short = _short_names([*results.sources, *results.problems])
    flows = results.flows.with_columns(pl.col("source").replace(short))
    hops = results.table("hops").with_columns(pl.col("from", "to").replace(short))
    inputs = [_shortened(source, short) for source in inputs_of(results.sources)]
    conversations = largest_conversations(flows, MOST_FLOWS)
    shown = flows.filter(pl.col("flow").is_in([pair.lead.flow for pair in conversations]))
    joined, clock = results.joined, results.clock
    if clock is not None:
        joined, inputs = True, _by_first_clock(inputs, clock)
    starts_ns = {source.name: source.start_ns for source in inputs if source.start_ns is not None}
    if joined and starts_ns:
        starts_ns = dict.fromkeys(starts_ns, min(starts_ns.values()))
    return ReportContent(
        results=replace(results, tables={**results.tables, "hops": hops}),
        flows=flows,
        inputs=inputs,
        problems=[
            {**problem, "source": short.get(problem["source"], problem["source"])}
            for problem in results.problems
        ],
        conversations=conversations,
        causes={
            (one.flow, one.direction): one
            for one in CausesOfRows(
                rows_of_causes(
                    results.table("cause_sums"),
                    shown,
                    results.table("bottlenecks"),
                    results.named_controls,
                )
            )
        },
        untold=untold_flows(results.table("cause_sums"), shown),
        starts_ns=starts_ns,
        traces=drawn_traces(
            flows, results.bins, inputs, starts_ns, joined=joined, window_ns=results.window_ns
        ),
        zone=zone,
        objectives=objectives,
    )


def _shortened(source: Input, short: Mapping[str, str]) -> Input:
    return source._replace(source=short.get(source.name, source.name))


def _by_first_clock(inputs: Sequence[Input], clock: Clock) -> list[Input]:
    """Return the two inputs of a pair with the times of both by the clock of the first, without drift."""
    first, second = inputs
    offset_ns = clock["offset_ns"]
    if second.start_ns is not None:
        second = second._replace(start_ns=second.start_ns - offset_ns)
    if second.end_ns is not None:
        second = second._replace(end_ns=second.end_ns - offset_ns)
    return [first, second]


def _short_names(facts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of inputs without their common folder, which the table of inputs shows."""
    paths = {fact["source"] for fact in facts}
    folder = _common_folder(paths)
    return {path: path.removeprefix(f"{folder}/") for path in paths} if folder else {}


def _common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that all `paths` are in; empty if there is none, or only the root."""
    folders = (path.split("/")[:-1] for path in paths)
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    return "/".join(level[0] for level in shared)
