"""How long a frame is in the air at each rate of 802.11b, a, g and n.

A frame is a preamble, whose length does not depend on the content, and symbols. Times are µs, and 1 Mb/s is
1 bit/µs. Frames are MPDUs with their FCS, sizes are in bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Literal

Preamble = Literal["long", "short"]

DSSS_MBPS: Final = (1.0, 2.0, 5.5, 11.0)
OFDM_MBPS: Final = (6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0)

PLCP_US: Final = {"long": 192.0, "short": 96.0}
"""Preamble and header of DSSS: 144 + 48 bits at 1 Mb/s, or 72 at 1 Mb/s and 48 at 2 Mb/s."""

SIGNAL_EXTENSION_US: Final = 6.0
"""Silence after OFDM frames at 2.4 GHz, where SIFS is too short to decode them."""

_OFDM_PREAMBLE_US: Final = 20.0
_SYMBOL_US: Final = 4.0
_SHORT_GI_SYMBOL_US: Final = 3.6
_SERVICE_BITS: Final = 16
_TAIL_BITS: Final = 6

_HT_PREAMBLE_US: Final = 32.0
"""HT-mixed format without its HT-LTFs: L-STF 8, L-LTF 8, L-SIG 4, HT-SIG 8, HT-STF 4."""
_HT_LTFS: Final = (1, 2, 4, 4)
"""Long training fields for 1 to 4 spatial streams."""
_HT_SUBCARRIERS: Final = {20: 52, 40: 108}
_HT_HALF_BITS: Final = (1, 2, 3, 4, 6, 8, 9, 10)
"""Twice the coded bits per subcarrier of MCS 0 to 7: BPSK 1/2 to 64-QAM 5/6."""
_ONE_ENCODER_MBPS: Final = 300.0
"""Faster than this (with the long guard interval) a second encoder is used, with a tail of its own."""
_HT_REFERENCE_MBPS: Final = (6.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0, 54.0)
"""Non-HT reference rates of MCS 0 to 7 (same modulation), which choose the rate of the ACK."""

MAX_MCS: Final = 31


class Rate(ABC):
    """A way to send frames."""

    @property
    @abstractmethod
    def mbps(self) -> float:
        """Its rate in Mb/s."""

    @property
    def name(self) -> str:
        """What a user calls it: `5.5`, `mcs7`."""
        return f"{self.mbps:g}"

    @property
    def reference_mbps(self) -> float:
        """The rate in Mb/s that a basic rate must not exceed if it is to answer this one."""
        return self.mbps

    @property
    @abstractmethod
    def preamble_us(self) -> float:
        """All of a frame that does not depend on its content, in µs."""

    @abstractmethod
    def symbols_us(self, bits: int) -> float:
        """Return the time of the content, `bits` with FCS, in µs: S/r without rounding for DSSS."""

    def frame_us(self, bits: int) -> float:
        """Return how long a frame of `bits` with FCS is in the air, in µs."""
        return self.preamble_us + self.symbols_us(bits)


@dataclass(frozen=True, slots=True)
class Dsss(Rate):
    """802.11b: DSSS and CCK. The time is not rounded up to whole µs, as in the model of [Z]."""

    nominal_mbps: float
    preamble: Preamble = "long"

    @property
    def mbps(self) -> float:  # noqa: D102
        return self.nominal_mbps

    @property
    def preamble_us(self) -> float:  # noqa: D102
        return PLCP_US[self.preamble]

    def symbols_us(self, bits: int) -> float:  # noqa: D102
        return bits / self.mbps


@dataclass(frozen=True, slots=True)
class Ofdm(Rate):
    """802.11a, and 802.11g with its signal extension: TXTIME of 802.11-2012, 18.4.3."""

    nominal_mbps: float
    signal_extension_us: float = 0.0

    @property
    def mbps(self) -> float:  # noqa: D102
        return self.nominal_mbps

    @property
    def preamble_us(self) -> float:  # noqa: D102
        return _OFDM_PREAMBLE_US + self.signal_extension_us

    def symbols_us(self, bits: int) -> float:  # noqa: D102
        bits_per_symbol = round(self.mbps * _SYMBOL_US)
        return _SYMBOL_US * math.ceil((_SERVICE_BITS + bits + _TAIL_BITS) / bits_per_symbol)


@dataclass(frozen=True, slots=True)
class Ht(Rate):
    """802.11n in HT-mixed format, one MPDU in each frame (802.11-2012, 20.4.3).

    With the short guard interval the frame ends on a multiple of 4 µs, as L-SIG announces nothing finer.
    """

    mcs: int
    width_mhz: int = 20
    short_guard_interval: bool = False
    signal_extension_us: float = 0.0

    @property
    def name(self) -> str:  # noqa: D102
        return f"mcs{self.mcs}"

    @property
    def mbps(self) -> float:  # noqa: D102
        return self._bits_per_symbol / (_SHORT_GI_SYMBOL_US if self.short_guard_interval else _SYMBOL_US)

    @property
    def reference_mbps(self) -> float:  # noqa: D102
        return _HT_REFERENCE_MBPS[self.mcs % 8]

    @property
    def preamble_us(self) -> float:  # noqa: D102
        return _HT_PREAMBLE_US + _SYMBOL_US * _HT_LTFS[self._streams - 1] + self.signal_extension_us

    def symbols_us(self, bits: int) -> float:  # noqa: D102
        encoders = 1 if self._bits_per_symbol / _SYMBOL_US <= _ONE_ENCODER_MBPS else 2
        symbols = math.ceil((_SERVICE_BITS + bits + _TAIL_BITS * encoders) / self._bits_per_symbol)
        if not self.short_guard_interval:
            return _SYMBOL_US * symbols
        # in tenths of µs, where 3.6 is a whole number
        return _SYMBOL_US * math.ceil(symbols * 36 / 40)

    @property
    def _streams(self) -> int:
        return self.mcs // 8 + 1

    @property
    def _bits_per_symbol(self) -> int:
        return _HT_SUBCARRIERS[self.width_mhz] * _HT_HALF_BITS[self.mcs % 8] * self._streams // 2
