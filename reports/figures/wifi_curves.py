"""Figures of 802.11 over time: retries, rate and signal of each link between two stations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.conversations import SMALLEST_SHARE
from tfrctrace.reports.figures.throughput_and_rtt import bin_width, sample_curve
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.elements import Curve, Figure

_BITS_PER_MBIT: Final = 1e6

_SIGNALS: Final = ("signal_mean_dbm", "signal_min_dbm", "signal_max_dbm")


def wifi_figures(trace: DrawnTrace, bins: pl.DataFrame) -> Iterator[Figure]:
    """Give the figures of `bins` (see `tfrctrace.metrics.flow.wifi_links`) that have something to show."""
    links = _links(bins)
    if not links:
        return
    frames = sum(int(own["frames"].sum()) for own in links.values())
    scope = f"{counted(frames, 'frame')} on {counted(len(links), 'link')}, in bins of {bin_width(bins)}"
    if bins["retry_frames"].sum():
        yield trace.over_time(
            "radio-retries",
            "Frames with the retry bit over time",
            _curves(trace, links, "retry_share"),
            unit="",
            value_label="share of the frames",
            caption=f"Share of the frames of each bin that are retransmissions; {scope}.",
        )
    rates = _curves(trace, links, "rate_bps")
    if rates:
        yield trace.over_time(
            "radio-rate",
            "Rate of the frames over time",
            rates,
            unit="bit/s",
            caption=f"Mean rate of the frames of each bin, as the capturing radio recorded it; {scope}.",
        )
    signals = _curves(trace, links, *_SIGNALS)
    if signals:
        yield trace.over_time(
            "radio-signal",
            "Signal over time",
            signals,
            unit="dBm",
            caption=(
                "Mean signal of the frames of each bin at the capturing radio, in a band from the weakest to "
                f"the strongest one; {scope}. It shows how well the capturing radio hears a station, "
                "not how well the receiver does."
            ),
        )


def _links(bins: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the bins of the links that are drawn by their names, most frames first."""
    import polars as pl

    with_rates = bins.with_columns(
        (pl.col("retry_frames") / pl.col("frames")).alias("retry_share"),
        (pl.col("rate_mean_mbps") * _BITS_PER_MBIT).alias("rate_bps"),
        pl.col("signal_min_dbm", "signal_max_dbm").cast(pl.Float64),
    )
    links = with_rates.partition_by("transmitter", "receiver", maintain_order=True, as_dict=True)
    counts = {key: int(own["frames"].sum()) for key, own in links.items()}
    most = max(counts.values(), default=0)
    return {
        f"{key[0]} → {key[1]} ({counted(counts[key], 'frame')})": own
        for key, own in links.items()
        if counts[key] >= SMALLEST_SHARE * most
    }


def _curves(trace: DrawnTrace, links: Mapping[str, pl.DataFrame], *columns: str) -> list[Curve]:
    """Return a curve for each link of which the first of `columns` is known."""
    import polars as pl

    known = {
        name: (style, known_bins)
        for style, (name, own) in enumerate(links.items(), start=1)
        if (known_bins := own.filter(pl.col(columns[0]).is_not_null())).height
    }
    first_ns = min((int(own["time_ns"][0]) for own in links.values()), default=0)
    origin_ns = trace.origin_ns(first_ns)
    return [
        sample_curve(name, style, known_bins, origin_ns, columns)
        for name, (style, known_bins) in known.items()
    ]
