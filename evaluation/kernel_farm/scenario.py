"""A scenario: one run of the farm, drawn by a seed.

The same seed and number give the same scenario on every machine. Addresses and ports are drawn too, so that
nothing can be read from them.
"""

from __future__ import annotations

import ipaddress
import random
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

CONTROLLERS: Final = (
    "reno", "cubic", "vegas", "bbr", "westwood", "veno", "illinois", "htcp", "cdg", "nv", "yeah", "lp",
    "dctcp", "hybla", "bic", "scalable", "highspeed",
)  # fmt: skip
"""Every congestion control of Linux 6.1."""

Limit = Literal[
    "bottleneck", "shared", "receiver", "slow_reader", "send_buffer", "bursts", "interactive", "paced",
    "on_off", "server", "policer", "loss", "marks", "reordering", "path_change", "two_way", "short",
]  # fmt: skip
LIMITS: Final[tuple[Limit, ...]] = Limit.__args__  # type: ignore[attr-defined]
"""What holds the flow back, by the way it is set up."""

Queue = Literal["bfifo", "tbf", "codel", "fq_codel", "pie", "red", "cake", "fq"]
QUEUES: Final[tuple[Queue, ...]] = Queue.__args__  # type: ignore[attr-defined]

SEGMENT_BYTES: Final = 1448
FRAME_BYTES: Final = 1514
DURATION_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Application:
    """How a program writes: `size` bytes, then a pause of `pause_s`; as much as the socket takes if 0."""

    kind: Literal["bulk", "bursts", "interactive", "paced", "on_off", "server"] = "bulk"
    size: int = 0
    pause_s: float = 0.0
    total: int | None = None
    """Bytes after which the connection is closed; None until the run ends."""


@dataclass(frozen=True, slots=True)
class Sender:
    """One TCP connection from its sender."""

    controller: str
    start_s: float
    port: int
    server_port: int
    application: Application = field(default_factory=Application)
    send_buffer: int | None = None
    receive_buffer: int | None = None
    read_bps: float | None = None
    """Rate at which the receiving program reads; None as fast as it can."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A path and what is sent over it."""

    seed: int
    number: int
    limit: Limit
    duration_s: float
    rate_bps: float
    delays_s: tuple[float, float, float, float]
    """There before and after the bottleneck, and back before and after it."""
    queue: Queue
    buffer_bytes: int
    ecn: bool
    loss: float
    """Share of packets lost at random, after the bottleneck."""
    reordering: float
    """Share of packets that are late by the delay after the bottleneck, so that others overtake them."""
    policer: tuple[float, int] | None
    """Rate in bit/s and bucket in bytes."""
    reverse_rate_bps: float | None
    """Rate of the bottleneck of the way back; None for none."""
    change: tuple[float, float] | None
    """When the way there changes to one with one more hop, and its delay before the bottleneck."""
    offload: bool
    middle: Literal["before", "after"] | None
    """Side of the bottleneck on which the capture in the middle is made; None for no such capture."""
    networks: tuple[str, ...]
    sender: Sender
    competitors: tuple[Sender, ...]
    competitors_delay_s: float
    backwards: Sender | None
    """A connection in the other direction."""
    competitors_from: Literal["a", "c"] = "c"
    """Where competitors are: beside the sender, whose capture then shows them too, or after its first hop."""
    outage: tuple[float, float] | None = None
    """When all packets that have passed the bottleneck begin to be lost, and until when."""
    rates: tuple[tuple[float, float], ...] = ()
    """From when on the bottleneck has another rate, and which (bit/s)."""
    far_ports: tuple[tuple[int, float], ...] = ()
    """Ports at the receiver that are farther away, and by how many seconds."""
    clears_marks: bool = False
    """Whether ECN is taken out of IP headers after the bottleneck."""
    tunnel: bool = False
    """Whether what passes the bottleneck is IP in IP."""

    @property
    def name(self) -> str:
        """Name of the folder of the run."""
        return f"{self.seed}-{self.number:04}-{self.limit}-{self.sender.controller}"

    @property
    def base_rtt_s(self) -> float:
        """Round-trip time without a queue."""
        return sum(self.delays_s)

    def as_dict(self) -> dict[str, Any]:
        """Return the scenario as it is written beside its captures."""
        return asdict(self)


def scenario_of(facts: dict[str, Any]) -> Scenario:
    """Return the scenario that `as_dict` wrote."""

    def sender(of: dict[str, Any]) -> Sender:
        return Sender(**{**of, "application": Application(**of["application"])})

    return Scenario(
        **{
            **facts,
            **{name: tuple(facts[name]) for name in ("delays_s", "networks")},
            **{name: facts.get(name) and tuple(facts[name]) for name in ("policer", "change", "outage")},
            **{name: tuple(map(tuple, facts.get(name, ()))) for name in ("rates", "far_ports")},
            "sender": sender(facts["sender"]),
            "competitors": tuple(map(sender, facts["competitors"])),
            "backwards": facts["backwards"] and sender(facts["backwards"]),
        }
    )


def draw(
    seed: int,
    number: int,
    *,
    limits: tuple[Limit, ...] = LIMITS,
    controllers: tuple[str, ...] = CONTROLLERS,
    duration_s: float = DURATION_S,
) -> Scenario:
    """Return the scenario with a number of the draw with a seed; limits and controllers take turns."""
    dice = random.Random(f"{seed}/{number}")
    limit = limits[number % len(limits)]
    controller = controllers[(number // len(limits) + number) % len(controllers)]
    # a buffer below a path of few segments would hold one write, and limit nothing
    is_buffer = limit in ("receiver", "slow_reader", "send_buffer")
    rate_bps = _between(dice, 10e6 if is_buffer else 1e6, 40e6)
    rtt_s = _between(dice, 0.04 if is_buffer else 0.005, 0.2)
    shares = [dice.uniform(0.1, 1) for _ in range(4)]
    delays = tuple(round(rtt_s * share / sum(shares), 6) for share in shares)
    bdp_bytes = max(rate_bps * rtt_s / 8, 4 * FRAME_BYTES)
    queue: Queue = "bfifo" if dice.random() < 0.4 else dice.choice(QUEUES)
    ecn = controller == "dctcp" or limit == "marks" or dice.random() < 0.15
    if limit == "marks":
        queue = dice.choice(("codel", "fq_codel", "pie", "red", "cake"))
    loss = {"loss": _between(dice, 0.0005, 0.01)}.get(
        limit, _between(dice, 1e-5, 1e-3) if dice.random() < 0.1 else 0
    )
    if limit == "loss":
        rate_bps *= 2
    ports = iter(dice.sample(range(1024, 65_000), 16))
    competitors = dice.choice((1, 1, 2)) if limit == "shared" else 0
    change_s = dice.uniform(0.3, 0.7) * duration_s
    return Scenario(
        seed=seed,
        number=number,
        limit=limit,
        duration_s=duration_s,
        rate_bps=round(rate_bps),
        delays_s=delays,  # type: ignore[arg-type]
        queue=queue,
        buffer_bytes=max(round(_between(dice, 0.3, 8) * bdp_bytes), 5 * FRAME_BYTES),
        ecn=ecn,
        loss=loss,
        reordering=_between(dice, 0.001, 0.02) if limit == "reordering" else 0,
        policer=(
            (round(rate_bps * dice.uniform(0.2, 0.7)), round(_between(dice, 20_000, 1_000_000)))
            if limit == "policer"
            else None
        ),
        reverse_rate_bps=round(rate_bps * dice.uniform(0.3, 1)) if limit == "two_way" else None,
        change=(
            (round(change_s, 3), round(delays[0] * dice.choice((0.3, 0.5, 2, 3)) + 0.004, 6))
            if limit == "path_change"
            else None
        ),
        offload=dice.random() < 0.4,
        middle=dice.choice(("before", "after")),
        networks=tuple(draw_networks(dice, 7)),
        sender=Sender(
            controller,
            round(dice.uniform(0, 0.2) * duration_s, 3) if limit == "shared" else 0.0,
            next(ports),
            next(ports),
            **_limited(dice, limit, rate_bps, rtt_s),
        ),
        competitors=tuple(
            Sender(
                dice.choice(controllers),
                round(dice.uniform(0, 0.3) * duration_s, 3),
                next(ports),
                next(ports),
            )
            for _ in range(competitors)
        ),
        competitors_delay_s=round(_between(dice, 0.005, 0.1), 6),
        backwards=(
            Sender(dice.choice(("reno", "cubic", "bbr")), 0.0, next(ports), next(ports))
            if limit == "two_way"
            else None
        ),
    )


def _between(dice: random.Random, low: float, high: float) -> float:
    """Return a number whose logarithm is drawn evenly."""
    return float(low * (high / low) ** dice.random())


def draw_networks(dice: random.Random, count: int) -> list[str]:
    """Return different private networks of 30 bits."""
    blocks = dice.sample(range(1 << 20), count)
    return [str(ipaddress.IPv4Address((10 << 24) + (block << 2))) for block in blocks]


def _limited(dice: random.Random, limit: Limit, rate_bps: float, rtt_s: float) -> dict[str, Any]:
    """Return the application and the buffers of a sender whose flow is held back by `limit`."""
    bdp_bytes = rate_bps * rtt_s / 8
    part = dice.uniform(0.2, 0.6)
    match limit:
        case "receiver":
            return {"receive_buffer": round(part * bdp_bytes)}
        case "slow_reader":
            return {"read_bps": round(part * rate_bps)}
        case "send_buffer":
            return {"send_buffer": round(part * bdp_bytes)}
    pause_s = 0.0
    match limit:
        case "bursts":
            pause_s = _between(dice, 0.05, 2)
            size = part * rate_bps / 8 * max(pause_s, rtt_s)
        case "interactive":
            pause_s = _between(dice, 0.02, 0.5)
            size = dice.choice((50, 200, 600))
        case "paced":
            pause_s = dice.choice((0.01, 0.02, 0.04))
            size = part * rate_bps / 8 * pause_s
        case "on_off":
            pause_s = _between(dice, 1, 5)
            size = rate_bps / 8 * dice.uniform(0.5, 2)
        case "server":
            pause_s = _between(dice, 0.01, 0.5)
            size = _between(dice, 3_000, 500_000)
        case "short":
            return {"application": Application(total=round(_between(dice, 10_000, 300_000)))}
        case _:
            return {}
    return {"application": Application(limit, round(size), pause_s)}
