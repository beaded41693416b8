"""The stations that share the medium: from options, a scenario, or the frames of the trace."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.replay.directions import downloads_per_window
from tfrctrace.wlan.cell import CellSettings, make_cell
from tfrctrace.wlan.population import AccessPoint, Population, Sparing, fastest
from tfrctrace.wlan.rates import DSSS_MBPS, OFDM_MBPS
from tfrctrace.wlan.scenario import MAX_STEPS, Scenario, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tfrctrace.trace.tables import Tables
    from tfrctrace.wlan.cell import Cell
    from tfrctrace.wlan.population import Description
    from tfrctrace.wlan.rates import Rate

WINDOW_NS: Final = 1_000_000_000
"""Width of the windows: a station is present if it sends a data frame, with its most frequent rate. Windows
are wider if a trace has more than `MAX_STEPS` of them."""

SPARING_SHARE: Final = 0.7
"""A station counts as sparing if it sends less than this share of the frames of the busiest station: DCF
gives all stations that always send about the same number of frames."""


def medium_from_options(description: Description, settings: CellSettings) -> Scenario:
    """Return the constant network that options describe."""
    cell = make_cell(settings)
    return Scenario(cell, (Step(0.0, None, description.population(cell.phy)),))


def medium_frames(trace: Tables) -> pl.DataFrame:
    """Return frames with their senders and rates, from a capture or from ns-2's MAC lines."""
    from tfrctrace.replay.airtime import frames_in_the_air

    captured = trace.link_samples
    return frames_in_the_air(trace.packets()) if captured.is_empty() else captured


def medium_from_frames(
    frames: pl.DataFrame, settings: CellSettings, zero_ns: int, *, downloads: int | None = None
) -> Scenario:
    """Return the network inferred from 802.11 frames (`medium_frames`), per second from `zero_ns`.

    A station that sends about as many frames as the busiest one counts as greedy, any other as sparing
    with its frames as load (S bits each, as in the model). The access point is the sender with the network's
    own address (BSSID); without a BSSID there is none. Unless `downloads` are given, they are the stations
    that receive more than they send, as long as the access point is not sparing itself.
    """
    import polars as pl

    data = frames.filter(
        (pl.col("kind") == "data")
        & pl.col("transmitter").is_not_null()
        & pl.col("rate_mbps").is_in([*DSSS_MBPS, *OFDM_MBPS])
    )
    if data.is_empty():
        raise UsageError(
            "no frame of the trace has the rate of a station, so MTFRC's bounds are unknown",
            hint="use a capture with radiotap headers, or ns-2 with `-macTrace ON`, or name stations with "
            "`--station 11 --station 5.5` or `--scenario FILE`",
        )
    if settings.phy is None:
        # only 802.11b has no other rates than these
        is_b = set(data["rate_mbps"].unique()) <= set(DSSS_MBPS)
        settings = CellSettings(phy="b" if is_b else "g").or_else(settings)
    cell = make_cell(settings)
    has_access_point = data["bssid"].null_count() < data.height
    if "repeated" in data.columns:
        data = data.filter(pl.col("repeated").fill_null(0) == 0)
    since_ns = data["time_ns"] - zero_ns
    last_ns = since_ns.max()
    assert isinstance(last_ns, int)
    width_ns = max(WINDOW_NS, last_ns // MAX_STEPS)
    sent = pl.col("frames")
    data = data.with_columns((since_ns // width_ns).alias("window"))
    seen = (
        data.group_by("window", "transmitter", maintain_order=True)
        .agg(
            pl.col("rate_mbps").mode().sort().last(),
            (pl.col("transmitter") == pl.col("bssid")).any().fill_null(value=False).alias("is_access_point"),
            pl.len().alias("frames"),
        )
        .with_columns(
            (sent * 1e9 / width_ns).alias("frames_per_s"),
            (sent < SPARING_SHARE * sent.max().over("window")).alias("is_sparing"),
        )
        .join(downloads_per_window(data), on="window", how="left")
        .sort("window", "transmitter")
    )
    if downloads and not has_access_point:
        raise UsageError("`--downloads` needs an access point, and the trace shows none")
    return Scenario(cell, tuple(_steps(cell, seen, width_ns / 1e9, downloads, has_access_point)))


def _steps(
    cell: Cell, seen: pl.DataFrame, width_s: float, downloads: int | None, has_access_point: bool
) -> list[Step]:
    """Return the populations of all windows, merging equal ones in a row."""
    populations: list[tuple[float, Population]] = []
    # rows are in the order of windows, and a frame for each window would take longer than all of them
    for window, stations in groupby(seen.iter_rows(named=True), key=itemgetter("window")):
        population = _population(cell, stations, downloads, has_access_point)
        if not populations or populations[-1][1] != population:
            populations.append((window * width_s, population))
    ends = [from_s for from_s, _ in populations[1:]]
    return [
        Step(from_s, until_s, population)
        for (from_s, population), until_s in zip(populations, [*ends, None], strict=True)
    ]


def _population(
    cell: Cell, stations: Iterable[dict[str, Any]], downloads: int | None, has_access_point: bool
) -> Population:
    greedy: list[Rate] = []
    sparing: list[Sparing] = []
    own: list[Rate] = []
    found = 0
    for row in stations:
        rate = cell.phy.rate(f"{row['rate_mbps']:g}")
        if row["is_access_point"]:
            own.append(rate)
            # a sparing access point sends acknowledgements and feedback
            found = 0 if row["is_sparing"] else row["downloads"] or 0
        elif row["is_sparing"]:
            sparing.append(Sparing(rate, row["frames_per_s"] * cell.s_bits))
        else:
            greedy.append(rate)
    if not has_access_point:
        return Population(greedy=tuple(greedy), sparing=tuple(sparing))
    its_rate = fastest(own or [*greedy, *(one.rate for one in sparing)])
    assert its_rate is not None
    return Population(
        greedy=tuple(greedy),
        sparing=tuple(sparing),
        access_point=AccessPoint(rate=its_rate, downloads=found if downloads is None else downloads),
    )
