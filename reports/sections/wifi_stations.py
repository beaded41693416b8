"""802.11 stations: the frames of each link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.elements import Cell, Fact, Heading, Row, Section, TableView
from tfrctrace.reports.figures.wifi_curves import wifi_figures
from tfrctrace.reports.units import MISSING, counted, format_bytes, format_count, format_share

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 200
"""Pairs of stations in the table: with every device that looks for a network there are many."""

_UNKNOWN: Final = "unknown"

_HEADINGS: Final = (
    Heading("Transmitter", numeric=False, meaning="station that sent the frames"),
    Heading("Receiver", numeric=False, meaning="destination of the frames"),
    Heading("Frames", meaning="of all kinds, retransmissions included"),
    Heading("Data", meaning="data frames among them"),
    Heading("Retry", meaning="frames with the retry bit; below, their share"),
    Heading("Bytes", meaning="whole frames"),
    Heading("Rate", meaning="mean rate of the frames"),
    Heading("Signal", meaning="mean at the capturing radio; below, weakest and strongest"),
    Heading("Noise", meaning="mean at the capturing radio"),
    Heading("Channel", meaning="centre of the channel of the last frame"),
)


def stations_section(content: ReportContent) -> Section:
    """Return the table of links between stations, most frames first; empty without frames of 802.11.

    Figures are those of the largest links (see `tfrctrace.metrics.flow.wifi_links`) on the one time axis that
    there is, None where there are several or too many frames.
    """
    links, bins = content.results.table("links"), content.results.link_bins
    if links.is_empty():
        return Section("stations", "Stations")
    ordered = links.sort(
        "frames", "transmitter", "receiver", descending=[True, False, False], nulls_last=True
    )
    shown = ordered.head(_MOST_ROWS).to_dicts()
    frames, retries = int(links["frames"].sum()), int(links["retry_frames"].sum())
    return Section(
        "stations",
        "Stations",
        paragraphs=((_reading(links),),),
        figures=() if bins is None else tuple(wifi_figures(content.traces[0], bins)),
        facts=(
            Fact("Frames", format_count(frames), f"on {counted(len(links), 'link')}"),
            Fact(
                "With the retry bit",
                format_share(retries / frames) if frames else MISSING,
                format_count(retries),
            ),
        ),
        tables=(
            TableView(
                "stations-links",
                f"One row for each link and direction, most frames first.{_left_out(links, shown)}",
                _HEADINGS,
                tuple(_row(number, row) for number, row in enumerate(shown, start=1)),
                sortable=True,
            ),
        ),
    )


def _reading(links: pl.DataFrame) -> str:
    radio = (
        " Signal, noise and rate are those that the capturing radio recorded; elsewhere they differ."
        if links["signal_mean_dbm"].count() or links["rate_mean_mbps"].count()
        else " The capture has no radio information, so signal and rate are unknown."
    )
    return (
        "Frames on the air as the capturing radio heard them; frames that it missed are not counted. A frame "
        f"with the retry bit is a retransmission.{radio}"
    )


def _left_out(links: pl.DataFrame, shown: list[dict[str, Any]]) -> str:
    rest = len(links) - len(shown)
    return f" Not shown: {counted(rest, 'link')} with fewer frames." if rest else ""


def _row(number: int, row: dict[str, Any]) -> Row:
    share = row["retry_frames"] / row["frames"] if row["frames"] else None
    signal = row["signal_mean_dbm"]
    rate = row["rate_mean_mbps"]
    noise = row["noise_mean_dbm"]
    channel = row["channel_mhz"]
    return Row(
        f"link-{number}",
        (
            Cell(row["transmitter"] or _UNKNOWN),
            Cell(row["receiver"]),
            Cell(format_count(row["frames"]), sort=row["frames"]),
            Cell(format_count(row["data_frames"]), sort=row["data_frames"]),
            Cell(format_count(row["retry_frames"]), format_share(share), row["retry_frames"]),
            Cell(format_bytes(row["bytes"]), sort=row["bytes"]),
            Cell(MISSING if rate is None else f"{rate:.1f} Mbit/s", sort=rate),
            Cell(MISSING if signal is None else f"{signal:.0f} dBm", _range(row), signal),
            Cell(MISSING if noise is None else f"{noise:.0f} dBm", sort=noise),
            Cell(MISSING if channel is None else f"{channel} MHz", sort=channel),
        ),
    )


def _range(row: dict[str, Any]) -> str:
    low, high = row["signal_min_dbm"], row["signal_max_dbm"]
    return "" if low is None or high is None else f"{low:.0f} to {high:.0f}"
