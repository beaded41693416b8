"""Time of each flow by what held it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from tfrctrace.metrics.results.why import Cause, FlowCauses

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

_OF_DIRECTION: Final = ("flow", "direction")
_OF_FLOWS: Final = (
    "src",
    "src_port",
    "dst",
    "dst_port",
    "payload_bytes",
    "goodput_bps",
    "rtt_p95_ms",
)


def cause_shares(causes: pl.DataFrame) -> pl.DataFrame:
    """Return a share for each cause, of each flow and direction of a table of causes.

    Directions whose packets all have the same time have none.
    """
    import polars as pl

    length = _length_ns()
    shares = [
        (length.filter(pl.col("cause") == cause).sum() / length.sum()).alias(f"{cause}_share")
        for cause in CAUSES
    ]
    lasts = causes.group_by(_OF_DIRECTION, maintain_order=True).agg(
        pl.col("start_ns").min(), (length.sum() / 1e9).alias("duration_s"), *shares
    )
    return lasts.filter(pl.col("duration_s") > 0)


def _length_ns() -> pl.Expr:
    """Return how long a stretch lasts, also between times at both ends of 64 bits."""
    import polars as pl

    wrapped = pl.col("end_ns") - pl.col("start_ns")
    return wrapped.cast(pl.UInt64, wrap_numerical=True).cast(pl.Float64)


def main_causes(causes: pl.DataFrame) -> pl.DataFrame:
    """Return the cause with most time of each flow and direction, and what decided for it."""
    import polars as pl

    length = _length_ns().sum().alias("ns")
    order = pl.col("cause").replace_strict(CAUSES, range(len(CAUSES)), return_dtype=pl.UInt8)
    by_cause = causes.group_by(*_OF_DIRECTION, "cause").agg(
        length,
        pl.len().alias("changes"),
        pl.col("flight_bytes", "window_bytes").max(),
        pl.col("base_rtt_ms").min(),
    )
    main = by_cause.sort("ns", order, descending=[True, False]).unique(_OF_DIRECTION, keep="first")
    signs = causes.group_by(*_OF_DIRECTION, "cause", "sign", "second_cause").agg(length)
    sign = signs.sort("ns", "sign", descending=[True, False]).unique((*_OF_DIRECTION, "cause"), keep="first")
    return main.drop("ns").join(sign.drop("ns"), on=(*_OF_DIRECTION, "cause"))


def flow_causes(causes: pl.DataFrame, flows: pl.DataFrame) -> Iterator[FlowCauses]:
    """Give why each direction with data of a table of flows was no faster, in order."""
    import msgspec

    names = {"cause": "main_cause", "sign": "main_sign"}
    main = main_causes(causes).rename(names)
    wanted = cause_shares(causes).join(main, on=_OF_DIRECTION)
    rows = wanted.join(flows.select(*_OF_DIRECTION, *_OF_FLOWS), on=_OF_DIRECTION)
    for row in rows.sort(_OF_DIRECTION).iter_rows(named=True):
        main_cause_share = row[f"{row['main_cause']}_share"]
        yield msgspec.convert({**row, "main_cause_share": main_cause_share}, FlowCauses)
