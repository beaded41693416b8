"""One pass of the core over all inputs: threads, progress, and one numbering of the flows.

The core runs outside Python's lock, so each input gets a thread, and the thread that asked is free to show
progress and to be interrupted. Results stand in the order of the inputs, whichever was ready first.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tfrctrace.base.errors import STANDARD_INPUT, FilterError, SpoolError, input_problem
from tfrctrace.base.hints import with_hints
from tfrctrace.base.interruptible import in_thread
from tfrctrace.parsers._native import PacketReader, Progress, SpoolFile, analyse, analyse_pair
from tfrctrace.parsers.pcap_over_ip import CaptureServer, is_pcap_over_ip
from tfrctrace.parsers.remote import RemoteFile, is_remote
from tfrctrace.parsers.sources import size_in_bytes
from tfrctrace.parsers.stretches import outside_note, with_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.parsers._native import (
        Analysis,
        ArrowStream,
        Clock,
        DirectionSpool,
        Source,
        SourceSummary,
        Table,
    )
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.parsers.pairing import Pair
    from tfrctrace.parsers.reading_settings import ChosenFlows, ReadSettings

Item = TypeVar("Item")

_MANY_ROWS: Final = 400_000
"""Rows of flows after which a pass leaves a lot of free memory."""

ROWS_AT_ONCE: Final = 64
"""Rows that are Python objects at one time, a megabyte: a table of flows shows only a few."""

TEXT_ROWS: Final = 2_048
"""Rows that are text at one time, a few megabytes: more would not be faster."""

FRAME_ROWS: Final = 4_096
"""Rows of one frame of several, 5 MB with all columns of flows."""

BATCH_ROWS: Final = 65_536
"""Rows of one batch that is written."""

_SPOOL_BUFFER_BYTES: Final = 32 << 20
"""Bytes of the spools of all inputs that are in memory; what goes beyond is in a file."""

_NEAR_ROWS: Final = 64
"""Rows between two that are read in one piece with them."""

_YEAR_NS: Final = 365 * 86_400 * 1_000_000_000

_GRACE_S: Final = 1.0
"""How long to wait for a cancelled thread: one that reads from a pipe may be stuck in that."""


class StackedTable:
    """The tables of several traces, one below the other."""

    def __init__(self, tables: Sequence[Table], anonymizer: Anonymizer | None = None) -> None:
        self._tables = tuple(tables)
        self._anonymizer = anonymizer

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def rows(self, columns: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Give the rows as dictionaries, of all columns or of some, few of them at one time."""
        for table, start, stop in self._pieces(ROWS_AT_ONCE, columns):
            rows = table.rows(start, stop)
            yield from map(self._anonymizer.row, rows) if self._anonymizer else rows

    def rows_at(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Give the rows at these places, as dictionaries."""
        for place in places:
            before = 0
            for table in self._tables:
                if place < before + len(table):
                    (row,) = table.rows(place - before, place - before + 1)
                    yield self._anonymizer.row(row) if self._anonymizer else row
                    break
                before += len(table)

    def largest_flows(self, column: str, limit: int | None, *, total: bool) -> Iterator[list[dict[str, Any]]]:
        """Give the rows of each of the `limit` flows with the largest sum or maximum of a column."""
        most = len(self) if limit is None else limit
        found = [
            (-value, number, start, end)
            for number, table in enumerate(self._tables)
            for value, start, end in table.largest_flows(column, most, total=total)
        ]
        for _, number, start, end in sorted(found)[:most]:
            rows = self._tables[number].rows(start, end)
            yield list(map(self._anonymizer.row, rows)) if self._anonymizer else rows

    def csv(self, *, raw: bool = False) -> Iterator[bytes]:
        """Give the rows as lines of CSV, many at a time, without the names of the columns.

        Text is made safe for spreadsheets and terminals unless `raw`.
        """
        if self._anonymizer is None:
            return (table.csv(start, stop, raw=raw) for table, start, stop in self._pieces(TEXT_ROWS))
        import polars as pl

        from tfrctrace.parsers.csv_text import frame_csv

        # the core writes what it has read, without the anonymized names
        return (frame_csv(pl.DataFrame(part), raw=raw, header=False) for part in self.parts())

    def json(self) -> Iterator[str]:
        """Give the rows as objects of JSON, all ASCII, many at a time with a comma between each two."""
        if self._anonymizer is None:
            return (table.json(start, stop) for table, start, stop in self._pieces(TEXT_ROWS))
        from json import JSONEncoder

        return map(JSONEncoder(allow_nan=False).encode, self.rows())

    def parts(self, columns: Iterable[str] | None = None) -> Iterator[ArrowStream]:
        """Give the rows with all columns or some, in tables one below the other, for a writer of files."""
        tables = self._with_columns(columns)
        return iter(tables) if self._anonymizer is None else anonymized_parts(tables, self._anonymizer)

    def frame(self, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Return a data frame of all columns or of some, without a copy when there is only one trace."""
        import polars as pl

        frame = pl.concat([pl.DataFrame(table) for table in self._with_columns(columns)])
        return self._anonymizer.frame(frame) if self._anonymizer else frame

    def frames(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """Give the rows with all columns or some, in frames of bounded size."""
        import polars as pl

        for table in self._with_columns(columns):
            # an empty table has its columns
            for start in range(0, max(len(table), 1), FRAME_ROWS):
                frame = pl.DataFrame(table.slice(start, start + FRAME_ROWS))
                yield self._anonymizer.frame(frame) if self._anonymizer else frame

    def small_frame(self, columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Return the data frame in as little memory as it needs: columns of one value take none."""
        import polars as pl

        from tfrctrace.parsers.frames import joined_frame

        frames = self.frames(columns)
        first = next(frames, pl.DataFrame())
        return joined_frame(chain([first], frames), first.clear())

    def take(self, rows: Sequence[int], columns: Iterable[str] | None = None) -> pl.DataFrame:
        """Return the rows at these places, which ascend, with all columns or some."""
        import polars as pl

        from tfrctrace.parsers.frames import joined_frame

        tables = self._with_columns(columns)
        frames = (
            pl.DataFrame(table.slice(places[0], places[-1] + 1))[[place - places[0] for place in places]]
            for table, places in _stretches(tables, rows)
        )
        frame = joined_frame(frames, pl.DataFrame(tables[0].slice(0, 0)))
        return self._anonymizer.frame(frame) if self._anonymizer else frame

    def _with_columns(self, columns: Iterable[str] | None) -> Sequence[Table]:
        if columns is None:
            return self._tables
        names = list(columns)
        return [table.select(names) for table in self._tables]

    def _pieces(self, most: int, columns: Iterable[str] | None = None) -> Iterator[tuple[Table, int, int]]:
        """Give each table with the bounds of `most` rows after the other."""
        for table in self._with_columns(columns):
            for start in range(0, len(table), most):
                yield table, start, min(start + most, len(table))


def _spool_folder() -> str:
    """Return the folder of temporary files; what finds it is not imported by those who need none."""
    from tempfile import gettempdir

    return gettempdir()


def _return_memory() -> None:
    """Give memory that a pass has freed back to the system, where the C library keeps it."""
    import ctypes

    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


class Pass:
    """One pass over all inputs, which runs in threads of its own from the start.

    It may be watched (`wait`, `bytes_read`, `packets`) and cancelled from another thread.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        settings: ReadSettings,
        collect: frozenset[str],
        *,
        bin_ns: int | None = None,
        grouping: Grouping | None = None,
        is_spooled: bool = False,
        release: Callable[[Table, list[bool]], None] | None = None,
    ) -> None:
        self.total_bytes = _bytes_to_read(inputs, settings)
        """Bytes to be read, compressed ones if the input is; None if that is not known."""
        self._settings = settings if grouping is None else replace(settings, grouping=grouping.for_core)
        self._collect = collect
        self._bin_ns = bin_ns
        self._release = release
        is_one = settings.join or settings.pair is not None
        self._traces = [list(inputs)] if is_one else [[name] for name in inputs]
        most_buffered = _SPOOL_BUFFER_BYTES // len(self._traces)
        self._spool = SpoolFile(_spool_folder(), most_buffered) if is_spooled else None
        self._progress = [Progress() for _ in self._traces]
        self._results: list[Analysis | None] = [None] * len(self._traces)
        self._refusals: dict[int, Problem] = {}
        self._failure: BaseException | None = None
        self._queue = iter(range(len(self._traces)))
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._running = min(len(self._traces), os.cpu_count() or 1)
        for _ in range(self._running):
            # daemons: a thread that is stuck reading from a pipe must not keep the program alive
            threading.Thread(target=self._work, name="tfrctrace-reader", daemon=True).start()
        if not self._running:
            self._done.set()

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, as `total_bytes` counts them."""
        return sum(progress.bytes_read for progress in self._progress)

    @property
    def packets(self) -> int:
        """Packets read so far."""
        return sum(progress.packets for progress in self._progress)

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; return whether the pass is at its end."""
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Stop all threads, or leave alone those that do not react."""
        with self._lock:
            self._queue = iter(())
        for progress in self._progress:
            progress.cancel()
        self._done.wait(_GRACE_S)

    def result(self) -> PassResult:
        """Return what was collected. Call it when `wait` has returned true."""
        if self._failure is not None:
            raise self._failure
        analyses = [analysis for analysis in self._results if analysis is not None]
        if sum(len(analysis.table("flows")) for analysis in analyses) > _MANY_ROWS:
            _return_memory()
        return PassResult(
            _numbered_through(analyses),
            [problem for _, problem in sorted(self._refusals.items())],
            self._settings,
        )

    def _work(self) -> None:
        """Read traces until none is left or one has failed."""
        try:
            while (index := self._next_trace()) is not None:
                self._read(index)
        except BaseException as failure:
            with self._lock:
                self._failure = self._failure or failure
                self._queue = iter(())
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._done.set()

    def _next_trace(self) -> int | None:
        with self._lock:
            return next(self._queue, None)

    def _read(self, index: int) -> None:
        """Read one trace, and keep its result in the place that the order of the inputs gives it."""
        settings = self._settings
        trace = self._traces[index]
        try:
            if settings.pair is not None:
                self._results[index] = self._analyse_pair(trace, settings.pair, index)
                return
            sources, form = inputs_for_core(trace, settings)
            analysis = self._analyse(sources, form, index)
            is_one_file = len(trace) == 1 and not isinstance(sources[0], tuple)
            if settings.format is None and is_one_file and _is_unknown(analysis):
                analysis = self._analyse_with_reader(trace[0], index) or analysis
            self._results[index] = analysis
        except FilterError as error:
            self._refusals[index] = filter_refused(trace, error)

    def _settings_of(self, index: int) -> ReadSettings:
        """Return the settings for a trace, with those of its flows that were chosen."""
        settings = self._settings
        if settings.chosen is None:
            return settings
        sampled, explained, graphed = settings.chosen.of_trace(index)
        return replace(settings, sampled_flows=sampled, explained_flows=explained, graphed_flows=graphed)

    def _analyse(self, sources: Sequence[Source], form: str | None, index: int) -> Analysis:
        try:
            return analyse(
                sources,
                with_ends(sources, replace(self._settings_of(index), format=form), self._progress[index]),
                collect=self._collect,
                bin_ns=self._bin_ns,
                into=self._spool or self._release,
                progress=self._progress[index],
            )
        except OSError as error:
            if self._spool is None:
                raise  # by a filter or reader in Python
            # the core's words end in the number of the error
            raise SpoolError(_spool_folder(), str(error).partition(" (os error")[0].lower()) from error

    def _analyse_pair(self, trace: Sequence[str], pair: Pair, index: int) -> Analysis:
        return analyse_pair(
            trace,
            with_ends(trace, self._settings_of(index), self._progress[index]),
            collect=self._collect,
            bin_ns=self._bin_ns,
            clock_offset_ns=pair.clock_offset_ns,
            progress=self._progress[index],
        )

    def _analyse_with_reader(self, name: str, index: int) -> Analysis | None:
        """Ask the readers of other packages about an input that the core does not know."""
        from tfrctrace.parsers.plugins import PACKETS_FORMAT, read_with, reader_for

        reader = None if name == STANDARD_INPUT else reader_for(name)
        return self._analyse([read_with(reader, name)], PACKETS_FORMAT, index) if reader else None


class PassResult:
    """What one pass has collected."""

    def __init__(
        self,
        analyses: Sequence[Analysis],
        problems: Sequence[Problem],
        settings: ReadSettings,
    ) -> None:
        """Take analyses whose flows are numbered through, and further problems."""
        self._analyses = tuple(analyses)
        self._anonymizer = anonymizer = settings.anonymizer
        self._flows = [analysis.table("flows") for analysis in analyses]
        sources = [source for analysis in analyses for source in analysis.sources]
        for source in sources:
            _name_place(source)
        self.sources: list[SourceSummary] = list(map(anonymizer.summary, sources) if anonymizer else sources)
        self.problems: list[Problem] = [*problems]
        for analysis in analyses:
            self.problems += with_hints(analysis.problems)
        self.problems += outside_note(
            settings, sources, _summed([analysis.cut_flows for analysis in analyses])
        )
        self.read_nothing = not _was_read(sources, self.problems)
        """Whether every input has an error and not one packet could be read."""
        self.spools = [analysis.spool for analysis in analyses if analysis.spool is not None]
        """What a replay needs of each trace, if that was kept."""

    @property
    def flow_count(self) -> int:
        """Conversations, of which each has two directions."""
        return max(map(_last_flow, self._flows), default=0)

    @property
    def trace_count(self) -> int:
        """Traces that were read: inputs, or one if they are joined."""
        return len(self._analyses)

    @property
    def clock(self) -> Clock | None:
        """How the clocks of two paired captures differ; None without a pair."""
        return next((analysis.clock for analysis in self._analyses), None)

    @property
    def bin_widths_ns(self) -> set[int]:
        """Widths of the bins of the traces; the core chooses one for each trace."""
        bins = [analysis.table("bins") for analysis in self._analyses]
        return {table.rows(0, 1)[0]["width_ns"] for table in bins if len(table)}

    def table(self, name: str) -> StackedTable:
        """Return a table over all traces. It is empty if the pass did not collect it."""
        return StackedTable(self._tables(name), self._anonymizer)

    def sequence_tiles(self) -> StackedTable:
        """Return the tiles of the time-sequence graphs of chosen flows."""
        return StackedTable([analysis.sequence_tiles() for analysis in self._analyses], self._anonymizer)

    def chosen(
        self, sampled: Iterable[int], explained: Iterable[int], graphed: Collection[tuple[int, bool]]
    ) -> ChosenFlows:
        """Return flows for a further pass over the same traces."""
        from tfrctrace.parsers.reading_settings import ChosenFlows

        ends = [0]
        for flows in self._flows:
            ends.append(max(ends[-1], _last_flow(flows)))
        return ChosenFlows([end + 1 for end in ends[:-1]], sorted(sampled), sorted(explained), graphed)

    def spool_of(self, flow: int) -> DirectionSpool:
        """Return the spool that has the directions of a flow."""
        of = bisect_right(self.spools, flow, key=lambda spool: spool.first_flow)
        return self.spools[max(of - 1, 0)]

    def _tables(self, name: str) -> list[Table]:
        return self._flows if name == "flows" else [analysis.table(name) for analysis in self._analyses]


class InOrder:
    """The traces read one after the other, packet by packet; memory does not grow with their number.

    `sources` and `problems` are complete at the end.
    """

    def __init__(self, inputs: Sequence[str], settings: ReadSettings) -> None:
        self.total_bytes = _bytes_to_read(inputs, settings)
        self.sources: list[SourceSummary] = []
        self.problems: list[Problem] = []
        self._settings = settings
        self._traces = [list(inputs)] if settings.join else [[name] for name in inputs]
        self._progress = [Progress() for _ in self._traces]

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, as `total_bytes` counts them."""
        return sum(progress.bytes_read for progress in self._progress)

    @property
    def packets(self) -> int:
        """Packets read so far."""
        return sum(progress.packets for progress in self._progress)

    @property
    def read_nothing(self) -> bool:
        """Whether every input has an error and not one packet could be read."""
        return not _was_read(self.sources, self.problems)

    def _of_each_trace(self, work: Callable[[Sequence[str], PacketReader], Iterator[Item]]) -> Iterator[Item]:
        """Give what `work` makes of each trace and its reader, and note the traces' problems."""
        flows_before = 0
        cut = [(0, 0)]
        for trace, progress in zip(self._traces, self._progress, strict=True):
            open_reader = partial(self._reader_of, trace, progress, flows_before + 1)
            try:
                # what begins a trace is read by this already
                reader = in_thread(open_reader)
                yield from work(trace, reader)
            except FilterError as error:
                self.problems.append(filter_refused(trace, error))
                continue
            self.sources += reader.sources
            self.problems += with_hints(reader.problems)
            flows_before += reader.flow_count
            cut.append(reader.cut_flows)
        self.problems += outside_note(self._settings, self.sources, _summed(cut))

    def _reader_of(self, trace: Sequence[str], progress: Progress, first_flow: int) -> PacketReader:
        settings = self._settings
        sources, form = inputs_for_core(trace, settings)
        settings = with_ends(sources, replace(settings, format=form), progress)
        return PacketReader(sources, settings, first_flow=first_flow, progress=progress)


class PacketBatches(InOrder):
    """All packets of all inputs, in tables of some rows each. Iterate once.

    Only the chosen `columns`, or all, are made.
    """

    def __init__(
        self, inputs: Sequence[str], settings: ReadSettings, columns: Iterable[str] | None = None
    ) -> None:
        super().__init__(inputs, settings)
        self._columns = None if columns is None else list(columns)

    def __iter__(self) -> Iterator[ArrowStream]:
        return self._of_each_trace(self._tables)

    def _tables(self, _trace: Sequence[str], reader: PacketReader) -> Iterator[ArrowStream]:
        while (table := in_thread(lambda: reader.next_batch(BATCH_ROWS))) is not None:
            yield from StackedTable([table], self._settings.anonymizer).parts(self._columns)


def inputs_for_core(trace: Sequence[str], settings: ReadSettings) -> tuple[list[Source], str | None]:
    """Return what to give to the core for the inputs `trace`, and as which format."""
    form = settings.format
    if form is None:
        return [_opened(name, settings) for name in trace], None
    from tfrctrace.parsers.plugins import PACKETS_FORMAT, is_reader, read_with, reader_named

    if not is_reader(form):
        return [_opened(name, settings) for name in trace], form
    return [read_with(reader_named(form), name) for name in trace], PACKETS_FORMAT


def _opened(name: str, settings: ReadSettings) -> Source:
    """Return what the core reads: a name of the file system, or a name with what gives its bytes."""
    if is_pcap_over_ip(name):
        return name, CaptureServer(name)
    return (name, RemoteFile(name, settings.store)) if is_remote(name) else name


def _is_unknown(analysis: Analysis) -> bool:
    return any(problem["kind"] == "not_a_capture" for problem in analysis.problems)


def _name_place(source: SourceSummary) -> None:
    """Name the interface of a capture that ns-3 made, whose place stands only in the name of the file.

    Captures of the real world have such names too, but not such times: simulations begin at 0.
    """
    from tfrctrace.parsers.sources import ns3_place

    start_ns = source["start_ns"]
    if start_ns is None or not 0 <= start_ns < _YEAR_NS:
        return
    for interface in source["interfaces"]:
        interface["name"] = interface["name"] or ns3_place(source["source"])


def _numbered_through(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Return the analyses with flow numbers that go on from one to the next."""
    numbered: list[Analysis] = []
    flows_before = 0
    for analysis in analyses:
        numbered.append(analysis.numbered_from(flows_before + 1) if flows_before else analysis)
        flows_before = max(flows_before, _last_flow(numbered[-1].table("flows")))
    return numbered


def anonymized_parts(tables: Iterable[ArrowStream], anonymizer: Anonymizer) -> Iterator[pl.DataFrame]:
    """Give the rows of `tables` anonymized, in frames of bounded size."""
    import polars as pl

    for table in tables:
        for frame in pl.DataFrame(table).iter_slices(BATCH_ROWS):
            yield anonymizer.frame(frame)


def _last_flow(flows: Table) -> int:
    """Return the largest number of a flow, which the last row has; 0 if there is no flow."""
    if not len(flows):
        return 0
    last: int = flows.rows(len(flows) - 1, len(flows))[0]["flow"]
    return last


def _was_read(sources: Sequence[SourceSummary], problems: Sequence[Problem]) -> bool:
    """Return whether there is a source without an error, or with packets before it."""
    failed = {problem["source"] for problem in problems if problem["severity"] == "error"}
    return any(
        source["source"] not in failed
        or source["packets"] + source["filtered_packets"] + source["outside_packets"] > 0
        for source in sources
    )


def filter_refused(trace: Sequence[str], error: FilterError) -> Problem:
    """Return the problem of a trace with a link type that the filter cannot be compiled for."""
    return input_problem(
        trace[0],
        "filter",
        f"filter `{error.expression}` does not fit its link type: {error.reason}",
        hint=error.hint,
    )


def _stretches(tables: Sequence[Table], rows: Sequence[int]) -> Iterator[tuple[Table, list[int]]]:
    """Give those `rows` of `tables`, one below the other, that are near each other, and their table."""
    ends = list(accumulate(map(len, tables)))
    number, places = 0, list[int]()
    for row in rows:
        own = bisect_right(ends, row, lo=number)
        place = row - (ends[own - 1] if own else 0)
        is_near = places and place - places[-1] <= _NEAR_ROWS and place - places[0] < BATCH_ROWS
        if places and not (own == number and is_near):
            yield tables[number], places
            places = []
        number = own
        places.append(place)
    if places:
        yield tables[number], places


def _bytes_to_read(inputs: Sequence[str], settings: ReadSettings) -> int | None:
    """Return how many bytes a pass reads, None if that is not known.

    A pair is read once for the clocks and once for the delays, joined files once for their order, and any
    trace once for its end if that decides about what is read.
    """
    is_read_twice = settings.pair is not None or (settings.join and len(inputs) > 1)
    is_surveyed = settings.stretch is not None and settings.stretch.needs_end
    return _sum_if_known([size_in_bytes(name) for name in inputs] * (1 + is_read_twice + is_surveyed))


def _summed(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(one for one, _ in pairs), sum(other for _, other in pairs)


def _sum_if_known(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
