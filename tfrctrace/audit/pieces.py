"""What a batch has read of each link: pieces of captures, and the days on which they have packets."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.durations import duration_text
from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import parse_grouping
from tfrctrace.batch.results_folder import ResultsFolder
from tfrctrace.metrics.audit.flow_events import FLOW_COLUMNS
from tfrctrace.metrics.audit.silence_proofs import CaptureStatistics, FileExtent
from tfrctrace.metrics.objectives import Extent
from tfrctrace.parsers.frames import joined_frame
from tfrctrace.parsers.rotated_names import file_numbers
from tfrctrace.parsers.schema import polars_schema
from tfrctrace.parsers.sources import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.base.inventory import Inventory

HOUR_NS: Final = 3_600 * 10**9
DAY_NS: Final = 24 * HOUR_NS
STREAM_COLUMNS: Final = (
    *("flow", "direction", "src", "dst", "vantage", "vantage_confidence", "rtt_mean_ms", "payload_bytes"),
)
"""What is read of flows with RTP streams."""
_ROWS_AT_ONCE: Final = 65_536
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Piece:
    """A chain of the batch: all of the capture of a link, or a day of it."""

    key: str
    name: str
    link: str
    files: tuple[str, ...]
    bytes: int
    sources: tuple[dict[str, Any], ...]
    problems: tuple[Problem, ...]
    has_failed: bool
    tables: Mapping[str, str]
    """Paths of `groups`, `group_buckets` and `flows`, with RTP also of `rtp_sources`; empty if failed."""
    vantage: str | None
    """Where it was captured, of the direction of a flow with more payload; None if that was not given."""
    has_causes: bool
    """Whether its groups have times by cause."""
    is_anonymous: bool
    """Whether names of files are replaced."""
    days: tuple[int, ...]
    """Days since the epoch (UTC) on which intervals with packets begin."""

    @property
    def start_ns(self) -> int | None:
        """Time of the first packet."""
        return min(
            (source["start_ns"] for source in self.sources if source["start_ns"] is not None), default=None
        )

    @property
    def end_ns(self) -> int | None:
        """Time of the last packet."""
        return max(
            (source["end_ns"] for source in self.sources if source["end_ns"] is not None), default=None
        )


@dataclass(frozen=True)
class BusyTimes:
    """The intervals in which a link had packets of hosts."""

    pieces: tuple[Piece, ...]

    @cached_property
    def starts_ns(self) -> list[int]:
        """When they begin, in order."""
        import polars as pl

        tables = [piece.tables["groups"] for piece in self.pieces if piece.tables]
        if not tables:
            return []
        starts = pl.scan_parquet(tables, hive_partitioning=False).select(pl.col("start_ns").unique().sort())
        found: list[int] = starts.collect()["start_ns"].to_list()
        return found

    def has_between(self, begin_ns: int, end_ns: int) -> bool:
        """Return whether one begins from one time to another."""
        return bisect_left(self.starts_ns, begin_ns) < bisect_left(self.starts_ns, end_ns)


def flows_between(pieces: Iterable[Piece], times_ns: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """Return the flows of some pieces that begin in one of these stretches of time, with `FLOW_COLUMNS`."""
    import polars as pl

    start = pl.col("start_ns")
    is_wanted = pl.any_horizontal(start.is_between(*stretch, closed="left") for stretch in times_ns)
    first_ns, last_ns = min(one for one, _ in times_ns), max(one for _, one in times_ns)
    tables = [
        pl.scan_parquet(piece.tables["flows"]).select(FLOW_COLUMNS).filter(is_wanted)
        for piece in pieces
        if "flows" in piece.tables
        and piece.start_ns is not None
        and piece.end_ns is not None
        and piece.start_ns < last_ns
        and piece.end_ns >= first_ns
    ]
    if not tables:
        return pl.DataFrame(schema={name: polars_schema("flows")[name] for name in FLOW_COLUMNS})
    # numbers of flows count in each piece
    return pl.concat(
        table.with_columns(flow=pl.struct("flow", piece=pl.lit(number)).hash())
        for number, table in enumerate(tables)
    ).collect()


@dataclass(frozen=True, slots=True)
class BatchResults:
    """Pieces of all links, and how their packets are grouped."""

    grouping: Grouping
    pieces: tuple[Piece, ...]
    problems: tuple[Problem, ...]
    """What was wrong with the inputs of the batch."""

    @property
    def by_link(self) -> dict[str, list[Piece]]:
        """The pieces of each link, by its name."""
        links: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            links.setdefault(piece.link, []).append(piece)
        return links

    @property
    def longest_ns(self) -> int:
        """How long the longest link lasts."""
        extents = map(extent_of, self.by_link.values())
        return max((extent.last_ns - extent.first_ns for extent in extents), default=0)


def named_links(results: BatchResults, inventory: Inventory) -> BatchResults:
    """Return results with the names that an inventory gives to links. Raises `UsageError` for one of two."""
    names = {link: inventory.link_name(link) for link in results.by_link}
    known: dict[str, str] = {}
    for link, name in names.items():
        if known.setdefault(name, link) != link:
            raise UsageError(
                f"the inventory names both `{known[name]}` and `{link}` `{name}`",
                hint="write a table with `links` for each",
            )
    return replace(results, pieces=tuple(replace(one, link=names[one.link]) for one in results.pieces))


def longest_kept_ns(path: str) -> int:
    """Return how long the longest link lasts of which a batch has results, also of captures that are gone."""
    times: dict[str, list[int]] = {}
    for record in ResultsFolder(path).all_records():
        for source in record["sources"]:
            known = (source["start_ns"], source["end_ns"])
            times.setdefault(record["link"], []).extend(one for one in known if one is not None)
    return max((max(own) - min(own) for own in times.values() if own), default=0)


def read_pieces(path: str) -> BatchResults:
    """Return the results of a batch. Raises `UsageError` if they are none, or of several groupings."""
    folder = ResultsFolder(path)
    current = {entry["key"] for entry in folder.index_entries()}
    every = folder.all_records()
    options = [one["options"] for one in every if one["key"] in current]
    if not options or any(option != options[0] for option in options):
        raise UsageError(
            f"`{path}` has {'results with several options' if options else 'no results'}",
            hint="audit the captures, or the results of one batch",
        )
    by, every_ns = options[0]["by"], options[0]["every_ns"]
    # captures that are gone may have been read with other options
    records = [one for one in every if one["options"] == options[0]]
    if every_ns <= 0 or HOUR_NS % every_ns:
        raise UsageError(
            f"`{path}` has intervals of {duration_text(every_ns)}, which do not divide an hour",
            hint="make the batch with `--every 5min`",
        )
    return BatchResults(
        parse_grouping(by, f"{every_ns}ns"),
        tuple(_piece(folder, record) for record in records),
        tuple(folder.index_problems()),
    )


def _piece(folder: ResultsFolder, record: dict[str, Any]) -> Piece:
    import polars as pl

    tables = {name: _whole_table(folder, record, name) for name in _tables_of(record)}
    days: list[int] = []
    if tables:
        day = pl.col("start_ns") // DAY_NS
        days = pl.scan_parquet(tables["groups"]).select(day.unique().sort()).collect()["start_ns"].to_list()
    return Piece(
        key=record["key"],
        name=record["name"],
        link=record.get("link", record["name"]),
        files=tuple(one["name"] for one in record["files"]),
        bytes=sum(one["bytes"] for one in record["files"]),
        sources=tuple(record["sources"]),
        problems=tuple(record["problems"]),
        has_failed=record["failed"],
        tables=tables,
        vantage=record["options"].get("vantage"),
        has_causes=bool(record["options"].get("causes")),
        is_anonymous="anonymized" in record["options"],
        days=tuple(days),
    )


def _tables_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tables that an audit reads of a chain."""
    if record["failed"]:
        return ()
    has_streams = bool(record["rows"].get("rtp_sources"))
    return ("groups", "group_buckets", "flows", *(("rtp_sources",) if has_streams else ()))


def _whole_table(folder: ResultsFolder, record: dict[str, Any], name: str) -> str:
    """Return the path of a table; raises `InputError` if it is damaged, or of another release."""
    import polars as pl

    path = folder.table_path(record, name)
    needed = {*STREAM_COLUMNS, *FLOW_COLUMNS} if name == "flows" else set(polars_schema(name))
    missing = needed - pl.read_parquet_schema(path).keys()
    if missing:
        raise folder.refused_table(record, name, f"has no column `{min(missing)}`")
    return str(path.absolute())


def extent_of(pieces: Iterable[Piece]) -> Extent:
    """Return the first and the last packet of all pieces."""
    every = list(pieces)
    starts = [piece.start_ns for piece in every if piece.start_ns is not None]
    ends = [piece.end_ns for piece in every if piece.end_ns is not None]
    return Extent(min(starts, default=0), max(ends, default=0))


def file_extents(pieces: Sequence[Piece]) -> list[FileExtent]:
    """Return the files of a link in the order of their names, with the times of their packets.

    Where names are replaced, files without packets are left out, unless they say when they were captured.
    """
    sources = {source["source"]: source for piece in pieces for source in piece.sources}
    if any(piece.is_anonymous for piece in pieces):
        extents = [_file_extent(None, source) for source in sources.values()]
        timed = [(_first_ns(one), one) for one in extents]
        known = [(first_ns, one) for first_ns, one in timed if first_ns is not None]
        return [one for _, one in sorted(known, key=lambda pair: pair[0])]
    names = sorted(sources, key=natural_key)
    numbers: Sequence[int | None] = file_numbers(names) or [None] * len(names)
    return [_file_extent(number, sources[name]) for number, name in zip(numbers, names, strict=True)]


def _first_ns(file: FileExtent) -> int | None:
    if file.start_ns is None and file.statistics is not None:
        return file.statistics.start_ns
    return file.start_ns


def _file_extent(number: int | None, source: Mapping[str, Any]) -> FileExtent:
    is_filtered = any(interface["is_filtered"] for interface in source["interfaces"])
    return FileExtent(number, source["start_ns"], source["end_ns"], _statistics(source), is_filtered)


def _statistics(source: Mapping[str, Any]) -> CaptureStatistics | None:
    """Return what the capturing program says of a file; None if it says nothing of an interface."""
    interfaces = source["interfaces"]
    if not interfaces or any(None in (one["capture_start_ns"], one["capture_end_ns"]) for one in interfaces):
        return None

    def total(count: str) -> int | None:
        counts = [one[count] for one in interfaces]
        return None if None in counts else sum(counts)

    return CaptureStatistics(
        min(one["capture_start_ns"] for one in interfaces),
        max(one["capture_end_ns"] for one in interfaces),
        received=total("received_packets"),
        accepted=total("accepted_packets"),
        dropped=total("dropped_packets"),
        recorded=source["packets"] + source["filtered_packets"] + source["outside_packets"],
    )


def clock_steps_ns(pieces: Iterable[Piece]) -> list[tuple[int, int, int]]:
    """Return the proven steps of a clock: times of the packets before and after, and how far it went."""
    steps = (step for piece in pieces for source in piece.sources for step in source["clock_steps"])
    return [(step["before_ns"], step["after_ns"], step["step_ns"]) for step in steps]


def small_frame(table: pl.LazyFrame, wanted: pl.Expr) -> pl.DataFrame:
    """Return the wanted rows of a table, in which columns of one value take no memory."""
    import polars as pl

    rows = table.select(pl.len()).collect().item()
    parts = (
        table.slice(start, _ROWS_AT_ONCE).filter(wanted).collect() for start in range(0, rows, _ROWS_AT_ONCE)
    )
    return joined_frame(parts, pl.DataFrame(schema=table.collect_schema()))


def date_of(day: int) -> str:
    """Return the date of a day since the epoch."""
    return date.fromordinal(_EPOCH_DAY + day).isoformat()
