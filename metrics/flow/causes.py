"""Time of each flow by what held it back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, get_args

from tfrctrace.metrics.parts import parts_by_flows
from tfrctrace.metrics.results.why import Cause, FlowCauses, UntoldFlow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

SHARE_NAMES: Final = ("main_cause_share", *(f"{cause}_share" for cause in CAUSES))
"""Columns of shares of time."""

CAUSE_SUMS: Final = tuple(f"{cause}_ns" for cause in CAUSES)
"""Columns of groups: time by cause, summed over flows."""

UNKNOWN_SHARE: Final = "unknown_share"

MOST_UNKNOWN: Final = 0.05
"""Unknown part of the time above which the other shares are not known either: each may be larger by that."""

_SMALL: Final = 0.01
"""Share of all payload below which a direction is not described."""

_STRETCHES_AT_ONCE: Final = 16_384
_MOST_BINS: Final = 1_000
"""Bins of a flow in a figure, at most."""

_OF_DIRECTION: Final = ("flow", "direction")

CAUSE_COURSE: Final = (*_OF_DIRECTION, "start_ns", "end_ns", "cause")
"""Columns of the table of causes that say which one held when, all that is drawn."""

_OF_FLOWS: Final = ("src", "src_port", "dst", "dst_port", "payload_bytes", "goodput_bps", "rtt_p95_ms")

OF_TOLD: Final = (*_OF_DIRECTION, *_OF_FLOWS)
"""Columns of the table of flows that say of which direction a row of causes is."""

OF_UNTOLD: Final = ("flow", "transport", "payload_bytes", "packets")
"""Those that tell which flows have data."""


def cause_shares(sums: pl.DataFrame) -> pl.DataFrame:
    """Return a share for each cause, of each flow and direction of a table of sums of causes.

    Directions whose packets all have the same time have none.
    """
    import polars as pl

    length = pl.col("duration_ns").cast(pl.Float64)
    shares = [
        (pl.when(pl.col("cause") == cause).then(length).sum() / length.sum()).alias(f"{cause}_share")
        for cause in CAUSES
    ]
    lasts = sums.group_by(_OF_DIRECTION, maintain_order=True).agg(
        pl.col("start_ns").min(), (length.sum() / 1e9).alias("duration_s"), *shares
    )
    return lasts.filter(pl.col("duration_s") > 0)


def main_causes(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the cause with most time of each flow and direction, and what decided for it."""
    import polars as pl

    length = pl.col("duration_ns").cast(pl.Float64).sum().alias("ns")
    order = pl.col("cause").replace_strict(CAUSES, range(len(CAUSES)), return_dtype=pl.UInt8)
    by_cause = sums.group_by(*_OF_DIRECTION, "cause").agg(
        length,
        pl.col("stretches").sum().alias("changes"),
        pl.col("flight_bytes", "window_bytes").max(),
        pl.col("base_rtt_ms").min(),
    )
    main = by_cause.sort("ns", order, descending=[True, False]).unique(_OF_DIRECTION, keep="first")
    signs = sums.sort("duration_ns", "sign", descending=[True, False], maintain_order=True)
    sign = signs.unique((*_OF_DIRECTION, "cause"), keep="first", maintain_order=True)
    return main.drop("ns").join(
        sign.select(*_OF_DIRECTION, "cause", "sign", "second_cause"), on=(*_OF_DIRECTION, "cause")
    )


def causes_of_directions(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the main cause, the facts that decided for it, and the shares of each flow and direction."""
    import polars as pl

    names = {"cause": "main_cause", "sign": "main_sign"}
    found = cause_shares(sums).join(main_causes(sums).rename(names), on=_OF_DIRECTION)
    largest = pl.max_horizontal(f"{cause}_share" for cause in CAUSES)
    return found.with_columns(largest.alias("main_cause_share"))


def no_data_shares(sums: pl.DataFrame) -> dict[tuple[int, str], float]:
    """Return the share of time in which each flow and direction had no data to send, where that is known.

    It waited for its application, or for the other side's answer.
    """
    import polars as pl

    known = cause_shares(sums).filter(pl.col(UNKNOWN_SHARE) <= MOST_UNKNOWN)
    share = pl.col("application_share") + pl.col("server_share")
    return {(flow, way): value for flow, way, value in known.select(*_OF_DIRECTION, share).iter_rows()}


def rows_of_causes(
    sums: pl.DataFrame,
    flows: pl.DataFrame,
    bottlenecks: pl.DataFrame | None = None,
    controls: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return why each direction with data of a table of flows was no faster, as rows of `FlowCauses`.

    `bottlenecks` and `controls` have what is known of its path and of its congestion control, if they were
    looked for.
    """
    found = causes_of_directions(sums)
    for facts in (bottlenecks, controls):
        if facts is not None:
            found = found.join(facts, on=_OF_DIRECTION, how="left")
    return found.join(flows.select(OF_TOLD), on=_OF_DIRECTION).sort(_OF_DIRECTION)


@dataclass(frozen=True, slots=True)
class CausesOfRows:
    """Rows as objects, which are made anew each time: of a hundred thousand flows few are looked at."""

    rows: pl.DataFrame

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows.height

    def __iter__(self) -> Iterator[FlowCauses]:
        """Give the object of each."""
        import msgspec

        for row in self.rows.iter_rows(named=True):
            yield msgspec.convert(row, FlowCauses)


def rows_by(rows: pl.DataFrame, key: str, limit: int) -> pl.DataFrame:
    """Return the first rows by `goodput` (slowest first), `bytes` (most first) or the share of a cause.

    They are `limit` rows of those that are not small; all rows if it is 0.
    """
    import polars as pl

    name = {"goodput": "goodput_bps", "bytes": "payload_bytes"}.get(key, f"{key}_share")
    ordered = rows.sort(pl.col(name).fill_null(0), descending=key != "goodput", maintain_order=True)
    if not limit:
        return ordered
    payload = pl.col("payload_bytes").fill_null(0)
    large = ordered.filter(payload >= _SMALL * payload.sum())
    return (ordered if large.is_empty() else large).head(limit)


def untold_flows(sums: pl.DataFrame, flows: pl.DataFrame) -> list[UntoldFlow]:
    """Return the flows with data that have no row in a table of sums of causes, in order."""
    import polars as pl

    # of a trace without payload the packets tell
    has_data = pl.coalesce(pl.col("payload_bytes"), pl.col("packets")).sum() > 0
    rows = (
        flows.join(sums.select("flow").unique(), on="flow", how="anti")
        .group_by("flow", "transport")
        .agg(
            pl.when(pl.col("payload_bytes").count() > 0).then(pl.col("payload_bytes").sum()),
            has_data=has_data,
        )
        .filter("has_data")
        .sort("flow")
    )
    return [UntoldFlow(*row) for row in rows.select(UntoldFlow.__struct_fields__).iter_rows()]


def without_small(flows: Sequence[FlowCauses]) -> list[FlowCauses]:
    """Return those that have a hundredth of all payload; all if none has, as in a thousand equal ones."""
    least = _SMALL * sum(one.payload_bytes or 0 for one in flows)
    return [one for one in flows if (one.payload_bytes or 0) >= least] or list(flows)


def with_causes(flows: pl.DataFrame, sums: pl.DataFrame) -> pl.DataFrame:
    """Return a table of flows with main cause and shares; null where a direction has none.

    `unknown_sign` is why the cause is unknown where it is.
    """
    import polars as pl

    found = causes_of_directions(sums).select(*_OF_DIRECTION, "main_cause", *SHARE_NAMES)
    unknown = main_causes(sums.filter(pl.col("cause") == "unknown"))
    signs = unknown.select(*_OF_DIRECTION, pl.col("sign").alias("unknown_sign"))
    rows = found.join(signs, on=_OF_DIRECTION, how="left")
    return flows.join(rows, on=_OF_DIRECTION, how="left", maintain_order="left")


def cause_bins(causes: pl.DataFrame, widths: pl.DataFrame) -> pl.DataFrame:
    """Return the cause that held longest in each bin: `place` of `width_ns` since `first_ns`.

    `widths` has these of each flow. Bins in which no cause held have no row.
    """
    import polars as pl

    # stretches of a few flows at a time: each may reach across many bins
    slices = chain([causes.clear()], causes.iter_slices(_STRETCHES_AT_ONCE))
    parts = parts_by_flows(slices, [widths.sort("flow")])
    return pl.concat(_bins_of_stretches(stretches, own) for stretches, own in parts)


def _bins_of_stretches(causes: pl.DataFrame, widths: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    begin, width = pl.col("first_ns"), pl.col("width_ns")
    last_ns = pl.max_horizontal("start_ns", pl.col("end_ns") - 1)
    # times far outside of the flow must not make millions of bins
    first, last = (
        ((time_ns - begin) // width).clip(0, _MOST_BINS) for time_ns in (pl.col("start_ns"), last_ns)
    )
    places = pl.int_ranges(first, last + 1)
    order = pl.col("cause").replace_strict(CAUSES, range(len(CAUSES)), return_dtype=pl.UInt8)
    from_ns, until_ns = (begin + (pl.col("place") + step) * width for step in (0, 1))
    held_ns = pl.min_horizontal("end_ns", until_ns) - pl.max_horizontal("start_ns", from_ns)
    return (
        causes.select(CAUSE_COURSE)
        .join(widths, on="flow")
        .with_columns(places.alias("place"))
        .explode("place")
        .drop_nulls("place")
        .group_by(*_OF_DIRECTION, "first_ns", "width_ns", "place", "cause")
        .agg(held_ns.sum().alias("held_ns"))
        .sort(*_OF_DIRECTION, "place", "held_ns", order, descending=[False] * 3 + [True, False])
        .unique((*_OF_DIRECTION, "place"), keep="first", maintain_order=True)
    )
