"""Figures of throughput over time, RTT over time, and the spread of the RTT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.bins import (
    NULLABLE_COUNTS,
    bin_width_for,
    coarser_bins,
    evenly_spaced,
    summed_over_flows,
    time_span_ns,
)
from tfrctrace.metrics.flow.throughput import throughput_series, with_rates
from tfrctrace.reports.conversations import (
    distinct_directions,
    of_direction,
)
from tfrctrace.reports.elements import OTHER, Curve, Figure, Span
from tfrctrace.reports.flow_rows import known
from tfrctrace.reports.units import counted, format_count, format_duration_s, format_ms, format_rate_bps

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow

_MOST_BINS: Final = 240
"""Bins across a figure; more would be narrower than the line."""

MOST_DETAILED_BINS: Final = 3000
"""Bins of the same curves in zoomed-in views: as many as the core keeps."""

_FEWEST_BINS: Final = 40
"""Bins across a figure of a trace with few packets."""

_PACKETS_IN_BIN: Final = 10
"""Mean packets in a bin of the largest direction; with fewer, a curve shows the gaps between packets."""

_PACKETS_IN_DETAILED_BIN: Final = 3
"""The same in zoomed-in views."""

_MOST_RINGS: Final = 0.25
"""Share of bins with retransmissions above which rings are left out."""

_RINGS: Final = " A ring marks a bin with retransmissions, where these are rare."

_LONGEST_BREAK: Final = 3
"""Bins without an RTT sample that a line is still drawn across."""

RTTS: Final = ("rtt_mean_ms", "rtt_min_ms", "rtt_max_ms")
DELAYS: Final = ("delay_mean_ms", "delay_min_ms", "delay_max_ms")
"""Columns of bins: a curve, and the edges of its band."""

Key = tuple[int, str]
"""Flow and direction."""


def throughput_figure(trace: DrawnTrace) -> Figure | None:
    """Return the throughput of the largest directions over time, the rest as one curve; None without bins."""
    bins = trace.bins
    if bins.is_empty():
        return None
    wide, fine = drawn_bins(bins, trace.window_ns), detailed_bins(bins, trace.window_ns)
    drawn = _largest_directions(trace.flows, wide)
    first_ns, end_ns = time_span_ns(wide)
    origin_ns = trace.origin_ns(first_ns)
    curves = _rate_curves(wide, drawn, origin_ns)
    detail = () if fine is None else _rate_curves(fine, drawn, origin_ns)
    width_s = int(wide["width_ns"][0]) / 1e9
    if detail:
        curves = tuple(_with_extremes(*pair, width_s) for pair in zip(curves, detail, strict=True))
    peak = _peak(detail or curves)
    return Figure(
        key=trace.key("throughput"),
        title=trace.titled("Throughput over time"),
        linked=trace.linked,
        description=f"Line chart, {counted(len(curves), 'curve')}; highest bin {format_rate_bps(peak)}.",
        caption=(
            f"Whole frames on the wire, per flow and direction, in bins of {bin_width(wide)} "
            f"({counted(int(bins['packets'].sum()), 'packet')}){_band_words(fine)}. The highest bin"
            f"{'' if fine is None else f' of {bin_width(fine)}'} is {format_rate_bps(peak)}. The first and "
            f"the last bin of a flow are only partly filled."
            f"{_RINGS if any(curve.marked for curve in curves) else ''}"
        ),
        unit="bit/s",
        curves=curves,
        detail=detail,
        lasted_s=(end_ns - origin_ns) / 1e9,
    )


def _rate_curves(bins: pl.DataFrame, drawn: list[FlowRow], origin_ns: int) -> tuple[Curve, ...]:
    """Return the rates of the directions `drawn` in `bins` of one width, and that of all others together."""
    keys = [row.key for row in drawn]
    series = throughput_series(_rows_of(bins, keys))
    curves = [
        _rate_curve(row.legend, style, of_direction(series, row), origin_ns)
        for style, row in enumerate(drawn, start=1)
    ]
    rest = _rows_not_of(bins, keys)
    left_out = rest.select("flow", "direction").n_unique()
    if left_out:
        label = "the other direction" if left_out == 1 else f"the other {left_out:,} directions together"
        curves.append(_rate_curve(label, OTHER, _summed_rates(rest), origin_ns))
    return tuple(curves)


def _with_extremes(curve: Curve, detail: Curve, width_s: float) -> Curve:
    """Return `curve` with a band from the lowest to the highest value of the detailed curve in each bin."""
    first_s = curve.x[0] - width_s / 2
    found: dict[int, list[float]] = {}
    for time_s, value in zip(detail.x, detail.values, strict=True):
        if value is not None:
            found.setdefault(int((time_s - first_s) // width_s), []).append(value)
    inside = [[value, *found.get(place, ())] for place, value in enumerate(curve.values) if value is not None]
    return replace(curve, low=tuple(map(min, inside)), high=tuple(map(max, inside)))


def _peak(curves: Iterable[Curve]) -> float:
    return max(value or 0.0 for curve in curves for value in curve.values)


def bin_width(bins: pl.DataFrame) -> str:
    """Return the width of `bins` in words."""
    return format_duration_s(int(bins["width_ns"][0]) / 1e9)


def _band_words(fine: pl.DataFrame | None) -> str:
    """Return the sentence about the band of a rate."""
    if fine is None:
        return ""
    return f"; the band spans the lowest to the highest bin of {bin_width(fine)}, shown when zoomed in"


def _closer_rtt(fine: pl.DataFrame | None) -> str:
    return "" if fine is None else f" ({bin_width(fine)} when zoomed in)"


def rtt_figure(trace: DrawnTrace) -> Figure | None:
    """Return the RTT of the directions with most samples over time: mean in a band from min to max."""
    import polars as pl

    bins = trace.bins
    sampled = bins.filter(pl.col("rtt_samples") > 0)
    if sampled.is_empty():
        return None
    drawn = most_sampled(trace.flows)
    wide, fine = drawn_bins(bins, trace.window_ns), detailed_bins(bins, trace.window_ns)
    first_ns, end_ns = time_span_ns(wide)
    origin_ns = trace.origin_ns(first_ns)
    curves = _rtt_curves(wide, drawn, origin_ns)
    shown = _rows_of(sampled, [row.key for row in drawn])
    samples = int(shown["rtt_samples"].sum())
    left_out = sampled.unique(["flow", "direction"]).height - len(drawn)
    rest = f" Not drawn: {counted(left_out, 'direction')} with fewer samples." if left_out else ""
    return Figure(
        key=trace.key("rtt"),
        title=trace.titled("RTT over time"),
        linked=trace.linked,
        description=f"Line chart of {counted(len(curves), 'curve')}; {_range_words(shown)}.",
        caption=(
            f"Mean RTT of each bin as a line, its smallest to largest sample as a band; "
            f"bins of {bin_width(wide)}{_closer_rtt(fine)}, {counted(samples, 'sample')}, "
            f"at the time of the acknowledgement.{_near_receiver(drawn)}{rest}"
        ),
        unit="ms",
        curves=curves,
        detail=() if fine is None else _rtt_curves(fine, drawn, origin_ns),
        lasted_s=(end_ns - origin_ns) / 1e9,
    )


def _rtt_curves(bins: pl.DataFrame, drawn: list[FlowRow], origin_ns: int) -> tuple[Curve, ...]:
    import polars as pl

    sampled = bins.filter(pl.col("rtt_samples") > 0)
    return tuple(
        sample_curve(row.legend, style, of_direction(sampled, row), origin_ns)
        for style, row in enumerate(drawn, start=1)
    )


def _near_receiver(rows: list[FlowRow]) -> str:
    """Return the caveat on RTTs that are not those of the path."""
    near = [f"flow {row.flow}" for row in rows if row.is_near_receiver]
    return f" Captured near the receiver, only its own delay: {', '.join(near)}." if near else ""


def spread_figure(trace: DrawnTrace) -> Figure | None:
    """Return the spread of the RTT of the directions with most samples; None without samples."""
    rows = most_sampled(trace.flows)
    if not rows:
        return None
    spans = tuple(
        Span(
            f"{row.legend} ({counted(row.rtt_samples or 0, 'sample')})",
            style,
            row.rtt_min_ms,
            known(row.rtt_p50_ms),
            known(row.rtt_p95_ms),
            row.rtt_max_ms,
        )
        for style, row in enumerate(rows, start=1)
    )
    medians = ", ".join(format_ms(span.median) for span in spans)
    return Figure(
        key=trace.key("rtt-spread"),
        title=trace.titled("Spread of the RTT"),
        description=f"Range chart of {counted(len(spans), 'direction')}; medians {medians}.",
        caption=(
            "Thin line from the smallest to the largest sample, thick line from the median (ring) to the "
            f"95th percentile; {format_count(sum(row.rtt_samples or 0 for row in rows))} samples in all."
        ),
        unit="ms",
        spans=spans,
    )


def drawn_bins(bins: pl.DataFrame, window_ns: int | None = None) -> pl.DataFrame:
    """Return the bins as wide as a figure can show, or of `window_ns`.

    Bins are joined, not thinned, so that the drawn rate is a mean over the width in the caption; the smallest
    and largest RTT samples are kept.
    """
    return coarser_bins(bins, window_ns or _width_ns(bins, _PACKETS_IN_BIN, _MOST_BINS))


def detailed_bins(bins: pl.DataFrame, window_ns: int | None = None) -> pl.DataFrame | None:
    """Return narrower bins for zoomed-in views; None if those of `drawn_bins` are as narrow."""
    if window_ns is not None:
        return None
    width_ns = _width_ns(bins, _PACKETS_IN_DETAILED_BIN, MOST_DETAILED_BINS)
    if width_ns >= _width_ns(bins, _PACKETS_IN_BIN, _MOST_BINS):
        return None
    return coarser_bins(bins, width_ns)


def _width_ns(bins: pl.DataFrame, packets_in_bin: int, most_bins: int) -> int:
    import polars as pl

    start_ns, end_ns = time_span_ns(bins)
    # one number for flow and direction: grouping by text is slow with a hundred thousand flows
    way = 2 * pl.col("flow").cast(pl.UInt64) + (pl.col("direction") == "rev")
    packets = bins.group_by(way).agg(pl.col("packets").sum())["packets"].max()
    packets = packets if isinstance(packets, int) else 0
    bounded = min(max(packets // packets_in_bin, _FEWEST_BINS), most_bins)
    return bin_width_for(end_ns - start_ns, int(bins["width_ns"][0]), bounded)


def _largest_directions(flows: pl.DataFrame, bins: pl.DataFrame) -> list[FlowRow]:
    """Return the directions with bins that carried most bytes, largest first, without the tiny ones."""
    import polars as pl

    keys = ["flow", "direction"]
    present = flows.select(keys).with_row_index("_row").join(bins.select(keys), on=keys, how="semi")
    has_bins = pl.int_range(pl.len(), dtype=pl.UInt32).is_in(present["_row"].implode())
    return distinct_directions(flows, has_bins, "wire_bytes")


def most_sampled(flows: pl.DataFrame) -> list[FlowRow]:
    """Return the directions with RTT samples, most samples first, as many as have distinct styles."""
    import polars as pl

    return distinct_directions(flows, pl.col("rtt_samples") > 0, "rtt_samples")


def _rows_of(bins: pl.DataFrame, keys: list[Key]) -> pl.DataFrame:
    return bins.join(_key_frame(bins, keys), on=["flow", "direction"], how="semi")


def _rows_not_of(bins: pl.DataFrame, keys: list[Key]) -> pl.DataFrame:
    return bins.join(_key_frame(bins, keys), on=["flow", "direction"], how="anti")


def _key_frame(bins: pl.DataFrame, keys: list[Key]) -> pl.DataFrame:
    import polars as pl

    columns = {"flow": [flow for flow, _ in keys], "direction": [direction for _, direction in keys]}
    return pl.DataFrame(columns, schema=bins.select("flow", "direction").schema)


def _summed_rates(bins: pl.DataFrame) -> pl.DataFrame:
    """Return the evenly spaced rate of all flows in `bins` together."""
    import polars as pl

    # as one flow, so that gaps are filled with zeros too
    together = summed_over_flows(bins).with_columns(
        pl.lit(0, dtype=pl.UInt32).alias("flow"),
        pl.lit("fwd").alias("direction"),
        *(
            pl.lit(None, dtype=pl.Float64).alias(f"{kind}_{name}_ms")
            for kind in ("rtt", "delay")
            for name in ("min", "mean", "max")
        ),
        *(pl.lit(None, dtype=pl.UInt64).alias(name) for name in NULLABLE_COUNTS),
    )
    return with_rates(evenly_spaced(together.select(bins.columns)))


def _rate_curve(label: str, style: int, series: pl.DataFrame, origin_ns: int) -> Curve:
    retransmitted = series["retransmitted_packets"].to_list()
    return Curve(
        label,
        style,
        bin_middles_s(series, origin_ns),
        tuple(series["throughput_bps"].to_list()),
        marked=_with_rings(retransmitted) if style != OTHER else (),
    )


def _with_rings(retransmitted: list[int]) -> tuple[int, ...]:
    """Return which bins have a ring: those with retransmissions, where they are rare."""
    marked = tuple(place for place, packets in enumerate(retransmitted) if packets)
    return marked if len(marked) <= _MOST_RINGS * len(retransmitted) else ()


def bin_middles_s(series: pl.DataFrame, origin_ns: int) -> tuple[float, ...]:
    """Return the middle of each bin in seconds since `origin_ns`."""
    widths = series["width_ns"].to_list()
    return tuple(
        (time_ns - origin_ns + width_ns / 2) / 1e9
        for time_ns, width_ns in zip(series["time_ns"].to_list(), widths, strict=True)
    )


def sample_curve(
    label: str,
    style: int,
    series: pl.DataFrame,
    origin_ns: int,
    columns: tuple[str, ...] = RTTS,
    *,
    rings: str | None = None,
) -> Curve:
    """Return the first of `columns` of one direction, broken where it was silent for long.

    The other two, if there are any, are the edges of a band. Points at which `rings` counts something are
    marked.
    """
    times: list[float] = []
    values: tuple[list[float | None], ...] = tuple([] for _ in columns)
    marked: list[int] = []
    previous_ns: int | None = None
    counts = series[rings].to_list() if rings else [0] * series.height
    rows = series.select("time_ns", "width_ns", *columns).iter_rows()
    for count, (time_ns, width_ns, *row) in zip(counts, rows, strict=True):
        middle_s = (time_ns - origin_ns + width_ns / 2) / 1e9
        if previous_ns is not None and time_ns - previous_ns > (_LONGEST_BREAK + 1) * width_ns:
            # at a time of its own: a script has one value at each
            times.append((previous_ns - origin_ns + 3 * width_ns / 2) / 1e9)
            for column in values:
                column.append(None)
        if count and row[0] is not None:
            marked.append(len(times))
        times.append(middle_s)
        for column, value in zip(values, row, strict=True):
            column.append(value)
        previous_ns = time_ns
    value, low, high = (*map(tuple, values), (), ())[:3]
    return Curve(label, style, tuple(times), value, low, high, tuple(marked))


def _range_words(bins: pl.DataFrame) -> str:
    import polars as pl

    low, high = bins.select(pl.col("rtt_min_ms").min(), pl.col("rtt_max_ms").max()).row(0)
    return f"samples from {format_ms(low)} to {format_ms(high)}"
