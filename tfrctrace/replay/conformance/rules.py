"""Rules for TCP senders, and where they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from tfrctrace.replay.naming.observations import At

Level = Literal["MUST", "SHOULD", "paper"]
"""How the source requires it; Experimental RFCs only describe it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a sender may break."""

    finding: str
    """Name of a departure from it."""
    rule: str
    """Source."""
    level: Level
    unit: str
    """Unit of the value that is found, and of that allowed."""


class Departure(NamedTuple):
    """What a packet shows of a sender that departs from a rule."""

    rule: Rule
    at: At
    value: float
    limit: float


_LEFT: Final = "of the window"

WINDOW_LEFT: Final = Rule("window_left", "RFC 9438 section 4.6", "SHOULD", _LEFT)
WINDOW_GROWTH: Final = Rule("window_growth", "RFC 9438 section 5.1", "SHOULD", "segments/s³")
FAST_CONVERGENCE: Final = Rule("no_fast_convergence", "RFC 9438 section 4.7", "SHOULD", "of W_max")

REDUCED_TWICE: Final = Rule("reduced_twice", "RFC 3168 section 6.1.2", "SHOULD", _LEFT)
GROWTH_WITHOUT_DATA: Final = Rule("growth_without_data", "RFC 7661 section 4.4", "paper", "bytes")
CUBIC_WITHOUT_DATA: Final = Rule("growth_without_data", "RFC 9438 sections 4.2 and 5.8", "MUST", "bytes")
INITIAL_WINDOW: Final = Rule("initial_window", "RFC 6928 section 2", "paper", "segments")
NO_BACKOFF: Final = Rule("no_backoff", "RFC 6298 section 5.5", "MUST", "s")
MARKS_IGNORED: Final = Rule("marks_ignored", "RFC 3168 section 5", "MUST", _LEFT)
