"""Vegas (Brakmo and Peterson, JSAC 1995): keep between alpha and beta segments in the queue."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final, Literal, get_args

from tfrctrace.replay.tcp.window import MIN_WINDOW, WindowControl, at_least

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

Agent = Literal["linux", "ns2"]

THRESHOLDS: Final[dict[Agent, tuple[float, float, float]]] = {"linux": (2, 4, 1), "ns2": (1, 3, 1)}
"""alpha, beta and gamma in segments."""

_NS2_LEAVES: Final = 7 / 8
"""Factor of the window when slow start of ns-2's agent ends."""

_AFTER_LOSS: Final[dict[Agent, float]] = {"linux": 1 / 2, "ns2": 3 / 4}
"""Factor of the window after a fast retransmission: Reno's in Linux (`tcp_reno_ssthresh`); the paper's in
ns-2, as a single loss does not indicate much congestion."""


class Vegas(WindowControl):
    """Delay-based: diff = cwnd (R - R_min) / R is compared with alpha and beta once per round."""

    def __init__(
        self,
        start: Start,
        *,
        agent: Agent = "linux",
        alpha: float | None = None,
        beta: float | None = None,
        gamma: float | None = None,
        samples: float = 1,
        forgets_base_rtt: float = 0,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set alpha, beta and gamma in segments; the defaults are those of `agent`.

        ns-2's agent rounds diff to whole segments, doubles in every other round of slow start, looks at
        diff then, leaves slow start with seven eighths of the window, and a loss with three quarters. Linux
        doubles in every round, and halves at a loss. The shortest of the last `samples` stands for that of a
        round, which Linux takes. With `forgets_base_rtt`, a loss makes it measure the base round-trip time
        anew, as Linux does when it sends with nothing in flight: so few segments that all of them are lost.
        """
        super().__init__(start, **window)
        if agent not in get_args(Agent):
            raise ValueError(f"agent is {' or '.join(get_args(Agent))}")
        given = zip((alpha, beta, gamma), THRESHOLDS[agent], strict=True)
        self._alpha, least_beta, self._gamma = (
            default if value is None else value for value, default in given
        )
        self._beta = at_least("beta", least_beta, self._alpha)
        self._is_ns2 = agent == "ns2"
        self._after_loss = _AFTER_LOSS[agent]
        self._rounds = 0.0
        self._forgets_base_rtt = bool(forgets_base_rtt)
        self._recent_s: deque[float] = deque(maxlen=round(at_least("samples", samples, 1.0)))

    @property
    def _diff(self) -> float:
        """Segments in the queue as the agent counts them: Linux by the base round-trip time."""
        if self._is_ns2:
            return math.floor(self.queued + 0.5)
        shortest_s = min(self._recent_s, default=self.base_rtt_s)
        if not 0 < self.base_rtt_s < math.inf:
            return 0.0
        return math.floor(self.cwnd * (shortest_s / self.base_rtt_s - 1))

    def sample_rtt(self, rtt_s: float) -> None:
        """Keep the last samples, too."""
        super().sample_rtt(rtt_s)
        self._recent_s.append(rtt_s)

    def slow_start(self, share: float) -> None:
        """Double until the queue is long; ns-2 in every other round, to measure the queue in between."""
        self._rounds += share
        doubles = not self._is_ns2 or self._rounds % 2 < 1
        if self._diff > self._gamma and self.rtt_s is not None and doubles:
            # Linux: no more than the path holds without a queue, and one segment
            at_path = min(self.cwnd, self.cwnd * self.base_rtt_s / self.rtt_s + 1)
            self.cwnd = max(self.cwnd * _NS2_LEAVES if self._is_ns2 else at_path, MIN_WINDOW)
            self.ssthresh = MIN_WINDOW if self._is_ns2 else self.cwnd
            self._reason = "queue"
        elif doubles:
            super().slow_start(share)

    def avoid_congestion(self, share: float) -> None:  # noqa: D102
        if self._diff < self._alpha:
            self.cwnd += share
        elif self._diff > self._beta:
            self.cwnd = max(self.cwnd - share, MIN_WINDOW)
            # as `tcp_vegas_ssthresh` of Linux: otherwise the next round is one of slow start
            self.ssthresh = min(self.ssthresh, self.cwnd)
            self._reason = "queue"

    def after_loss(self) -> float:  # noqa: D102
        if self._forgets_base_rtt:
            self.base_rtt_s = math.inf
        return self.cwnd * self._after_loss
