"""What two captures of the same packets tell: the clocks, delay over time, and where packets were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.bins import time_span_ns
from tfrctrace.reports.conversations import direction_label, flow_anchor, largest_directions
from tfrctrace.reports.curves import drawn_bins, sample_curve
from tfrctrace.reports.parts import STYLES, Cell, Fact, Figure, Heading, Row, Section, TableView, Words
from tfrctrace.reports.units import (
    counted,
    format_count,
    format_duration_s,
    format_ms,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.parsers._native import Clock

_MOST_ROWS: Final = 50
"""Directions in the table; the table of flows has more."""

_SMALLEST_SHARE: Final = 0.02
"""Directions with less than this share of the delays of the first one are not drawn."""

_NS_PER_MS: Final = 1e6

_HEADINGS: Final = (
    Heading("Direction", numeric=False, meaning="flow, and which way"),
    Heading("Sent", meaning="packets at the capture nearer to the sender"),
    Heading("Lost before", meaning="of TCP: sent again before the nearer capture had seen them at all"),
    Heading("Lost between", meaning="seen there, and never at the other capture"),
    Heading(
        "Lost behind", meaning="of TCP: seen at both, and sent again because the receiver asked for them"
    ),
    Heading("Delay min", meaning="smallest one-way delay"),
    Heading("Median", meaning="median of the one-way delays"),
    Heading("95\u00a0%", meaning="95th percentile"),
    Heading("99\u00a0%", meaning="99th percentile"),
    Heading("Max", meaning="largest one-way delay"),
    Heading("Jitter", meaning="interarrival jitter at the end (RFC 3550)"),
)


def between_section(
    flows: pl.DataFrame, bins: pl.DataFrame, clock: Clock | None, *, start_ns: int | None
) -> Section:
    """Return the section on a pair of captures; it is empty without a `clock`.

    `flows` and `bins` have the columns of `tfrctrace.parsers.schema`; times count from `start_ns`.
    """
    key, title = "between", "Between the two captures"
    if clock is None:
        return Section(key, title)
    rows = _matched(flows)
    figure = _delay_figure(rows, bins, start_ns)
    return Section(
        key,
        title,
        paragraphs=(_on_the_clocks(clock),),
        facts=tuple(_facts(rows, clock)),
        figures=() if figure is None else (figure,),
        tables=(_table(rows),) if rows else (),
    )


def _matched(flows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the directions of which both captures can show packets, most packets first."""
    import polars as pl

    return largest_directions(flows, pl.col("sent_packets") > 0, "sent_packets", flows.height)


def _facts(rows: list[dict[str, Any]], clock: Clock) -> Iterator[Fact]:
    sent, lost = (sum(row[name] for row in rows) for name in ("sent_packets", "lost_packets"))
    yield Fact("In both captures", counted(clock["packets"], "packet"), f"of {format_count(sent)} sent")
    yield Fact("Lost between", format_count(lost), format_share(lost / sent) if sent else "")
    if not clock["has_delays"]:
        yield Fact("Second clock", "not known", "packets of one direction only")
        return
    yield Fact(
        f"Second clock {'ahead' if clock['offset_ns'] >= 0 else 'behind'}",
        _offset(clock),
        "as given" if clock["is_given"] else f"{_offset_words(clock)} at the first packet in both",
    )
    if not clock["is_given"]:
        drift = clock["drift_ppm"]
        value = "not known" if drift is None else f"{drift:+.1f} ppm"
        yield Fact("Its drift", value, _drift_words(clock))


def _offset(clock: Clock) -> str:
    """Return the offset to the microsecond, or millisecond if it is not known as well."""
    low_ns, high_ns = clock["offset_low_ns"] or 0, clock["offset_high_ns"] or 0
    is_coarse = not clock["is_given"] and high_ns - low_ns > _NS_PER_MS
    seconds = abs(clock["offset_ns"]) / 1e9
    return f"{seconds:,.3f} s" if is_coarse else f"{seconds:,.6f} s"


def _offset_words(clock: Clock) -> str:
    low_ns, high_ns = clock["offset_low_ns"], clock["offset_high_ns"]
    if low_ns is None or high_ns is None:
        return "estimated"
    return f"± {format_ms((high_ns - low_ns) / 2 / _NS_PER_MS)}"


def _drift_words(clock: Clock) -> str:
    low, high = clock["drift_low_ppm"], clock["drift_high_ppm"]
    if low is None or high is None:
        return "it was set or adjusted in between"
    return f"possible: {low:+.1f} to {high:+.1f} ppm"


def _on_the_clocks(clock: Clock) -> Words:
    if not clock["has_delays"]:
        return (
            "Both captures have packets of one direction only. Delays cannot be told from an offset of the "
            "clocks then, only how they change: jitter. If the clocks agree, `--clock-offset 0s` says so.",
        )
    if clock["is_given"]:
        return ("Delays are what the clocks show, with the offset that was given.",)
    return (
        "The offset of the clocks is estimated from the packets themselves: it lies where no packet arrives "
        "before it is sent, and within these bounds in the middle, as if the shortest delay were the same in "
        f"both directions. If it is not, delays of one direction are up to {_half_ms(clock)} too long, and "
        "those of the other as much too short; changes of the delay and losses are not affected. If the "
        "clocks agree, `--clock-offset 0s` gives exact delays.",
    )


def _half_ms(clock: Clock) -> str:
    return _offset_words(clock).removeprefix("± ")


def _delay_figure(rows: list[dict[str, Any]], bins: pl.DataFrame, start_ns: int | None) -> Figure | None:
    import polars as pl

    sampled = bins.filter(pl.col("delay_samples") > 0)
    if sampled.is_empty():
        return None
    counts = {
        (flow, direction): samples
        for flow, direction, samples in sampled.group_by("flow", "direction")
        .agg(pl.col("delay_samples").sum())
        .iter_rows()
    }
    known = sorted(rows, key=lambda row: -counts.get(_key(row), 0))[:STYLES]
    most = counts.get(_key(known[0]), 0)
    drawn = [row for row in known if counts.get(_key(row), 0) >= max(1.0, _SMALLEST_SHARE * most)]
    wide = drawn_bins(bins)
    first_ns, end_ns = time_span_ns(wide)
    origin_ns = first_ns if start_ns is None else start_ns
    curves = tuple(
        sample_curve(
            direction_label(row),
            style,
            wide.filter(pl.col("flow") == row["flow"], pl.col("direction") == row["direction"]),
            origin_ns,
            kind="delay",
        )
        for style, row in enumerate(drawn, start=1)
    )
    width_s = int(wide["width_ns"][0]) / 1e9
    low_ms, high_ms = sampled.select(pl.col("delay_min_ms").min(), pl.col("delay_max_ms").max()).row(0)
    left_out = len(counts) - len(drawn)
    rest = f" Not drawn: {counted(left_out, 'direction')} with fewer packets." if left_out else ""
    rings = " A ring marks a bin with a loss between the captures." if any(c.marked for c in curves) else ""
    return Figure(
        key="delay-1",
        title="One-way delay over time",
        description=(
            f"Line chart of {counted(len(curves), 'curve')}; delays from {format_ms(low_ms)} to "
            f"{format_ms(high_ms)}."
        ),
        caption=(
            "Mean delay of the packets of each bin as a line, from the smallest to the largest as a band; "
            f"bins of {format_duration_s(width_s)}, at the time of sending.{rings}{rest}"
        ),
        unit="ms",
        curves=curves,
        lasted_s=(end_ns - origin_ns) / 1e9,
    )


def _key(row: dict[str, Any]) -> tuple[int, str]:
    return row["flow"], row["direction"]


def _table(rows: list[dict[str, Any]]) -> TableView:
    shown = rows[:_MOST_ROWS]
    left_out = len(rows) - len(shown)
    rest = f" Not shown: {counted(left_out, 'direction')} with fewer packets." if left_out else ""
    return TableView(
        "between-directions",
        f"Each direction at both captures, most packets first.{rest}",
        _HEADINGS,
        tuple(_row(row) for row in shown),
        sortable=True,
    )


def _row(row: dict[str, Any]) -> Row:
    counts = ("sent_packets", "lost_before_packets", "lost_packets", "lost_behind_packets")
    times = ("delay_min_ms", "delay_p50_ms", "delay_p95_ms", "delay_p99_ms", "delay_max_ms", "jitter_ms")
    return Row(
        f"between-{flow_anchor(row['flow'])}-{row['direction']}",
        (
            Cell(direction_label(row)),
            *(Cell(format_count(row[name]), sort=row[name]) for name in counts),
            *(Cell(format_ms(row[name]), sort=row[name]) for name in times),
        ),
    )
