"""What `tfrctrace.open` returns: one or more traces, read when something is asked of them; their flows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import proxy

from tfrctrace.base.errors import UsageError
from tfrctrace.base.pandas_frames import to_pandas
from tfrctrace.base.signatures import with_parameters_of
from tfrctrace.metrics.thresholds import LEAST_PACKETS
from tfrctrace.trace.passes import NS_PER_MS, OF_CONTROLS
from tfrctrace.trace.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import polars as pl
    from pandas.io.formats.style import Styler

    from tfrctrace.metrics.groups import Groups
    from tfrctrace.metrics.loaded_delay import LoadedDelay
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.results.why import FlowCauses, UntoldFlow
    from tfrctrace.parsers.reading import PassResult
    from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops
    from tfrctrace.replay.from_trace import FlowRecordings
    from tfrctrace.replay.naming.candidates import Candidate
    from tfrctrace.replay.naming.of_trace import Directions, Named
    from tfrctrace.replay.one_step import OneStepReplay
    from tfrctrace.replay.open_loop import OpenLoop, OpenLoopReplay
    from tfrctrace.replay.tfrc import Profile
    from tfrctrace.report_data.trace_report import TraceReport
    from tfrctrace.reports.elements import Figure, Report
    from tfrctrace.reports.figures.kinds import PlotKind
    from tfrctrace.reports.figures.publication import Drawing, PaperStyle, Width
    from tfrctrace.reports.results import Results
    from tfrctrace.trace.passes import TableName
    from tfrctrace.wlan.scenario import Scenario

StrPath = str | os.PathLike[str]
Duration = str | timedelta
"""A duration as a text such as `"500ms"`, or as Python has it."""

SHOWN_FLOWS: Final = 25
"""Flows that a styled table shows, unless the caller says otherwise."""

_FOR_THE_PROGRAM: Final = frozenset(
    {
        *(
            "agents",
            "controls_of",
            "counted",
            "counted_frames",
            "is_network",
            "is_read_once",
            "open_loop",
            "packet_batches",
        ),
        *(
            "copied_packets",
            "forget",
            "publishable",
            "read",
            "read_groups",
            "read_of_flows",
            "read_spooled",
            "released_groups",
            "report_parts",
            "settings",
            "table",
            "zero_ns",
        ),
    }
)
"""What commands take from a trace, and a person at a prompt does not."""


class Trace(Tables):
    """One or more captures, and everything that can be asked of them."""

    _gathered: FlowRecordings | None = None
    _named: pl.DataFrame | None = None

    def __repr__(self) -> str:
        names = self.names
        what = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        if not self._readings:
            return f"<Trace of {what}, not read yet>"
        reading = self._readings[0][1]
        packets = sum(source["packets"] for source in reading.sources)
        return f"<Trace of {what}: {reading.flow_count} flows, {packets} packets>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary of a report and the largest flows, from one pass."""
        import polars as pl

        from tfrctrace.parsers.schema import polars_schema
        from tfrctrace.reports.printers.notebook import overview
        from tfrctrace.reports.report_input import ReportInput

        results = ReportInput(
            flows=self.flows,
            bins=pl.DataFrame(schema=polars_schema("bins")),
            sources=self.sources,
            problems=self.warnings,
            joined=self.is_joined,
            clock=self.clock,
        )
        return overview(results, title=self.name)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _FOR_THE_PROGRAM]

    def flow(self, number: int) -> Flow:
        """Return one flow, with its rows of every table: `trace.flow(2).rtt`."""
        return Flow(self, number)

    @property
    def hosts(self) -> pl.DataFrame:
        """What each host sent and received: packets, bytes, RTT, losses, connections (`groups("host")`)."""
        return self.groups("host").rows

    def to_pandas(self, table: TableName = "flows") -> pd.DataFrame:
        """Return a table as a frame of pandas: the flows, one row for each flow and direction, or another."""
        return to_pandas(self.table(table).frame())

    def styled(self, *, rows: int | None = SHOWN_FLOWS) -> Styler:
        """Return the `rows` largest flows (None for all) as pandas' Styler, with units and without gaps.

        They have the columns that people look at first; `styled` of `tfrctrace.reports.printers.pandas_style`
        does the same with any table.
        """
        from tfrctrace.reports.printers.pandas_style import leading_columns, styled

        return styled(leading_columns(self.flows, rows))

    def groups(
        self,
        by: str = "host",
        every: Duration | None = None,
        *,
        labels: Iterable[str] = (),
        inventory: StrPath | None = None,
        causes: bool = False,
    ) -> Groups:
        """Return packets, bytes, RTT, losses and connection attempts of groups of flows, by interval.

        `by` is one of `tfrctrace.base.grouping.KINDS`, such as `host`, `prefix/16`, `site` (named by the file
        `inventory`) or `label` (with the rules `labels`; other flows are labelled by their transport).
        `every` such as `"1min"` is the width of the intervals, which begin at multiples of it
        since the epoch; without it there is one. With `causes` rows have the time of flows by what held them
        back (docs/why-is-it-slow.md), else null. Tables of the same grouping add up: `trace.groups() +
        other.groups()`. docs/groups.md says what a row is.
        """
        from tfrctrace.base.grouping import parse_grouping
        from tfrctrace.trace.gather_groups import gather_groups

        named = None if inventory is None else os.fspath(inventory)
        return gather_groups(self, parse_grouping(by, every, named), tuple(labels), causes=causes)

    def delays_under_load(
        self,
        by: str = "link",
        every: Duration = "1s",
        *,
        labels: Iterable[str] = (),
        capacity: str | None = None,
    ) -> list[LoadedDelay]:
        """Return the round-trip times of groups while the link is idle, and while it is loaded.

        An interval is loaded if the rate of the link is above 80 % of its 99th percentile (or of `capacity`,
        as `"10M"`), or if the path holds back flows for half of it; it is idle below 20 %.
        """
        from tfrctrace.base.grouping import parse_grouping
        from tfrctrace.trace.gather_groups import gather_loaded_delays

        return gather_loaded_delays(self, parse_grouping(by, every), tuple(labels), capacity)[1]

    def objectives(
        self, given: StrPath | Iterable[Objective | Mapping[str, Any]], *, labels: Iterable[str] = ()
    ) -> list[ObjectiveResult]:
        """Return which groups met their objectives in which intervals, and when they did not.

        `given` is a file with `[[objective]]` (docs/check.md), or objectives, also as mappings with the keys
        of a file: `[{"require": "p95(rtt_ms) < 80 ms", "by": "host", "every": "1min", "target": "99.5 %"}]`.
        """
        from tfrctrace.gate.objective_results import given_objectives, judge_objectives

        return judge_objectives(self, given_objectives(given), tuple(labels))

    @with_parameters_of(Tables.measure)
    def metrics(self, *names: Any, **options: Any) -> pl.DataFrame:
        """Return the metrics that `measure` computes, one row for each."""
        return self.measure(*names, **options).frame()

    def open_loop(
        self,
        *algorithms: str,
        profile: Profile = "rfc5348",
        tfrc: Mapping[str, float] | None = None,
        settings: Mapping[str, float | str] | None = None,
        rtt: str | None = None,
        segment_bytes: float | None = None,
        rtt_scales: Iterable[float] = (1.0,),
        flows: Iterable[int] | None = None,
        network: Scenario | None = None,
        simulate: bool = False,
        least_packets: int = LEAST_PACKETS,
    ) -> OpenLoop:
        """Return algorithms to be run over the flows, one flow in memory at a time.

        `algorithms` are names such as `tfrc` (the default), `mtfrc`, `tfrc-veno`, or `mymodule:MyControl`;
        `profile` is the variant of TFRC, `tfrc` its parameters that are not the defaults, as `{"q": 0.8}`,
        and `settings` those of one algorithm, as `{"vegas.alpha": 1}`. `rtt` such as `"50ms"` is the
        round-trip time of flows that do not show theirs, `segment_bytes` the segment size of all.
        `rtt_scales` repeats everything with other round-trip times. `network` is who shares the medium, which
        `mtfrc` needs (see `tfrctrace.replay.medium`). `simulate` makes reports also where the trace shows
        some; flows with fewer data packets than `least_packets` are left out. docs/replay.md has the
        limits of the method.
        """
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.replay.from_trace import FlowRecordings, RecordingOptions
        from tfrctrace.replay.open_loop import OpenLoop, mac_bounds, select_algorithms

        # what the trace's own agents are is where a replay of them begins
        parameters = {**self.agents, **(tfrc or {})}
        chosen = select_algorithms(
            algorithms or ("tfrc",), profile, parameters.items(), tuple(rtt_scales), settings
        ).refuse_windows()
        choice = RecordingOptions(
            rtt_ms=None if rtt is None else parse_duration_ns(rtt, "rtt") / NS_PER_MS,
            segment_bytes=segment_bytes,
            simulate=simulate,
            least_packets=least_packets,
            flows=None if flows is None else frozenset(flows),
        )
        bounds = mac_bounds(chosen, network, self.zero_ns if network else 0)
        gathered = self._gathered = self._gathered or FlowRecordings(self)
        return OpenLoop(gathered, chosen, choice, bounds)

    @with_parameters_of(open_loop)
    def replays(self, *names: Any, **options: Any) -> OpenLoopReplay:
        """Return the rates that algorithms would have allowed, and which flows cannot be replayed."""
        return self.open_loop(*names, **options).collected()

    @with_parameters_of(replays)
    def replay(self, *names: Any, **options: Any) -> pl.DataFrame:
        """Return the steps of the algorithms that `replays` replays, one row for each."""
        return self.replays(*names, **options).frame

    def one_steps(
        self,
        *algorithms: str,
        settings: Mapping[str, float | str] | None = None,
        flows: Iterable[int] | None = None,
        least_packets: int = LEAST_PACKETS,
    ) -> OneStepReplay:
        """Return how window algorithms (`cubic` is the default) agree with the decisions of the flows.

        Each decision is predicted from the window and the round-trip times observed before it. Without
        `settings`, such as `{"vegas.alpha": 1}`, the variant counts that predicts best: as specified, or as
        Linux has it. docs/models.md has the limits.
        """
        from tfrctrace.replay.one_step import one_steps
        from tfrctrace.replay.open_loop import select_algorithms

        chosen = select_algorithms(algorithms or ("cubic",), "rfc5348", (), settings=settings)
        return one_steps(
            self,
            chosen.only_windows(),
            flows=None if flows is None else frozenset(flows),
            least_packets=least_packets,
        )

    @with_parameters_of(one_steps)
    def one_step(self, *names: Any, **options: Any) -> pl.DataFrame:
        """Return the decisions that `one_steps` predicts, one row for each."""
        return self.one_steps(*names, **options).frame

    def closed_loops(
        self,
        *algorithms: str,
        profile: Profile = "rfc5348",
        tfrc: Mapping[str, float] | None = None,
        settings: Mapping[str, float | str] | None = None,
        segment_bytes: float | None = None,
        flows: Iterable[int] | None = None,
        least_packets: int = LEAST_PACKETS,
        bottleneck: Iterable[str] = (),
        sweep: str | None = None,
        together: bool = False,
    ) -> ClosedLoops:
        """Return what algorithms would send through the bottleneck of each flow, and the bottlenecks.

        An algorithm takes the flow's place in a fluid model of its path, inferred from the trace, or given by
        `bottleneck`, as `("capacity=3M", "base_rtt=40ms", "buffer=20000", "loss=0.01")`. The traffic of
        others does not react, unless `bottleneck` has `"others=react"`. With a `sweep` such as
        `"buffer=10000,20000"` or `"capacity=0.5x,1x,2x"` (of what the trace shows) each of these values is
        modelled. With `together` all algorithms share the bottleneck. The rest is as in `replays`;
        docs/models.md has the limits of the model.
        """
        from tfrctrace.replay.closed_loop.closed_loops import closed_loops
        from tfrctrace.replay.closed_loop.competitors import named_competitors
        from tfrctrace.replay.closed_loop.overrides import parse_overrides, parse_sweep
        from tfrctrace.replay.from_trace import FlowRecordings, RecordingOptions
        from tfrctrace.replay.open_loop import select_algorithms

        given = parse_overrides(bottleneck)
        swept = None if sweep is None else parse_sweep(sweep)
        parameters = {**self.agents, **(tfrc or {})}
        chosen = select_algorithms(algorithms or ("newreno",), profile, parameters.items(), settings=settings)
        choice = RecordingOptions(
            segment_bytes=segment_bytes,
            least_packets=least_packets,
            flows=None if flows is None else frozenset(flows),
        )
        self.read("flows", "feedback", "rtt", "losses", "rounds", "loss_events", "bins")
        gathered = self._gathered = self._gathered or FlowRecordings(self)
        recordings = gathered.recordings(choice, chosen.receivers[:1])
        named = named_competitors(self.flows, self.named_controls) if given.others == "react" else []
        return closed_loops(
            self, recordings, chosen, given, together=together, sweep=swept, competitors=named
        )

    @with_parameters_of(closed_loops)
    def closed_loop(self, *names: Any, **options: Any) -> pl.DataFrame:
        """Return the rounds of the algorithms that `closed_loops` runs, one row for each."""
        return self.closed_loops(*names, **options).frame

    def why(self, algorithms: Iterable[str] = ()) -> list[FlowCauses]:
        """Return why each direction with data of a TCP connection was no faster, by shares of its time.

        Each has what it shows of the bottleneck of its path, and the congestion control that sent it. Your
        own may be among them: `algorithms` name them as `"mymodule:MyControl"`.
        """
        from tfrctrace.metrics.flow.causes import CausesOfRows

        return list(CausesOfRows(self.why_rows(algorithms)))

    def why_rows(self, algorithms: Iterable[str] = ()) -> pl.DataFrame:
        """Return what `why` returns as a frame, which takes less memory for many flows."""
        from tfrctrace.metrics.flow.causes import OF_TOLD, rows_of_causes
        from tfrctrace.metrics.parts import parts_by_flows
        from tfrctrace.parsers.frames import joined_frame

        self.read("flows", "bottlenecks", *OF_CONTROLS)
        controls = self._controls(algorithms) if algorithms else self.named_controls
        parts = parts_by_flows(
            self.table("cause_sums").frames(),
            self.table("flows").frames(OF_TOLD),
            self.table("bottlenecks").frames(),
            chain([controls.clear()], controls.iter_slices()),
        )
        rows = (rows_of_causes(*part) for part in parts)
        first = next(rows)
        return joined_frame(chain([first], rows), first.clear())

    @property
    def named_controls(self) -> pl.DataFrame:
        """The congestion control of each direction with data, or why it is not known."""
        if self._named is None:
            self._named = self._controls(())
        return self._named

    @property
    def congestion_controls(self) -> pl.DataFrame:
        """One row for each congestion control that may have sent a direction, with its likelihood."""
        from tfrctrace.replay.naming.likelihoods import candidates_frame

        directions, named = self._looked_at(())
        return candidates_frame(directions, named)

    def controls_of(self, flows: Collection[int]) -> pl.DataFrame:
        """Return rows as those of `named_controls`, of some flows alone, by a pass that keeps little else."""
        from tfrctrace.replay.naming.of_trace import controls_frame

        reading = self.read_of_flows(flows, flows, "flows", *OF_CONTROLS)
        return controls_frame(*self._looked_at((), reading=reading))

    def _controls(self, algorithms: Iterable[str]) -> pl.DataFrame:
        from tfrctrace.replay.naming.candidates import own_candidate
        from tfrctrace.replay.naming.of_trace import controls_frame

        directions, named = self._looked_at([own_candidate(name) for name in algorithms])
        return controls_frame(directions, named)

    def _looked_at(
        self, own: Sequence[Candidate], *, with_others: bool = False, reading: PassResult | None = None
    ) -> tuple[Directions, Iterator[Named]]:
        """Return the directions with data, and the congestion controls of those that may be named.

        `with_others`, all that were captured at their sender are looked at. `reading` has them, if not all.
        """
        from tfrctrace.metrics.parts import parts_by_flows
        from tfrctrace.replay.naming.of_trace import (
            OF_FLOWS,
            OF_ROUNDS,
            OF_STRETCHES,
            directions_of,
            named_directions,
        )

        reading = reading or self.read("flows", *OF_CONTROLS)
        parts = parts_by_flows(reading.table("cause_sums").frames(), reading.table("flows").frames(OF_FLOWS))
        directions = directions_of(parts, with_others=with_others)
        rounds = _frames(reading, "rounds", OF_ROUNDS)
        stretches = _frames(reading, "causes", OF_STRETCHES)
        return directions, named_directions(rounds, stretches, directions, own=own)

    @property
    def findings(self) -> pl.DataFrame:
        """One row for each rule that a packet of TFRC or DCCP, or a sender of TCP, broke."""
        import polars as pl

        from tfrctrace.replay.conformance.tcp_findings import OF_FLOWS, OF_LOSSES, OF_TCP, tcp_findings

        reading = self.read("findings", "flows", "tcp", "losses", *OF_CONTROLS)
        _, named = self._looked_at((), with_others=True)
        of_tcp = tcp_findings(
            named,
            _frames(reading, "losses", OF_LOSSES),
            tcp=self.table("tcp").frame(OF_TCP),
            flows=self.table("flows").frame(OF_FLOWS),
        )
        return pl.concat([self.table("findings").frame(), of_tcp])

    def untold(self) -> list[UntoldFlow]:
        """Return the flows with data of which `why` tells nothing."""
        from tfrctrace.metrics.flow.causes import OF_UNTOLD, untold_flows

        self.read("flows", "cause_sums")
        told = self.table("cause_sums").frame(("flow",))
        return untold_flows(told, self.table("flows").frame(OF_UNTOLD))

    def report_parts(
        self,
        *,
        title: str | None = None,
        timezone: str = "UTC",
        objectives: StrPath | Iterable[Objective | Mapping[str, Any]] = (),
        loop: Literal["closed"] | None = None,
        algorithms: Iterable[str] = (),
        bottleneck: Iterable[str] = (),
        sweep: str | None = None,
        together: bool = False,
    ) -> Report:
        """Return what a report says, before it is written: its sections, with figures and tables.

        `timezone` such as `"Europe/Berlin"` or `"local"` is that of times of day. `objectives` are as for
        `objectives`: the report shows when they were violated, and for whom. With `loop="closed"` it has what
        `algorithms` would have received in place of each flow, with the other arguments as for
        `closed_loops`.
        """
        from tfrctrace.base.timezones import TimeZone
        from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays

        if loop is None and (algorithms or bottleneck or sweep or together):
            raise UsageError('`algorithms`, `bottleneck`, `sweep` and `together` need `loop="closed"`')
        if loop not in {None, "closed"}:
            raise UsageError(f"a report has no loop `{loop}`", hint='it has `loop="closed"`')
        judged = self.objectives(objectives) if objectives else ()
        loops = None
        if loop is not None:
            loops = closed_loop_replays(
                self.closed_loops(*algorithms, bottleneck=bottleneck, sweep=sweep, together=together)
            )
        return self._of_report.parts(title or self.name, TimeZone.named(timezone), judged, loops)

    def report(
        self,
        path: StrPath,
        *,
        title: str | None = None,
        timezone: str = "UTC",
        objectives: StrPath | Iterable[Objective | Mapping[str, Any]] = (),
        loop: Literal["closed"] | None = None,
        algorithms: Iterable[str] = (),
        bottleneck: Iterable[str] = (),
        sweep: str | None = None,
        together: bool = False,
    ) -> Path:
        """Write a report, one HTML file that needs nothing else, and return its path.

        A `path` that ends in `.md` becomes Markdown, with its figures in a folder beside it. The rest is as
        for `report_parts`.
        """
        from pathlib import Path

        from tfrctrace.reports.formats import write_report

        parts = self.report_parts(
            title=title,
            timezone=timezone,
            objectives=objectives,
            loop=loop,
            algorithms=algorithms,
            bottleneck=bottleneck,
            sweep=sweep,
            together=together,
        )
        write_report(os.fspath(path), parts)
        return Path(path)

    @with_parameters_of(report_parts)
    def report_html(self, **options: Any) -> str:
        """Return the report as text."""
        from tfrctrace.reports.page.html import render

        return render(self.report_parts(**options))

    def results(self) -> Results:
        """Return the data of a report: flows, bins, reduced samples, metrics, facts about the inputs."""
        return self._of_report.results

    @cached_property
    def _of_report(self) -> TraceReport:
        from tfrctrace.report_data.trace_report import TraceReport

        # in a circle the tables of the core would stay until Python collects circles, which is late
        return TraceReport(proxy(self))

    def plot(
        self,
        kind: PlotKind,
        path: StrPath | None = None,
        *,
        flow: int | None = None,
        window: Duration | None = None,
        style: PaperStyle = "ieee",
        width: Width = "single",
        algorithms: Iterable[str] = (),
        bottleneck: Iterable[str] = (),
        sweep: str | None = None,
    ) -> Drawing:
        """Return the first figure of `kind`, which a notebook shows; write it if there is a `path`.

        `kind` is one of `tfrctrace.reports.figures.kinds.KINDS`, `path` an SVG, PDF, PNG or HTML file. `flow`
        draws one flow alone. `window` such as `"500ms"` is the time that each point of a rate, an RTT or an
        index of fairness sums up; else it fits the length. `style` and `width` (columns) fit the figure into
        a paper. `algorithms` are those of the kinds `replay`, `cwnd` and `closed-loop`, with their defaults;
        `bottleneck` and `sweep` are those of `closed-loop`, as in `closed_loops`. Raises `UsageError` if the
        trace has nothing of that kind.
        """
        from tfrctrace.reports.figures.publication import Drawing, plot_form

        if path is not None:
            plot_form(os.fspath(path))
        left_out: tuple[str, ...] = ()
        if kind != "closed-loop" and (bottleneck or sweep):
            raise UsageError(
                f"a figure of kind `{kind}` models no bottleneck", hint="one of kind `closed-loop` does"
            )
        if kind in {"replay", "closed-loop"} or (kind == "cwnd" and algorithms):
            if window is not None:
                raise UsageError(f"a figure of kind `{kind}` with algorithms has no windows")
            of_model = {"bottleneck": bottleneck, "sweep": sweep} if kind == "closed-loop" else {}
            figures, left_out = self._replayed(kind, algorithms, flow, **of_model)
        elif algorithms:
            raise UsageError(
                f"a figure of kind `{kind}` has no algorithms",
                hint="those of kinds `replay`, `cwnd` and `closed-loop` have",
            )
        else:
            figures = self._of_report.figures(kind, flow, window)
        drawing = Drawing(tuple(figures), style, width, left_out)
        if path is not None:
            drawing.save(path)
        return drawing

    def _replayed(
        self, kind: PlotKind, algorithms: Iterable[str], flow: int | None, **of_model: Any
    ) -> tuple[list[Figure], tuple[str, ...]]:
        from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays
        from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops
        from tfrctrace.reports.figures.kinds import check_found
        from tfrctrace.reports.figures.replays import not_drawn, replay_figures, sweep_figures

        replays: Mapping[str, Callable[..., OpenLoopReplay | OneStepReplay | ClosedLoops]]
        replays = {"replay": self.replays, "cwnd": self.one_steps, "closed-loop": self.closed_loops}
        found = replays[kind](*algorithms, flows=None if flow is None else [flow], **of_model)
        if isinstance(found, ClosedLoops) and found.sweep is not None:
            swept = closed_loop_replays(found)
            figures = [figure for one in swept.flows for figure in sweep_figures(swept, one)]
        else:
            starts_ns = [source["start_ns"] for source in self.sources if source["start_ns"] is not None]
            figures = list(replay_figures(kind, found.frame, min(starts_ns, default=0)))
        left_out = not_drawn(found.lacking)
        check_found(figures, kind, left_out)
        return figures, left_out

    def save_results(self, folder: StrPath, *, title: str | None = None, csv: bool = False) -> Path:
        """Write the results into a directory (JSON and Parquet), and return its path.

        With `csv` each table is there as CSV too. `tfrctrace report --from` makes the report of them without
        the trace.
        """
        from pathlib import Path

        from tfrctrace.base.version import VERSION
        from tfrctrace.reports.files.saved_results import save

        save(self.results(), os.fspath(folder), title=title or self.name, version=VERSION, csv=csv)
        return Path(folder)


@dataclass(frozen=True, repr=False)
class Flow:
    """A flow by its number, as `tfrctrace flows` shows it. `Trace.flow` makes it."""

    trace: Trace
    number: int

    def __post_init__(self) -> None:
        if self.rows.is_empty():
            raise UsageError(
                f"the trace has no flow {self.number}", hint="`trace.flows` numbers those it has"
            )

    def __repr__(self) -> str:
        from tfrctrace.reports.flow_rows import FlowRow
        from tfrctrace.reports.records import records

        lead, *_ = records(self.rows.sort("wire_bytes", descending=True), FlowRow)
        words = (lead.transport, lead.state, lead.label)
        return f"<Flow {self.number}: {lead.ends}, {', '.join(word for word in words if word)}>"

    @property
    def rows(self) -> pl.DataFrame:
        """Its rows of the table of flows, one for each direction."""
        return self.table("flows")

    @property
    def rtt(self) -> pl.DataFrame:
        """One row for each RTT sample, in ns."""
        return self.table("rtt")

    @property
    def losses(self) -> pl.DataFrame:
        """One row for each retransmitted or out-of-order packet."""
        return self.table("losses")

    @property
    def rounds(self) -> pl.DataFrame:
        """One row for each round of data in flight: flight, windows, repair."""
        return self.table("rounds")

    @property
    def causes(self) -> pl.DataFrame:
        """One row for each stretch of its life: why it was no faster."""
        return self.table("causes")

    @property
    def bins(self) -> pl.DataFrame:
        """Counts in bins of time."""
        return self.table("bins")

    @property
    def packets(self) -> pl.DataFrame:
        """Its packets."""
        import polars as pl

        return pl.concat(self._own(batch) for batch in self.trace.packets())

    def table(self, name: TableName) -> pl.DataFrame:
        """Return its rows of any table that has flows."""
        if name == "variables":
            return self._own(self.trace.variables)  # which finds the flow of a sample
        table = self.trace.table(name)
        flows = table.frame(["flow"])
        if "flow" not in flows.columns:
            raise UsageError(f"the table `{name}` has no flows", hint=f"ask the trace: `trace.{name}`")
        # all columns of a hundred thousand flows would take a fifth of a gigabyte
        return table.take((flows["flow"] == self.number).arg_true().to_list())

    def throughput(self, width: str | timedelta) -> pl.DataFrame:
        """Return throughput and goodput (bit/s) of each direction in bins of `width`, such as `"500ms"`."""
        return self._own(self.trace.throughput(width))

    def plot(self, kind: PlotKind, *args: Any, **options: Any) -> Drawing:
        """Return the first figure of `kind` for this flow; further arguments as for `Trace.plot`."""
        return self.trace.plot(kind, *args, flow=self.number, **options)

    def _own(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(flow=self.number)


def _frames(reading: PassResult, name: TableName, columns: Iterable[str]) -> Iterator[pl.DataFrame]:
    """Give columns of a table, which is only made if they are asked for."""
    yield from reading.table(name).frames(columns)
