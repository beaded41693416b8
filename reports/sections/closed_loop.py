"""What algorithms would have received in place of flows, at a model of their bottleneck."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.results.closed_loop import SWEPT
from tfrctrace.metrics.thresholds import LEAST_PACKETS
from tfrctrace.reports.elements import FLOW_HEADING, Cell, Heading, Row, Section, TableView
from tfrctrace.reports.figures.replays import replay_figures, sweep_figures
from tfrctrace.reports.flow_rows import endpoint
from tfrctrace.reports.printers.closed_loop import between
from tfrctrace.reports.printers.replay import algorithm_name
from tfrctrace.reports.units import counted, format_count, format_ms, format_rate_bps, format_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import polars as pl

    from tfrctrace.metrics.results.closed_loop import ClosedLoopReplays, ClosedLoopRun, ReplacedFlow
    from tfrctrace.metrics.results.replay import FlowDirection
    from tfrctrace.reports.elements import Figure
    from tfrctrace.reports.report_content import ReportContent

_MOST_FIGURES: Final = 4
_MOST_ROWS: Final = 200

_BETWEEN: Final = Heading(
    "Between", numeric=False, meaning="least and most, as the bottleneck is known; nothing if it was given"
)
_HEADINGS: Final = (
    FLOW_HEADING,
    Heading("Direction", numeric=False, meaning="where the data went"),
    Heading("Algorithm", numeric=False),
    Heading("Received", meaning="mean rate of the payload that arrives in the model"),
    _BETWEEN,
    Heading("Flow sent", meaning="mean rate of the payload of the flow itself, with retransmissions"),
    Heading("Lost", meaning="packets"),
    Heading("RTT p95", meaning="not exceeded in 95 % of the time"),
    _BETWEEN,
    Heading("Why not", numeric=False, meaning="what the trace does not show of it", is_prose=True),
)


def closed_loop_section(content: ReportContent) -> Section:
    """Return a figure of the largest flows and a row for each algorithm; empty if none was asked for."""
    loops = content.results.closed_loops
    if loops is None:
        return Section("closed-loop", "Closed loops")
    starts_ns = [ns for ns in content.starts_ns.values() if ns is not None]
    return Section(
        "closed-loop",
        "Closed loops",
        tuple((f"{note[:1].upper()}{note[1:]}.",) for note in loops.head.notes),
        figures=tuple(_figures(loops, min(starts_ns, default=0))),
        tables=(_table(loops, _small(content.flows)),),
    )


def _figures(loops: ClosedLoopReplays, zero_ns: int) -> Iterator[Figure]:
    """Give the rates in place of the flows that sent most."""
    import polars as pl

    drawn = {"time_ns": pl.Int64, "received_bps": pl.Float64}
    for flow in sorted(loops.flows, key=_sent_bits, reverse=True)[:_MOST_FIGURES]:
        if loops.head.sweep is not None:
            yield from sweep_figures(loops, flow)
            continue
        rounds = [
            pl.DataFrame({name: run.series[name] for name in drawn}, schema=drawn).with_columns(
                flow=pl.lit(run.flow), direction=pl.lit(run.direction), algorithm=pl.lit(run.algorithm)
            )
            for run in loops.replays
            if run.key == flow.key
        ]
        yield from replay_figures("closed-loop", pl.concat(rounds), zero_ns)


def _sent_bits(flow: ReplacedFlow) -> float:
    return (flow.sent_mean_bps or 0) * (flow.end_ns - flow.start_ns)


def _small(flows: pl.DataFrame) -> set[tuple[int, str]]:
    """Return directions with too few packets for a closed loop, of which there are many."""
    small = flows.filter(flows["data_packets"] < LEAST_PACKETS)
    return set(small.select("flow", "direction").iter_rows())


def _table(loops: ClosedLoopReplays, small: Collection[tuple[int, str]]) -> TableView:
    sent_bps = {flow.key: flow.sent_mean_bps for flow in loops.flows}
    places = Counter[tuple[int, str]]()
    rows = list[Row]()
    headings = list(_HEADINGS)
    swept = None if loops.head.sweep is None else SWEPT[loops.head.sweep]
    if swept:
        headings.insert(
            3, Heading(f"{swept[0][0].upper()}{swept[0][1:]}", meaning="of the modelled bottleneck")
        )
    for run in loops.replays:
        places[run.key] += 1
        cells = _cells(run, sent_bps[run.key])
        if swept:
            cells.insert(1, Cell(format_value(run.swept, swept[1]), sort=run.swept))
        rows.append(_row(run, places[run.key], cells))
    rows += [
        _row(one, 0, [*[Cell("")] * (len(headings) - 3), Cell(f"{one.what}; {one.hint}")])
        for one in loops.lacking
        if one.key not in small
    ]
    left_out = len(rows) - _MOST_ROWS
    more = f" `tfrctrace replay --loop closed` has {counted(left_out, 'more row')}." if left_out > 0 else ""
    return TableView(
        "closed-loop",
        f"What each algorithm would have received in place of a flow of at least {LEAST_PACKETS} data "
        f"packets; docs/models.md says how.{more}",
        tuple(headings),
        tuple(rows[:_MOST_ROWS]),
        sortable=True,
    )


def _row(of: FlowDirection, place: int, cells: Sequence[Cell]) -> Row:
    ends = f"{endpoint(of.src, of.src_port)} → {endpoint(of.dst, of.dst_port)}"
    lead = (Cell(str(of.flow), sort=of.flow), Cell(ends))
    return Row(f"closed-loop-{of.flow}-{of.direction}-{place}", (*lead, *cells))


def _cells(run: ClosedLoopRun, sent_bps: float | None) -> list[Cell]:
    return [
        Cell(algorithm_name(run)),
        Cell(format_rate_bps(run.received_mean_bps), sort=run.received_mean_bps),
        Cell(between(format_rate_bps(run.received_low_bps), format_rate_bps(run.received_high_bps))),
        Cell(format_rate_bps(sent_bps), sort=sent_bps),
        Cell(format_count(run.losses), sort=run.losses),
        Cell(format_ms(run.rtt_p95_ms), sort=run.rtt_p95_ms),
        Cell(between(format_ms(run.rtt_p95_low_ms), format_ms(run.rtt_p95_high_ms))),
        Cell(""),
    ]
