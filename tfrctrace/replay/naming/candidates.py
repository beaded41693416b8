"""Congestion controls that may have sent a direction, and how Linux has them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from tfrctrace.base.errors import UsageError
from tfrctrace.base.user_code import load_class
from tfrctrace.replay.tcp.bic import Bic
from tfrctrace.replay.tcp.cubic import Cubic
from tfrctrace.replay.tcp.dctcp import Dctcp
from tfrctrace.replay.tcp.high_speed import HighSpeed
from tfrctrace.replay.tcp.htcp import Htcp
from tfrctrace.replay.tcp.hybla import Hybla
from tfrctrace.replay.tcp.illinois import Illinois
from tfrctrace.replay.tcp.low_priority import LowPriority
from tfrctrace.replay.tcp.nv import Nv
from tfrctrace.replay.tcp.sack import Sack
from tfrctrace.replay.tcp.scalable import Scalable
from tfrctrace.replay.tcp.vegas import Vegas
from tfrctrace.replay.tcp.veno import Veno
from tfrctrace.replay.tcp.westwood import Westwood
from tfrctrace.replay.tcp.window import WindowControl
from tfrctrace.replay.tcp.yeah import Yeah

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfrctrace.replay.algorithms import Algorithm
    from tfrctrace.replay.controller import Start


@dataclass(frozen=True, slots=True)
class Candidate:
    """A congestion control by the name that Linux gives it; several may have one name."""

    name: str
    kind: type[WindowControl]
    settings: Mapping[str, float | str] = field(default_factory=dict)
    by_acks: Mapping[str, float] = field(default_factory=dict)
    """Settings that are multiples of the segments that an acknowledgement is for."""
    needs_ecn: bool = False
    """Whether it is another one (Linux: Reno) if the connection has no ECN."""
    is_own: bool = False
    """Whether it is the user's own, which may fail."""

    def begin(self, start: Start, segments_per_ack: float) -> WindowControl:
        """Return its state at the start of a direction."""
        return self.kind(start, **self.settings_for(segments_per_ack))

    def settings_for(self, segments_per_ack: float) -> dict[str, Any]:
        """Return its settings where an acknowledgement is for so many segments."""
        counted = {name: count * segments_per_ack for name, count in self.by_acks.items()}
        return {**self.settings, **counted}


BBR: Final = "bbr"
"""By its sign (`rtt_probes`): what it has in flight is not a window."""

CDG: Final = "cdg"
"""By its sign (`delay_backoffs`): when it backs off is drawn."""

CUBIC: Final = "cubic"

RENO: Final = "reno"

_TICKS_S: Final = (0.0, 0.004, 0.01)
"""Of Linux' clock, where round-trip times are counted in its ticks: HZ is 1000, 250 or 100."""

CANDIDATES: Final = (
    Candidate(RENO, Sack),
    Candidate(RENO, Sack, by_acks={"segments_per_ack": 1}),
    Candidate("dctcp", Dctcp, needs_ecn=True),
    Candidate(CUBIC, Cubic),
    Candidate(CUBIC, Cubic, {"increase_beyond": 0}),
    Candidate(CUBIC, Cubic, {"increase_beyond": 0, "least_growth": 0.05}),
    Candidate("vegas", Vegas, {"samples": 3}),
    Candidate("vegas", Vegas, {"samples": 3, "forgets_base_rtt": 1}),
    *(Candidate("westwood", Westwood, {"late": 1, "tick": tick}) for tick in _TICKS_S),
    Candidate("veno", Veno, by_acks={"uncounted": 1.5}),
    Candidate("nv", Nv, by_acks={"segments_per_ack": 1}),
    Candidate("illinois", Illinois),
    *(Candidate("htcp", Htcp, {"tick": tick}, by_acks={"uncounted": 1.5}) for tick in _TICKS_S),
    Candidate("yeah", Yeah),
    Candidate("lp", LowPriority),
    Candidate("lp", Sack),
    Candidate("hybla", Hybla),
    Candidate("hybla", Hybla, by_acks={"segments_per_ack": 1}),
    Candidate("hybla", Hybla, {"smoothed": 1}, by_acks={"segments_per_ack": 1}),
    Candidate("bic", Bic),
    Candidate("bic", Bic, by_acks={"segments_per_ack": 1}),
    Candidate("scalable", Scalable),
    Candidate("highspeed", HighSpeed, by_acks={"segments_per_ack": 1}),
)


def possible_candidates(own: Iterable[Candidate] = (), *, has_ecn: bool) -> list[Candidate]:
    """Return those that may have sent a direction of a connection with or without ECN, and the user's own."""
    return [*(candidate for candidate in CANDIDATES if has_ecn or not candidate.needs_ecn), *own]


_NAMES_IN_LINUX: Final = {"newreno": RENO, "sack": RENO}


def candidates_of(algorithm: Algorithm) -> list[Candidate]:
    """Return what an algorithm may be: as specified, as Linux has it, or with the user's settings."""
    kind = cast("type[WindowControl]", algorithm.make)
    own = Candidate(algorithm.name, kind, algorithm.settings, is_own=":" in algorithm.name)
    if algorithm.settings:
        return [own]
    name = _NAMES_IN_LINUX.get(own.name, own.name)
    return [own, *(replace(one, name=own.name) for one in CANDIDATES if one.name == name)]


def own_candidate(path: str) -> Candidate:
    """Return the congestion control of the user's own that `path` names as `module:Class`.

    Raises `UsageError` if it is no `WindowControl`.
    """
    kind = load_class(path)
    if not (isinstance(kind, type) and issubclass(kind, WindowControl)):
        raise UsageError(
            f"`{path}` is not a congestion control with a window",
            hint="inherit from `tfrctrace.replay.tcp.window.WindowControl` (docs/why-is-it-slow.md#your-own)",
        )
    return Candidate(path, kind, is_own=True)
