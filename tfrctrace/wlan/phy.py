"""What a standard of 802.11 has: its rates by name, its waiting times, its defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.wlan.rates import DSSS_MBPS, MAX_MCS, OFDM_MBPS, SIGNAL_EXTENSION_US, Dsss, Ht, Ofdm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfrctrace.wlan.rates import Preamble, Rate

Standard = Literal["b", "a", "g", "n"]
Band = Literal["2.4", "5"]
Width = Literal["20", "40"]

CW_MIN: Final[Mapping[Standard, int]] = {"b": 31, "a": 15, "g": 15, "n": 15}

MAC_BYTES: Final[Mapping[Standard, int]] = {"b": 28, "a": 28, "g": 28, "n": 30}
"""MAC header and FCS; frames of 802.11n carry a QoS field too."""

_SIFS_US: Final[Mapping[Band, float]] = {"2.4": 10.0, "5": 16.0}
_LONG_SLOT_US: Final = 20.0
_SHORT_SLOT_US: Final = 9.0

_OFDM_BASIC: Final = ("6", "12", "24")
_MCS: Final = re.compile(r"mcs([0-9]{1,2})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What stations wait, in µs."""

    slot_us: float
    sifs_us: float

    @property
    def difs_us(self) -> float:
        """DIFS = SIFS + 2 SLOT, in µs."""
        return self.sifs_us + 2 * self.slot_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Phy:
    """One of 802.11b, a, g and n, with the choices it leaves."""

    standard: Standard
    band: Band
    preamble: Preamble = "long"
    """Of DSSS frames."""
    width: Width = "20"
    """Of the channel of HT frames, in MHz."""
    short_gi: bool = False
    """Whether HT frames have the short guard interval."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for choices that the standard does not leave."""
        wrong = (
            self._refusal("preamble", self.preamble == "short" and not self._has_dsss)
            or self._refusal("band", self.standard != "n" and self.band != _BAND[self.standard])
            or self._refusal("width", self.standard != "n" and self.width != "20")
            or self._refusal("short_gi", self.standard != "n" and self.short_gi)
        )
        if wrong:
            raise wrong

    def rate(self, name: str) -> Rate:
        """Return the rate that a user calls `name`: Mb/s, or `mcs7`. Raises `UsageError` if there is none."""
        if (match := _MCS.fullmatch(name)) and self.standard == "n" and int(match[1]) <= MAX_MCS:
            return Ht(
                mcs=int(match[1]),
                width_mhz=int(self.width),
                short_guard_interval=self.short_gi,
                signal_extension_us=self._signal_extension_us,
            )
        mbps = _number(name)
        if mbps in DSSS_MBPS and self._has_dsss:
            if mbps == 1 and self.preamble == "short":
                raise UsageError("1 Mb/s does not allow the short preamble", hint="use the long preamble")
            return Dsss(mbps, self.preamble)
        if mbps in OFDM_MBPS and self.standard != "b":
            return Ofdm(mbps, self._signal_extension_us)
        raise UsageError(
            f"802.11{self.standard} has no rate `{name}`", hint=f"rates: {', '.join(self._rate_names())}"
        )

    def timing(self, rates: Iterable[Rate]) -> Timing:
        """Return the waiting times while stations with `rates` are there.

        The slot of 802.11g and n at 2.4 GHz is short only if no station of 802.11b is present, which is one
        that sends at a rate of 802.11b.
        """
        with_b = self.standard == "b" or any(isinstance(rate, Dsss) for rate in rates)
        return Timing(slot_us=_LONG_SLOT_US if with_b else _SHORT_SLOT_US, sifs_us=_SIFS_US[self.band])

    @property
    def basic_rates(self) -> tuple[str, ...]:
        """Basic rates of a network whose access point does not say."""
        if not self._has_dsss:
            return _OFDM_BASIC
        dsss = ("1", "2") if self.preamble == "long" else ("2",)
        return dsss if self.standard == "b" else (*dsss, *_OFDM_BASIC)

    @property
    def _has_dsss(self) -> bool:
        return self.band == "2.4"

    @property
    def _signal_extension_us(self) -> float:
        return SIGNAL_EXTENSION_US if self.band == "2.4" else 0.0

    def _rate_names(self) -> list[str]:
        dsss = DSSS_MBPS if self._has_dsss else ()
        ofdm = OFDM_MBPS if self.standard != "b" else ()
        ht = [f"mcs0 to mcs{MAX_MCS}"] if self.standard == "n" else []
        return [*(f"{mbps:g}" for mbps in sorted((*dsss, *ofdm))), *ht]

    def _refusal(self, choice: str, is_wrong: bool) -> UsageError | None:
        value = getattr(self, choice)
        words = f"`{choice} = {value}`" if choice != "short_gi" else "the short guard interval"
        return UsageError(f"{words} is nothing 802.11{self.standard} has") if is_wrong else None


_BAND: Final[Mapping[Standard, Band]] = {"b": "2.4", "a": "5", "g": "2.4", "n": "5"}


def make_phy(
    standard: Standard,
    *,
    preamble: Preamble | None = None,
    band: Band | None = None,
    width: Width | None = None,
    short_gi: bool | None = None,
) -> Phy:
    """Return the PHY of a standard; None is what is usual. Raises `UsageError` for what it does not have."""
    return Phy(
        standard=standard,
        band=band or _BAND[standard],
        preamble=preamble or "long",
        width=width or "20",
        short_gi=bool(short_gi),
    )


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]+)?", text, re.ASCII) else None
