"""How speech over RTP sounds: the E-model (ITU-T G.107), with default values for what packets do not show.

R is 93.2 less what delay and losses of the codec take away. No echo, no background noise, and no allowance
for what users expect (A = 0) are assumed, and losses at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

DEFAULT_RATING: Final = 93.2
"""R of all default values (G.107, 7.7)."""

_SHORTEST_NOTICED_MS: Final = 100.0
"""Of one-way delays: shorter ones take nothing away (mT of the default sensitivity)."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How a codec sounds (G.113, Appendix I), and how long it takes."""

    payload_type: int
    """Static type of RTP (RFC 3551)."""
    name: str
    impairment: float
    """Ie: without a loss."""
    robustness: float
    """Bpl: against losses."""
    delay_ms: float
    """Of a packet and the encoder's look-ahead."""


@dataclass(frozen=True, slots=True)
class Voice:
    """Codecs that can be scored, what is assumed of receivers, and what ratings mean."""

    codecs: tuple[Codec, ...]
    buffer_ms: float
    """Of a receiver that plays packets at even times: added to the delay."""
    bands: tuple[tuple[str, float], ...]
    """Name, and the least R, descending."""
    rest: str

    def codec(self, payload_type: int) -> Codec | None:
        """Return the codec of a payload type; None if it is not known."""
        return next((codec for codec in self.codecs if codec.payload_type == payload_type), None)

    def band(self, rating: float) -> str:
        """Return what users say of a rating."""
        return next((name for name, least in self.bands if rating >= least), self.rest)


def rating(codec: Codec, one_way_ms: float, loss: float) -> float:
    """Return R of a one-way delay from mouth to ear and a share of lost packets."""
    return DEFAULT_RATING - delay_impairment(one_way_ms) - equipment_impairment(codec, loss)


def delay_impairment(one_way_ms: float) -> float:
    """Return Idd: what a delay takes away (G.107, 7.4)."""
    if one_way_ms <= _SHORTEST_NOTICED_MS:
        return 0.0
    x = math.log2(one_way_ms / _SHORTEST_NOTICED_MS)
    noticed: float = (1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2
    return 25 * noticed


def equipment_impairment(codec: Codec, loss: float) -> float:
    """Return Ie,eff: what a codec and random losses take away (G.107, 7.5)."""
    percent = 100 * loss
    return codec.impairment + (95 - codec.impairment) * percent / (percent + codec.robustness)


def opinion(rating: float) -> float:
    """Return the mean opinion score of a rating (G.107, Annex B)."""
    if rating <= 0:
        return 1.0
    if rating >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)
