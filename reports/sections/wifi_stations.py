"""802.11 stations: the frames of each link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.reports.cells import bytes_cell, count_cell
from tfrctrace.reports.elements import Cell, Fact, Heading, Row, Section, TableView
from tfrctrace.reports.figures.wifi_curves import wifi_figures
from tfrctrace.reports.records import records
from tfrctrace.reports.units import MISSING, counted, format_count, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class _Link(NamedTuple):
    """Frames that one station sent to another."""

    transmitter: str | None
    receiver: str
    frames: int
    data_frames: int
    retry_frames: int
    bytes: int
    rate_mean_mbps: float | None
    signal_mean_dbm: float | None
    signal_min_dbm: float | None
    signal_max_dbm: float | None
    noise_mean_dbm: float | None
    channel_mhz: int | None


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
    shown = records(ordered.head(_MOST_ROWS), _Link)
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


def _left_out(links: pl.DataFrame, shown: Sequence[_Link]) -> str:
    rest = len(links) - len(shown)
    return f" Not shown: {counted(rest, 'link')} with fewer frames." if rest else ""


def _row(number: int, link: _Link) -> Row:
    share = link.retry_frames / link.frames if link.frames else None
    low, high = link.signal_min_dbm, link.signal_max_dbm
    signal = _measured(link.signal_mean_dbm, ".0f", "dBm")
    return Row(
        f"link-{number}",
        (
            Cell(link.transmitter or _UNKNOWN),
            Cell(link.receiver),
            count_cell(link.frames),
            count_cell(link.data_frames),
            count_cell(link.retry_frames, format_share(share)),
            bytes_cell(link.bytes),
            _measured(link.rate_mean_mbps, ".1f", "Mbit/s"),
            signal if low is None or high is None else replace(signal, back=f"{low:.0f} to {high:.0f}"),
            _measured(link.noise_mean_dbm, ".0f", "dBm"),
            _measured(link.channel_mhz, "", "MHz"),
        ),
    )


def _measured(value: float | None, form: str, unit: str) -> Cell:
    return Cell(MISSING if value is None else f"{value:{form}} {unit}", sort=value)
