"""Which packets of a trace are copied, by what the analysis knows of them, and what is said of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.nearest import proposal_or_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from tfrctrace.parsers.copying import Wanted
    from tfrctrace.trace.passes import Passes, TableName

_OF_PACKETS: Final[Mapping[TableName, Sequence[str]]] = {
    "losses": ("class", "evidence", "spurious"),
    "rtt": ("rtt_ns", "method"),
}
"""Tables whose rows are of one packet, with the columns of which something is said."""

_DIRECTIONS: Final = ("fwd", "rev")


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketChoice:
    """Packets of these flows, of a class, and of a time in which a cause held their flow back."""

    flows: Sequence[int] = ()
    loss_class: str | None = None
    cause: str | None = None
    has_comments: bool = False

    def check(self) -> None:
        """Raise `UsageError` for a class or a cause that there is not."""
        from tfrctrace.metrics.flow.causes import CAUSES

        for name, known, what in ((self.loss_class, _classes(), "class"), (self.cause, CAUSES, "cause")):
            if name is not None and name not in known:
                raise UsageError(f"there is no {what} `{name}`", hint=proposal_or_all(name, known))

    @property
    def is_all(self) -> bool:
        """Whether every packet is wanted, and nothing is said of it."""
        return not (self.flows or self.loss_class or self.cause or self.has_comments)


def _classes() -> list[str]:
    """Return the classes that the table of losses has, by its description."""
    import re

    from tfrctrace.parsers.schema import TABLES

    meaning = next(column.meaning for column in TABLES["losses"] if column.name == "class")
    return re.findall(r"`(\w+)`", meaning)


def chooser(trace: Passes, choice: PacketChoice) -> Callable[[pl.DataFrame], Wanted] | None:
    """Return what finds the wanted packets of a batch; it has read the trace once if it has to."""
    import polars as pl

    if choice.is_all:
        return None
    if trace.is_read_once:
        raise UsageError(
            "packets are chosen and described by two readings, and the input can be read only once",
            hint="save the capture to a file first",
        )
    tables: list[TableName] = []
    if choice.loss_class is not None or choice.has_comments:
        tables.append("losses")
    if choice.has_comments:
        # with what the verdict is made of, in the same pass
        tables.extend(("rtt", "cause_sums", "rounds"))
    if choice.cause is not None or choice.has_comments:
        tables.append("causes")
    if tables:
        trace.read("flows", *tables)
    known = [_of_packets(trace, table, columns) for table, columns in _OF_PACKETS.items() if table in tables]
    causes = {way: _causes(trace, way) for way in _DIRECTIONS} if "causes" in tables else {}
    wanted = _wanted(choice)
    comment = _comment() if choice.has_comments else pl.lit(None, pl.String)

    def choose(packets: pl.DataFrame) -> Wanted:
        if choice.flows:
            packets = packets.filter(pl.col("flow").is_in(list(choice.flows)))
        for frame in known:
            packets = packets.join(_of_batch(frame, packets), on=("flow", "packet"), how="left")
        if causes:
            packets = packets.sort("time_ns")
        for way, stretches in causes.items():
            packets = _with_causes(packets, stretches, way)
        found = packets.filter(wanted).sort("packet").select("packet", comment=comment)
        return {"numbers": found["packet"].to_list(), "comments": found["comment"].to_list()}

    return choose


def _of_packets(trace: Passes, table: TableName, columns: Sequence[str]) -> pl.DataFrame:
    """Return rows of a table that are of packets, one for each, in the order of these."""
    frame = trace.table(table).frame(["flow", "packet", *columns])
    return frame.unique(["flow", "packet"], keep="first").sort("packet")


def _of_batch(frame: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that may be of some packets: to join all rows takes as long for each batch."""
    first, last = _ends(packets, "packet")
    if first is None:
        return frame[:0]
    rows = frame["packet"]
    return frame[rows.search_sorted(first, "left") : rows.search_sorted(last, "right")]


def _ends(packets: pl.DataFrame, column: str) -> tuple[int | None, int | None]:
    """Return the smallest and the largest value of a column; None without any."""
    import polars as pl

    low, high = packets.select(low=pl.col(column).min(), high=pl.col(column).max()).row(0)
    return low, high


def _causes(trace: Passes, direction: str) -> pl.DataFrame:
    """Return what held one direction of each flow back, in the order of the begins."""
    import polars as pl

    from tfrctrace.metrics.flow.causes import CAUSE_COURSE

    frame = trace.table("causes").frame(CAUSE_COURSE)
    of_direction = frame.filter(pl.col("direction") == direction).sort("start_ns")
    return of_direction.select("flow", "start_ns", "end_ns", pl.col("cause").alias(f"cause_{direction}"))


def _with_causes(packets: pl.DataFrame, stretches: pl.DataFrame, direction: str) -> pl.DataFrame:
    """Add what held a direction of its flow back when a packet was seen; packets are in order of time."""
    import polars as pl

    first_ns, last_ns = _ends(packets, "time_ns")
    begun = 0 if last_ns is None else stretches["start_ns"].search_sorted(last_ns, "right")
    joined = packets.join_asof(
        stretches[:begun].filter(pl.col("end_ns") >= first_ns),
        left_on="time_ns",
        right_on="start_ns",
        by="flow",
        check_sortedness=False,  # both are sorted, which it cannot see within groups
    )
    cause = pl.col(f"cause_{direction}")
    is_there = pl.col("time_ns") <= pl.col("end_ns")
    return joined.with_columns(pl.when(is_there).then(cause).alias(f"cause_{direction}")).drop(
        "end_ns", "start_ns", strict=False
    )


def _wanted(choice: PacketChoice) -> pl.Expr:
    import polars as pl

    conditions = [pl.lit(value=True)]
    if choice.loss_class is not None:
        conditions.append(pl.col("class") == choice.loss_class)
    if choice.cause is not None:
        conditions.append(pl.any_horizontal(pl.col(f"cause_{one}") == choice.cause for one in _DIRECTIONS))
    return pl.all_horizontal(conditions)


def _comment() -> pl.Expr:
    """Return what is known of a packet, null if it is of no flow."""
    import polars as pl

    number, direction = pl.col("flow").cast(pl.String), pl.col("direction")
    cause = pl.when(direction == "fwd").then(pl.col("cause_fwd")).otherwise(pl.col("cause_rev"))
    parts = [
        pl.format("flow {} {}", number, direction),
        pl.format("{} (evidence: {})", pl.col("class"), pl.col("evidence")),
        pl.format("spurious (evidence: {})", pl.col("spurious")),
        pl.format("RTT {} ms ({})", (pl.col("rtt_ns") / 1e6).round(3), pl.col("method")),
        pl.format("held back by {}", cause),
    ]
    said = pl.concat_str(parts, separator="; ", ignore_nulls=True)
    return pl.when(pl.col("flow").is_not_null()).then(said)
