"""The passes over the inputs of a trace: what each collected, and when another one is needed."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from tfrctrace.base.errors import STANDARD_INPUT, InputError, ReadOnceError, TfrctraceWarning, UsageError
from tfrctrace.base.interruptible import STEP_S
from tfrctrace.base.nearest import proposal_or_all
from tfrctrace.trace.time_zero import YEAR_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from contextlib import AbstractContextManager

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.parsers._native import Clock, SourceSummary, Table
    from tfrctrace.parsers.copying import CopiedPackets, Wanted
    from tfrctrace.parsers.reading import PacketBatches, Pass, PassResult, StackedTable
    from tfrctrace.parsers.reading_settings import ReadSettings
    from tfrctrace.parsers.sources import Inputs

TableName = Literal[
    "flows",
    "tcp",
    "bins",
    "rtt",
    "rtt_buckets",
    "losses",
    "rounds",
    "causes",
    "cause_sums",
    "bottlenecks",
    "variables",
    "feedback",
    "loss_events",
    "loss_intervals",
    "findings",
    "rtp_sources",
    "rtp_intervals",
    "links",
    "link_samples",
    "transits",
    "hops",
]
"""Tables that a pass fills: those of the core but `packets`, which are read in batches (`Trace.packets`)."""

OF_CONTROLS: Final[tuple[TableName, ...]] = ("cause_sums", "causes", "rounds")
"""Those by which congestion controls are found."""

ONE_PASS: Final[frozenset[TableName]] = frozenset(get_args(TableName)) - {"transits", "hops"}
"""What is collected of an input that can be read only once."""

NS_PER_MS: Final = 1_000_000

_PAIR: Final = 2


def wait_quietly(running: Pass) -> None:
    """Wait for the end of a pass; an interrupt stops it."""
    try:
        while not running.wait(STEP_S):
            pass
    except BaseException:
        running.cancel()
        raise


def warn_about(problems: list[Problem]) -> None:
    """Issue a `TfrctraceWarning` for each problem; notes are not worth one."""
    for problem in problems:
        if problem["severity"] != "note":
            warnings.warn(TfrctraceWarning(problem), stacklevel=2)


class Passes:
    """Inputs, and what was read of them. What was collected is kept, so asking twice reads once."""

    def __init__(
        self,
        inputs: Inputs,
        settings: ReadSettings,
        *,
        bin_ns: int | None = None,
        watch: Callable[[Pass], None] = wait_quietly,
        on_problems: Callable[[list[Problem]], None] = warn_about,
    ) -> None:
        """Take the inputs; use `tfrctrace.open` instead, unless you want to `watch` the reading yourself.

        `watch` is given a running pass and returns at its end; `on_problems` is called once with problems.
        """
        if not inputs.names:
            raise InputError(inputs.problems)
        self._inputs = inputs
        self._settings = settings
        self._bin_ns = bin_ns
        self._watch = watch
        self._on_problems = on_problems
        self._readings: list[tuple[frozenset[TableName], PassResult]] = []
        self._groupings: dict[Grouping, tuple[bool, PassResult]] = {}
        self._bins: dict[int, StackedTable] = {}
        self._arrived: dict[int, pl.DataFrame] = {}
        self._was_streamed = False
        self._has_reported = False
        self._reported_once: set[tuple[str, str]] = set()
        if settings.anonymizer:  # numbers its inputs in their order
            list(map(settings.anonymizer.source, inputs.names))

    @property
    def is_joined(self) -> bool:
        """Whether all inputs are one trace: one after the other, or at the places of one network."""
        return self._settings.join or self.is_network

    @property
    def is_network(self) -> bool:
        """Whether the inputs are more than two captures of one clock, between which are hops."""
        return self.is_pair and len(self._inputs.names) > _PAIR

    @property
    def is_pair(self) -> bool:
        """Whether packets are matched between the inputs."""
        return self._settings.pair is not None

    @property
    def settings(self) -> ReadSettings:
        """How the inputs are read."""
        return self._settings

    @property
    def agents(self) -> dict[str, float]:
        """Parameters of ns-2's TFRC agents with which their ends are rebuilt, those that are not defaults."""
        return dict(self._settings.tfrc.agents)

    @property
    def is_read_once(self) -> bool:
        """Whether the trace comes through a pipe, so that its one pass has to collect everything."""
        return self._inputs.is_read_once

    @property
    def name(self) -> str:
        """What the trace is called in a title: the file's name, or how many files there are."""
        names = self.names
        if names == [STANDARD_INPUT]:
            return "standard input"
        return os.path.basename(names[0]) if len(names) == 1 else f"{len(names)} traces"

    @property
    def names(self) -> list[str]:
        """Names of the inputs; numbers instead if the trace is anonymised."""
        anonymizer = self._settings.anonymizer
        return list(map(anonymizer.source, self._inputs.names)) if anonymizer else self._inputs.names

    @property
    def clock(self) -> Clock | None:
        """How the clocks of two captures differ, with bounds; None without `pair`."""
        return self._any_reading().clock

    @property
    def sources(self) -> list[SourceSummary]:
        """What each input held: format, link types, counts, times in ns."""
        return self._any_reading().sources

    @property
    def zero_ns(self) -> int:
        """What 0 s of a scenario is: the start of a simulation, else the first packet of the trace."""
        starts = [source["start_ns"] for source in self.sources if source["start_ns"] is not None]
        return min((start_ns for start_ns in starts if start_ns > YEAR_NS), default=0)

    @property
    def warnings(self) -> list[Problem]:
        """What was wrong with the inputs, as facts; `tfrctrace.base.errors.describe` makes words of them."""
        return self.publishable(self._inputs.problems + self._any_reading().problems)

    def publishable(self, problems: list[Problem]) -> list[Problem]:
        """Return `problems` as results may show them: without names if the trace is anonymized."""
        anonymizer = self._settings.anonymizer
        if anonymizer is None:
            return problems
        from tfrctrace.parsers.anonymity import anonymised_note

        return [*map(anonymizer.problem, problems), anonymised_note()]

    def table(self, name: TableName) -> StackedTable:
        """Return a table as the core made it: rows or Arrow streams, without a data frame."""
        return self._read_one(name).table(name)

    def read(self, *tables: TableName) -> PassResult:
        """Return a reading that holds `tables`, from one pass over the inputs if there was none yet.

        Properties do this by themselves; call it first if several tables are wanted, and only those.
        """
        wanted = frozenset(tables)
        if wanted & {"transits", "hops"} and self._settings.pair is None:
            raise UsageError(
                "packets in transit are between two captures or more of the same packets",
                hint="name two captures or more, and say so with `--pair`",
            )
        for collected, reading in self._readings:
            if wanted <= collected:
                return reading
        self._refuse_second_reading(" and ".join(sorted(wanted)))
        reading = self._pass(wanted, self._bin_ns)
        widths_ns = reading.bin_widths_ns
        if len(widths_ns) > 1:
            # each trace was given the width that fits its length; one table has one width
            reading = self._pass(wanted, max(widths_ns))
        self._readings.append((wanted, reading))
        return reading

    def read_of_flows(
        self,
        sampled: Iterable[int],
        explained: Iterable[int],
        *tables: TableName,
        graphed: Collection[tuple[int, bool]] = (),
        bin_ns: int | None = None,
    ) -> PassResult:
        """Return a reading whose round-trip times and rounds, and whose causes, are those of some flows.

        If a trace could not be read before, they are those of all flows. Rounds show windows and paces of
        flows that are explained, too. `graphed` are the directions with a time-sequence graph: the flow, and
        whether it is `fwd`. Only the bins of `bin_ns` are kept, which are of all flows.
        """
        before = self._any_reading()
        self._refuse_second_reading(" and ".join(sorted(tables)))
        chosen = before.chosen(sampled, explained, graphed)
        is_whole = before.trace_count == (1 if self.is_joined or self.is_pair else len(self._inputs.names))
        settings = replace(self._settings, chosen=chosen) if is_whole else None
        if bin_ns is None:
            return self._pass(frozenset(tables), self._bin_ns, settings=settings)
        reading = self._pass(frozenset({*tables, "bins"}), bin_ns, settings=settings)
        self._bins[bin_ns] = reading.table("bins")
        return reading

    def read_spooled(self, *tables: TableName) -> PassResult:
        """Return a reading with `tables`, and with what a replay needs of each direction (`spool_of`)."""
        if self._settings.pair is not None:
            raise UsageError(
                "the packets of a pair are in `transits`, matched", hint="leave `pair` out for those of each"
            )
        wanted, layer = frozenset(tables), self._settings.layer
        for collected, reading in self._readings:
            if reading.spools and wanted <= collected:
                return reading
        self._refuse_second_reading("the table of packets")
        self._was_streamed = True
        reading = self._pass(wanted, self._bin_ns, is_spooled=layer is None)
        if layer is not None:
            # packets are followed through every layer, whichever counts
            every = replace(self._settings, layer=None)
            reading.spools = self._pass(frozenset(), None, settings=every, is_spooled=True).spools
        self._readings.append((wanted, reading))
        return reading

    def read_groups(self, grouping: Grouping, *tables: TableName) -> PassResult:
        """Return a reading with the tables of groups and of flows, from one pass over the inputs.

        If there was none yet, other `tables` are collected by the same pass. Groups have times by cause if
        one of these is `causes`.
        """
        has_causes, reading = self._groupings.get(grouping, (False, None))
        if reading is None or ("causes" in tables and not has_causes):
            self._refuse_second_reading(f"the table of groups by {grouping.text}")
            # flows take more memory than their groups: one table of them is enough
            has_flows = any("flows" in collected for collected, _ in self._readings)
            wanted: frozenset[TableName] = frozenset(tables if has_flows else {"flows", *tables})
            reading = self._pass(wanted, self._bin_ns, grouping)
            self._groupings[grouping] = "causes" in wanted, reading
            if wanted:
                self._readings.append((wanted, reading))
        return reading

    def released_groups(
        self, grouping: Grouping, watching: Callable[[Pass], AbstractContextManager[Callable[[], None]]]
    ) -> Iterator[dict[str, Any]]:
        """Give rows of groups once their interval is over, and `revised` ones in place of earlier ones.

        `watching` is given the running pass, and what it yields is called again and again meanwhile.
        """
        from queue import Empty, Full, Queue

        from tfrctrace.parsers.reading import Pass, StackedTable

        self._refuse_second_reading(f"the table of groups by {grouping.text}")
        released: Queue[tuple[Table, list[bool]]] = Queue(1)
        is_over = False

        def release(table: Table, revised: list[bool]) -> None:
            while not is_over:
                with suppress(Full):
                    released.put((table, revised), timeout=STEP_S)
                    break

        running = Pass(self._inputs.names, self._settings, frozenset(), grouping=grouping, release=release)
        try:
            with watching(running) as redraw:
                while not running.wait(0) or not released.empty():
                    redraw()
                    try:
                        table, revised = released.get(timeout=STEP_S)
                    except Empty:
                        continue
                    rows = StackedTable([table], self._settings.anonymizer).rows()
                    for row, is_revised in zip(rows, revised, strict=True):
                        yield row | {"revised": True} if is_revised else row
        finally:
            is_over = True
            if not running.wait(0):
                running.cancel()
        self._readings.append((frozenset({"flows"}), self._ended(running)))

    def forget(self, reading: PassResult) -> None:
        """Let go of the tables of a reading, which are read again if asked for; keep its problems."""
        self._readings = [kept for kept in self._readings if kept[1] is not reading]
        self._groupings = {by: kept for by, kept in self._groupings.items() if kept[1] is not reading}
        known = self._any_reading().problems
        new = [problem for problem in reading.problems if problem not in known]
        known += new
        self._report_problems_once(new)

    def _any_reading(self) -> PassResult:
        return self._readings[0][1] if self._readings else self._read_one("flows")

    def _read_one(self, name: TableName) -> PassResult:
        """Return a reading with the table `name`; of what is read once, with all that there will ever be."""
        known = get_args(TableName)
        if name not in known:
            raise UsageError(f"a trace has no table `{name}`", hint=proposal_or_all(name, known))
        if self._inputs.is_read_once and not self._readings:
            return self.read(*ONE_PASS)
        return self.read(name)

    def packet_batches(self, columns: Iterable[str] | None = None) -> PacketBatches:
        """Return all packets in tables of the core, to be iterated over once, without a data frame.

        They have all columns or some.
        """
        from tfrctrace.parsers.reading import PacketBatches

        if self._settings.pair is not None:
            raise UsageError(
                "the packets of a pair are in `transits`, matched", hint="leave `pair` out for those of each"
            )
        self._refuse_second_reading("the table of packets")
        self._was_streamed = True
        return PacketBatches(self._inputs.names, self._settings, columns)

    def copied_packets(
        self,
        form: tuple[str, str],
        choose: Callable[[pl.DataFrame], Wanted] | None = None,
        section_comment: str | None = None,
    ) -> CopiedPackets:
        """Return the packets as they were recorded, as bytes of a capture file.

        `form` is the kind of file and its compression; `choose` is given batches of packets, and returns
        those that are wanted and their comments.
        """
        from tfrctrace.parsers.copying import CopiedPackets

        if self.is_pair:
            raise UsageError("`pair` does not apply to packets as they were recorded")
        self._refuse_second_reading("packets as they were recorded")
        self._was_streamed = True
        return CopiedPackets(self._inputs.names, self._settings, form, choose, section_comment)

    def _refuse_second_reading(self, wanted: str) -> None:
        if self._inputs.is_read_once and (self._readings or self._was_streamed):
            raise ReadOnceError(wanted)

    def _pass(
        self,
        collect: frozenset[TableName],
        bin_ns: int | None,
        grouping: Grouping | None = None,
        *,
        settings: ReadSettings | None = None,
        is_spooled: bool = False,
    ) -> PassResult:
        """Read all inputs once; the first time, report what was wrong with them."""
        from tfrctrace.parsers.reading import Pass

        running = Pass(
            self._inputs.names,
            settings or self._settings,
            collect,
            bin_ns=bin_ns,
            grouping=grouping,
            is_spooled=is_spooled,
        )
        self._watch(running)
        return self._ended(running)

    def _ended(self, running: Pass) -> PassResult:
        reading = running.result()
        if reading.read_nothing:
            raise InputError(self._inputs.problems + reading.problems)
        if not self.is_joined and not self.is_pair:
            from tfrctrace.parsers.rotated_names import rotated_files

            reading.problems += filter(None, [rotated_files(self._inputs.names, reading.sources)])
        self._report_problems(reading.problems)
        return reading

    def _report_problems(self, problems: list[Problem]) -> None:
        if not self._has_reported:
            self._has_reported = True
            self._on_problems(self._inputs.problems + problems)

    def _report_problems_once(self, problems: list[Problem]) -> None:
        """Report each problem once: several tables may be requested with the same labels."""
        new = {(problem["source"], problem["message"]): problem for problem in problems}
        new = {key: problem for key, problem in new.items() if key not in self._reported_once}
        self._reported_once |= new.keys()
        self._on_problems(list(new.values()))
