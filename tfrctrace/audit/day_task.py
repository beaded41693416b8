"""Judge one day of a link, and keep what the audit needs of it."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.audit.audit_folder import TABLES, AuditFolder
from tfrctrace.audit.pieces import DAY_NS, HOUR_NS, date_of, small_frame
from tfrctrace.metrics.audit.regroup import (
    as_link,
    interval_start,
    joined_pieces,
    near_side,
    renamed,
    widened,
)
from tfrctrace.metrics.audit.signals import EVIDENCE_COLUMNS, EVIDENCE_SUMS
from tfrctrace.metrics.audit.thin_intervals import with_thin_ones_together
from tfrctrace.metrics.audit.waiting_limit import with_patience
from tfrctrace.metrics.groups import Groups
from tfrctrace.metrics.objectives import COUNTS, judged_intervals
from tfrctrace.runs.cache import RunInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from tfrctrace.audit.pieces import Piece
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.metrics.objectives import Extent, Objective
    from tfrctrace.runs.cache import Record

_NO_VERDICTS: Final[Mapping[str, Any]] = {
    "name": "",
    "target": 1.0,
    "level": "fail",
    "raise_after": 1,
    "clear_after": 1,
    "line": None,
}
"""What an objective may have without any interval being judged otherwise."""

_MEASURES: Final = ("rtt", "response")
"""Durations of which distributions are drawn."""


@dataclass(frozen=True, slots=True)
class JudgingPlan:
    """What is judged on all days of all links, and where it is kept."""

    grouping: Grouping
    objectives: tuple[Objective, ...]
    inventories: tuple[tuple[str, str], ...]
    """Files of sites, and digests of their content."""
    folder: str
    program: str
    """Digest of the program that judges."""
    column_ns: int = HOUR_NS
    """Width of the intervals of which the page has sums and verdicts."""


@dataclass(frozen=True, slots=True)
class DayTask:
    """One day of a link."""

    link: str
    day: int
    """Since the epoch, in UTC."""
    pieces: tuple[Piece, ...]
    extent: Extent
    """Of the link, within this day."""
    plan: JudgingPlan

    @property
    def source(self) -> RunInput:
        """What the tables are made of."""
        options = {
            "pieces": [piece.key for piece in self.pieces],
            "objectives": [asdict(replace(objective, **_NO_VERDICTS)) for objective in self.plan.objectives],
            "inventories": self.plan.inventories,
            "extent": [self.extent.first_ns, self.extent.last_ns],
            "day": self.day,
            "column_ns": self.plan.column_ns,
        }
        return RunInput(self.link, (), options, ())

    @property
    def key(self) -> str:
        """The key of the tables."""
        key = self.source.key(self.plan.program)
        assert key is not None, "no file is named"
        return key

    def makes(self, record: Record) -> bool:
        """Return whether a record is of a day."""
        from tfrctrace.metrics.results.batch import DayFacts
        from tfrctrace.metrics.results.records import is_a

        return is_a(DayFacts, record)

    @property
    def date(self) -> str:
        """The day as people write it."""
        return date_of(self.day)

    def measure(self) -> Record:
        """Write the tables, and return the facts."""
        facts = {"failed": False, "problems": [], "link": self.link, "date": self.date}
        folder, key = AuditFolder(self.plan.folder), self.key
        frames = zip(TABLES, self._tables(), strict=True)
        return facts | {
            "tables": {name: folder.write_table(name, facts, key, frame) for name, frame in frames}
        }

    def _tables(self) -> tuple[pl.DataFrame, ...]:
        import polars as pl

        hosts = with_patience(joined_pieces(self._groups(piece) for piece in self.pieces))
        near = near_side(hosts.rows)
        link = as_link(hosts, self.link, near)
        chosen: dict[Grouping, Groups] = {}
        judged = []
        for number, objective in enumerate(self.plan.objectives):
            grouping = objective.grouping
            if grouping not in chosen:
                grouped = link if grouping.by == "link" else self._grouped(hosts, grouping)
                chosen[grouping] = widened(grouped, grouping.every_ns or DAY_NS)
            found = judged_intervals(objective, chosen[grouping], self.extent)
            found = with_thin_ones_together(objective, found, self.extent)
            judged.append(found.select(pl.lit(number, pl.UInt32).alias("objective"), pl.all()))
        intervals = pl.concat(judged).sort("objective", "group", "start_ns")
        verdicts = (
            intervals.with_columns(start_ns=interval_start(self.plan.column_ns))
            .group_by("objective", "group", "start_ns")
            .agg((pl.col("verdict") == name).sum().cast(pl.Int64).alias(name) for name in COUNTS)
            .sort("objective", "group", "start_ns")
        )
        evidence = hosts.rows.select(EVIDENCE_COLUMNS).sort("group", "start_ns", "direction")
        hourly = [
            (name, widened(one, self.plan.column_ns)) for name, one in (("host", hosts), ("link", link))
        ]
        key = ("by", "group", "direction", "start_ns")
        rows = pl.concat(
            one.rows.select(pl.lit(name).alias("by"), *key[1:], *EVIDENCE_SUMS) for name, one in hourly
        )
        buckets = pl.concat(
            one.buckets.filter(pl.col("measure").is_in(_MEASURES)).select(
                pl.lit(name).alias("by"), *key[1:], "measure", "from_ns", "to_ns", "samples"
            )
            for name, one in hourly
        )
        return intervals, verdicts, evidence, rows.sort(key), buckets.sort(*key, "measure", "from_ns")

    def _groups(self, piece: Piece) -> Groups:
        """Return what a piece has of the day."""
        import polars as pl

        is_today = (pl.col("start_ns") // DAY_NS) == self.day
        frames = (
            small_frame(pl.scan_parquet(path), is_today)
            for path in (piece.tables["groups"], piece.tables["group_buckets"])
        )
        return Groups(self.plan.grouping, *frames)

    def _grouped(self, hosts: Groups, grouping: Grouping) -> Groups:
        """Return hosts as the groups of an objective."""
        import polars as pl

        if grouping.by == self.plan.grouping.by:
            return hosts
        name_of: Callable[[str | None], str | None]
        if grouping.inventory is not None:
            from tfrctrace.base.inventory import read_inventory

            name_of = read_inventory(grouping.inventory).name_of
        else:
            name_of = partial(_network, lengths=grouping.prefixes)
        names = hosts.rows.select(pl.col("group").unique())
        names = names.with_columns(name=pl.col("group").map_elements(name_of, pl.String, skip_nulls=False))
        return renamed(hosts, names)


def _network(address: str | None, *, lengths: tuple[int, int]) -> str | None:
    """Return the network of an address, as the core writes it."""
    try:
        host = ipaddress.ip_address(address or "")
    except ValueError:
        return None
    return str(ipaddress.ip_network((host, lengths[host.version == 6]), strict=False))
