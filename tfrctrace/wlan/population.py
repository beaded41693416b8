"""The stations and the access point of an 802.11 network, and how options describe them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.bitrates import parse_bitrate_bps
from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.wlan.phy import Phy
    from tfrctrace.wlan.rates import Rate

MAX_STATIONS: Final = 2007
"""Stations that 802.11 can associate with one access point."""

_STATIONS: Final = re.compile(r"(?:([0-9]{1,4})x)?([^x]+)", re.ASCII)
_FRAMES: Final = re.compile(r"([^:]+):([0-9]{1,9}(?:\.[0-9]+)?):([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sparing:
    """A sparing station: it offers only X_j = `load_bps` in bit/s of frames of S bits."""

    rate: Rate
    load_bps: float


@dataclass(frozen=True, slots=True)
class Frames:
    """Other frames of the access point, all of one size, such as feedback; `bits` include MAC and FCS."""

    rate: Rate
    frames_per_s: float
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPoint:
    """The access point, which contends like a station and is greedy if it serves downloads."""

    rate: Rate
    is_saturated: bool = False
    downloads: int = 0
    frames: tuple[Frames, ...] = ()

    @property
    def is_greedy(self) -> bool:
        """Whether it always has a frame to send."""
        return self.is_saturated or self.downloads > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The contenders: greedy stations, sparing stations, and the access point."""

    greedy: tuple[Rate, ...]
    sparing: tuple[Sparing, ...] = ()
    access_point: AccessPoint | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` if 802.11 cannot have so many stations."""
        if self.stations > MAX_STATIONS:
            raise UsageError(f"802.11 allows at most {MAX_STATIONS} stations, not {self.stations}")

    @property
    def stations(self) -> int:
        """Stations without the access point."""
        return len(self.greedy) + len(self.sparing)

    @property
    def has_greedy(self) -> bool:
        """Whether there is a contender that always has a frame to send."""
        return bool(self.greedy) or bool(self.access_point and self.access_point.is_greedy)

    @property
    def rates(self) -> list[Rate]:
        """Rates of all contenders."""
        of_access_point = [self.access_point.rate] if self.access_point else []
        return [*self.greedy, *(one.rate for one in self.sparing), *of_access_point]


def fastest(rates: Iterable[Rate]) -> Rate | None:
    """Return the fastest rate, the access point's default; None without rates."""
    return max(rates, key=lambda rate: rate.mbps, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A population as given by options, parsed by `population`."""

    stations: tuple[str, ...] = ()
    """Greedy ones: `11`, or `4x11` for four."""
    sparing: tuple[str, ...] = ()
    """`5.5:200k`: rate, and offered bit/s of whole frames."""
    ap_rate: str | None = None
    ap_frames: tuple[str, ...] = ()
    """`11:20:76`: rate, frames a second, bytes with MAC header and FCS."""
    downloads: int = 0
    greedy_ap: bool = False
    no_ap: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no option is given."""
        return self == Description()

    def population(self, phy: Phy) -> Population:
        """Return the described population. Raises `UsageError` for invalid values."""
        greedy = tuple(rate for text in self.stations for rate in _stations(phy, text))
        sparing = tuple(_sparing(phy, text) for text in self.sparing)
        return Population(
            greedy=greedy,
            sparing=sparing,
            access_point=self._access_point(phy, [*greedy, *(one.rate for one in sparing)]),
        )

    def _access_point(self, phy: Phy, others: Sequence[Rate]) -> AccessPoint | None:
        if self.no_ap:
            if self.ap_rate or self.ap_frames or self.downloads or self.greedy_ap:
                raise UsageError("`--no-ap` cannot be combined with other options of the access point")
            return None
        rate = phy.rate(self.ap_rate) if self.ap_rate else fastest(others)
        if rate is None:
            raise UsageError(
                "no station is given", hint="name each by its rate: `--station 11 --station 5.5`"
            )
        return AccessPoint(
            rate=rate,
            is_saturated=self.greedy_ap,
            downloads=self.downloads,
            frames=tuple(_frames(phy, text) for text in self.ap_frames),
        )


def _stations(phy: Phy, text: str) -> list[Rate]:
    """Return the rates of `11`, or of `4x11`: four stations."""
    match = _STATIONS.fullmatch(text)
    if not match or (match[1] and not 1 <= int(match[1]) <= MAX_STATIONS):
        raise UsageError(
            f"`{text}` is not a station", hint="write a rate in Mb/s, or `4x11` for four stations"
        )
    return [phy.rate(match[2])] * int(match[1] or 1)


def _sparing(phy: Phy, text: str) -> Sparing:
    """Return the station of `5.5:200k`: rate, and offered bit/s of whole frames."""
    rate, colon, load = text.partition(":")
    if not colon:
        raise UsageError(f"`{text}` has no load", hint="write rate and load, such as `5.5:200k`")
    return Sparing(phy.rate(rate), parse_bitrate_bps(load))


def _frames(phy: Phy, text: str) -> Frames:
    """Return the frames of `11:20:76`: rate, frames a second, bytes with MAC header and FCS."""
    match = _FRAMES.fullmatch(text)
    if not match:
        raise UsageError(
            f"`{text}` does not describe frames", hint="write rate, frames per second and bytes: `11:20:76`"
        )
    return Frames(phy.rate(match[1]), float(match[2]), 8 * int(match[3]))
