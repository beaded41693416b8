"""The retransmission timer of RFC 6298, with times in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INITIAL_RTO_S: Final = 1.0
"""RFC 6298 section 2.1: before the first round-trip time is known."""

LEAST_RTO_S: Final = 1.0
"""RFC 6298 section 2.4."""

MAX_RTO_S: Final = 60.0
"""RFC 6298 section 2.5."""

_ALPHA: Final = 1 / 8
_BETA: Final = 1 / 4
_K: Final = 4


@dataclass(slots=True)
class RetransmissionTimer:
    """SRTT, RTTVAR, RTO, and the number of back-offs."""

    min_rto_s: float = LEAST_RTO_S
    """Minimum RTO; 0.2 s in Linux and ns-2."""
    srtt_s: float | None = None
    rttvar_s: float = 0.0
    backoff: float = 1.0

    def sample(self, rtt_s: float) -> None:
        """Process a round-trip time (section 2.2 and 2.3), which also ends the back-off (section 5.7)."""
        self.backoff = 1.0
        if self.srtt_s is None:
            self.srtt_s, self.rttvar_s = rtt_s, rtt_s / 2
            return
        self.rttvar_s = (1 - _BETA) * self.rttvar_s + _BETA * abs(self.srtt_s - rtt_s)
        self.srtt_s = (1 - _ALPHA) * self.srtt_s + _ALPHA * rtt_s

    def back_off(self) -> None:
        """Double the timeout (section 5.5), up to the maximum."""
        if self.rto_s < MAX_RTO_S:
            self.backoff *= 2

    @property
    def rto_s(self) -> float:
        """The timeout in seconds, between the minimum and 60 s."""
        known = INITIAL_RTO_S if self.srtt_s is None else self.srtt_s + _K * self.rttvar_s
        return min(max(known, self.min_rto_s) * self.backoff, MAX_RTO_S)
