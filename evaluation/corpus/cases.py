"""The Linux cases: what each sends, and which packets the relay harms.

Segments are numbered from 0 in the order of their first sending. Rules are those of `relay.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from frames import Header

SERVER_PORT = 42424
CLIENT_PORT = 42425
NEAR, FAR = "10.77.1.1", "10.77.1.2"
"""The addresses of a case that names its ports itself."""

MSS = 1448
"""Payload of a full segment with timestamps."""

Steps = list[list[Any]]
Rule = dict[str, Any]
Lost = Callable[[int, Header], bool]
"""Whether a capture lost this packet, by its number and header."""


def harm(do: str, *segments: int | tuple[int, int], **more: Any) -> Rule:
    """Return a rule on single segments and on ranges (first, last)."""
    ranges = [(part, part) if isinstance(part, int) else part for part in segments]
    return {"do": do, "segments": ranges, **more}


def bulk(segments: int, control: str = "cubic", before: Steps | None = None) -> Steps:
    """Send so many full segments, say that it is all, and wait for the other side to end."""
    return [["control", control], *(before or []), ["open"], ["send", segments * MSS], *END]


SINK: Steps = [["open"], ["read", -1]]
END: Steps = [["shutdown"], ["read", -1]]


@dataclass(frozen=True)
class Case:
    """One connection between two hosts, and its troubles."""

    name: str
    what: str
    connect: Steps = field(default_factory=lambda: bulk(150))
    listen: Steps = field(default_factory=lambda: SINK)
    harm: tuple[Rule, ...] = ()
    sysctl: tuple[str, ...] = ()
    rtt: float = 0.04
    rate: float = 0.0
    queue: int = 50
    """Packets in front of the slow link of `rate` bytes per second."""
    ipv6: bool = False
    offload: bool = False
    routed: str = ""
    """A token bucket filter instead of the relay."""
    router_loss: float = 0.0
    """The share of data packets that the router drops at random."""
    capture_any: bool = False
    """The captures in the middle and at the sender are of all interfaces."""
    seed: int = 1
    cuts: tuple[tuple[str, str, Lost], ...] = ()
    """More captures: their name, of which they are what is left, and what they lost."""


def trickle(count: int, size: int, pause: float) -> Steps:
    """Send small messages with pauses between them."""
    return [step for _ in range(count) for step in (["send", size], ["sleep", pause])]


NO_DELAY = ["option", "IPPROTO_TCP", "TCP_NODELAY", 1]
SMALL_BUFFER = ["option", "SOL_SOCKET", "SO_RCVBUF", 12000]
NO_SACK = "net.ipv4.tcp_sack=0"
NO_TIMESTAMPS = "net.ipv4.tcp_timestamps=0"
NO_DSACK = "net.ipv4.tcp_dsack=0"
NO_RACK = "net.ipv4.tcp_recovery=0"
NO_TLP = "net.ipv4.tcp_early_retrans=0"
ECN = "net.ipv4.tcp_ecn=1"

LOSSES = (
    Case("drop-one", "one segment lost", harm=(harm("drop", 60),)),
    Case("drop-one-reno", "one segment lost, Reno", bulk(150, "reno"), harm=(harm("drop", 60),)),
    Case("drop-one-before", "one segment lost before the middle", harm=(harm("drop", 60, tap="before"),)),
    Case("drop-several", "six segments of one window lost", harm=(harm("drop", 60, 62, 63, 67, (70, 71)),)),
    Case("drop-both-sides", "losses on both sides of the middle",
         harm=(harm("drop", 50, (81, 83), tap="before"), harm("drop", 55, (90, 91)))),
    Case("drop-first-data", "the first data segment lost", harm=(harm("drop", 0),)),
    Case("drop-retransmission", "a segment and its retransmission lost", harm=(harm("drop", 60, times=2),)),
    Case("drop-retransmission-twice", "a segment and two retransmissions lost",
         harm=(harm("drop", 60, times=3),)),
    Case("drop-one-no-sack", "one segment lost without SACK", harm=(harm("drop", 60),), sysctl=(NO_SACK,)),
    Case("drop-several-no-sack", "NewReno repairs one hole a round trip",
         harm=(harm("drop", 60, 63, 67, 70),), sysctl=(NO_SACK,)),
    Case("drop-several-no-timestamps", "losses without timestamps",
         harm=(harm("drop", 60, 63, 67, 70),), sysctl=(NO_TIMESTAMPS,)),
    Case("drop-several-no-rack", "SACK recovery by counting (RFC 6675), without RACK",
         harm=(harm("drop", 60, 62, 63, 67),), sysctl=(NO_RACK,)),
    Case("drop-one-ipv6", "one segment lost, IPv6", harm=(harm("drop", 60, 70),), ipv6=True),
    Case("random-cubic", "2 % lost", bulk(400), harm=(harm("drop", share=0.02),), seed=2, cuts=(
        ("midstream", "snd", lambda number, _: number <= 150),
        ("one-way", "snd", lambda _, header: header.sport == SERVER_PORT),
        ("gaps", "snd", lambda number, _: number % 90 in range(40, 45)),
        ("gaps", "rcv", lambda number, _: number % 90 in range(40, 45)),
    )),
    Case("random-reno-no-sack", "2 % lost, Reno without SACK", bulk(300, "reno"),
         harm=(harm("drop", share=0.02),), sysctl=(NO_SACK,), seed=3),
    Case("random-bbr", "3 % lost, BBR", bulk(300, "bbr"), harm=(harm("drop", share=0.03),), seed=4),
    Case("random-heavy", "12 % lost on each half of the path", bulk(150),
         harm=(harm("drop", share=0.12, tap="before"), harm("drop", share=0.12)), seed=5),
    Case("random-ack-loss", "2 % of the data and 30 % of the acknowledgements lost", bulk(300),
         harm=(harm("drop", share=0.02), harm("drop", share=0.3, way="back", only="ack")), seed=6),
    Case("queue-cubic", "a slow link with a short queue", bulk(400), rate=400_000, queue=15),
    Case("queue-reno-small", "a slow link with a very short queue", bulk(200, "reno"), rate=200_000, queue=6),
)  # fmt: skip

TIMEOUTS = (
    Case("tail-one", "the last segment lost: a tail loss probe", harm=(harm("drop", 149),)),
    Case("tail-three", "the last three segments lost", harm=(harm("drop", (147, 149)),)),
    Case("bursts", "bursts of six segments; of most the end is lost",
         [NO_DELAY, ["open"], *trickle(8, 6 * MSS, 0.6), *END],
         harm=(harm("drop", 5, 17, 23, 34, 35), harm("drop", 41, times=2), harm("drop", 44))),
    Case("tail-and-probe", "the last segment and its probe lost", harm=(harm("drop", 149, times=2),)),
    Case("tail-no-tlp", "the last segment lost, no probes: a timeout", harm=(harm("drop", 149),),
         sysctl=(NO_TLP,)),
    Case("tail-no-sack", "the last two segments lost without SACK", harm=(harm("drop", (148, 149)),),
         sysctl=(NO_SACK,)),
    Case("outage", "nothing passes for 1.5 s: timeouts with backoff",
         harm=(harm("outage", 60, seconds=1.5, both_ways=True),)),
    Case("outage-no-sack", "nothing passes for 0.9 s, no SACK, no timestamps",
         harm=(harm("outage", 60, seconds=0.9, both_ways=True),), sysctl=(NO_SACK, NO_TIMESTAMPS)),
    Case("window-lost", "sixty segments in a row lost", harm=(harm("drop", (60, 119)),)),
    Case("thin-stream", "small messages, three of them lost",
         [NO_DELAY, ["open"], *trickle(14, 200, 0.05), *END],
         harm=(harm("drop", 4, 9, 13),)),
    Case("thin-stream-no-tlp", "small messages without probes, three lost, one of them twice",
         [NO_DELAY, ["open"], *trickle(10, 200, 0.3), *END],
         harm=(harm("drop", 3, 6), harm("drop", 8, times=2)), sysctl=(NO_TLP,)),
    Case("syn-lost", "the first SYN lost", bulk(20), harm=(harm("drop", only="syn"),)),
    Case("syn-ack-lost", "the first SYN/ACK lost", bulk(20), harm=(harm("drop", only="syn", way="back"),)),
    Case("fin-lost", "both FINs lost once", bulk(20),
         harm=(harm("drop", only="fin"), harm("drop", only="fin", way="back"))),
)  # fmt: skip

SPURIOUS = (
    Case("delay-spike", "all held for 0.7 s: a timeout for nothing", harm=(harm("stall", 60, seconds=0.7),)),
    Case("delay-spike-no-sack", "all held for 0.7 s, no SACK (and no D-SACK)",
         harm=(harm("stall", 60, seconds=0.7),), sysctl=(NO_SACK,)),
    Case("delay-spike-no-timestamps", "all held for 0.7 s, no timestamps",
         harm=(harm("stall", 60, seconds=0.7),), sysctl=(NO_TIMESTAMPS,)),
    Case("delay-spike-bare", "all held for 0.7 s, neither SACK nor timestamps",
         harm=(harm("stall", 60, seconds=0.7),), sysctl=(NO_SACK, NO_TIMESTAMPS)),
    Case("ack-outage", "no acknowledgement arrives for 0.6 s",
         harm=(harm("outage", 40, seconds=0.6, way="back", only="ack"),)),
    Case("ack-stall", "the acknowledgements are held for 0.5 s",
         harm=(harm("stall", 40, seconds=0.5, way="back", only="ack"),)),
    Case("ack-loss", "a third of the acknowledgements lost, no data",
         harm=(harm("drop", share=0.33, way="back", only="ack"),), seed=7),
    Case("last-ack-lost", "the acknowledgement of the last data lost",
         [["open"], ["send", 5 * MSS], ["sleep", 0.6], *END],
         harm=(harm("drop", (2, 9), way="back", only="ack"),)),
)  # fmt: skip

NO_LOSS = (
    Case("reorder-slight", "some segments 4 ms late", harm=(harm("hold", 40, 60, 80, 100, seconds=0.004),)),
    Case("reorder-far", "some segments 15 ms late: repaired for nothing, or not",
         harm=(harm("hold", 40, 60, 80, 100, seconds=0.015),)),
    Case("reorder-very-far", "some segments 60 ms late: retransmitted for nothing",
         harm=(harm("hold", 60, 100, seconds=0.06),)),
    Case("reorder-before", "some segments late before the middle",
         harm=(harm("hold", 40, 60, 80, 100, seconds=0.008, tap="before"),)),
    Case("reorder-random", "one in twelve segments 6 ms late", bulk(200),
         harm=(harm("hold", share=0.08, seconds=0.006),), seed=8),
    Case("reorder-no-sack", "some segments 15 ms late, no SACK", bulk(150, "reno"),
         harm=(harm("hold", 40, 60, 80, seconds=0.015),), sysctl=(NO_SACK,)),
    Case("reorder-no-rack", "some segments 15 ms late, counting duplicate acknowledgements",
         harm=(harm("hold", 40, 60, 80, seconds=0.015),), sysctl=(NO_RACK,)),
    Case("reorder-and-drop", "some segments late, others lost",
         harm=(harm("hold", 40, 80, seconds=0.006), harm("drop", 60, 100))),
    Case("copies", "the network doubles segments", harm=(harm("copy", 40, 60, (80, 83), seconds=0.0005),)),
    Case("copies-late", "the network doubles segments, 20 ms later",
         harm=(harm("copy", 40, 60, seconds=0.02),)),
    Case("copies-before", "segments doubled before the middle",
         harm=(harm("copy", 40, 60, (80, 83), seconds=0.001, tap="before"),)),
    Case("copies-and-drop", "a retransmission is doubled",
         harm=(harm("drop", 60), harm("copy", 62, 80, seconds=0.001),
               harm("copy", 60, seconds=0.001, times=2))),
    Case("ecn-marks", "congestion is marked, nothing lost",
         harm=(harm("mark", 40, (60, 62), 90),), sysctl=(ECN,)),
    Case("ecn-marks-and-drop", "congestion is marked, one segment lost",
         harm=(harm("mark", 40, 90), harm("drop", 60)), sysctl=(ECN,)),
    Case("clean", "nothing happens", bulk(100)),
)  # fmt: skip

ENDS = (
    Case("zero-window", "the receiver does not read for 2 s: window probes", bulk(60),
         [SMALL_BUFFER, ["open"], ["sleep", 2.0], ["read", -1]]),
    Case("zero-window-update-lost", "the window's opening lost", bulk(60),
         [SMALL_BUFFER, ["open"], ["sleep", 1.0], ["read", -1]],
         harm=(harm("outage", 7, seconds=1.3, way="back", only="ack"),)),
    Case("slow-reader", "the receiver reads slowly: the window is full", bulk(40),
         [SMALL_BUFFER, ["open"], *[step for _ in range(20) for step in (["read", 2896], ["sleep", 0.03])],
          ["read", -1]]),
    Case("keep-alive", "idle for 3.5 s with keep-alives each second",
         [["option", "SOL_SOCKET", "SO_KEEPALIVE", 1], ["option", "IPPROTO_TCP", "TCP_KEEPIDLE", 1],
          ["option", "IPPROTO_TCP", "TCP_KEEPINTVL", 1], ["open"], ["send", 3 * MSS], ["sleep", 3.5],
          ["send", 2 * MSS], ["shutdown"], ["read", -1]]),
    Case("seq-wrap", "sequence numbers wrap while segments are lost",
         bulk(150, before=[["first_number", 2**32 - 60 * MSS]]), harm=(harm("drop", 57, 59, 60, 90),)),
    Case("reverse", "the side that listens sends",
         [["open"], ["read", -1]], [["open"], ["send", 120 * MSS], *END],
         harm=(harm("drop", 50, 52, way="back"),)),
    Case("both-ways", "both sides send, both lose",
         [["open"], ["send", 100 * MSS], ["read", 100 * MSS], *END],
         [["open"], ["send", 100 * MSS], ["read", -1]],
         harm=(harm("drop", 50, 80), harm("drop", 40, 70, way="back"))),
    Case("reset", "the sender resets after losses",
         [["open"], ["send", 60 * MSS], ["sleep", 0.5], ["reset"]],
         [["open"], ["read", 60 * MSS], ["sleep", 1.0]], harm=(harm("drop", 30),)),
    Case("simultaneous-open", "both sides send a SYN at once, and lose data later",
         [["bind", NEAR, CLIENT_PORT], ["meet"], ["open"], ["send", 60 * MSS], ["read", 40 * MSS], *END],
         [["bind", FAR, SERVER_PORT], ["meet"], ["call", NEAR, CLIENT_PORT], ["send", 40 * MSS],
          ["read", -1]],
         harm=(harm("drop", 30), harm("drop", 20, way="back")), rtt=0.1),
    Case("port-reuse", "two connections by the same ports, both lose",
         [["bind", NEAR, CLIENT_PORT], ["open"], ["send", 30 * MSS], ["read", -1], ["shutdown"],
          ["sleep", 0.4], ["again"], ["bind", NEAR, CLIENT_PORT], ["open"], ["send", 30 * MSS],
          ["read", -1], ["shutdown"]],
         [["open"], ["read", 30 * MSS], ["shutdown"], ["read", -1],
          ["again"], ["open"], ["read", 30 * MSS], ["shutdown"], ["read", -1]],
         harm=(harm("drop", 12, 42, 44),)),
    Case("half-close", "one side ends, then the other sends and loses",
         [["open"], ["send", 40 * MSS], *END], [["open"], ["read", -1], ["send", 80 * MSS]],
         harm=(harm("drop", 20), harm("drop", 30, 33, 34, way="back"))),
    Case("window-full-and-drop", "the window is full, and segments are lost", bulk(60),
         [SMALL_BUFFER, ["open"], *[step for _ in range(30) for step in (["read", 2896], ["sleep", 0.03])],
          ["read", -1]], harm=(harm("drop", 20, 33, 48),)),
    Case("zero-window-often", "the window closes and opens four times", bulk(60),
         [SMALL_BUFFER, ["open"], *[step for _ in range(4) for step in (["sleep", 0.7], ["read", 12 * MSS])],
          ["read", -1]]),
    Case("gaps", "nothing lost, but captures that miss packets", bulk(150), cuts=tuple(
        ("gaps", tap, lambda number, _: number % 60 in range(30, 36)) for tap in ("snd", "mid", "rcv")
    )),
)  # fmt: skip


def storm(share: float, **more: Any) -> tuple[Rule, ...]:
    """Return rules that drop, hold and double data at random, and drop acknowledgements."""
    return (
        harm("drop", share=share, **more),
        harm("hold", share=share, seconds=0.012),
        harm("copy", share=share / 3, seconds=0.001),
        harm("drop", share=0.1, way="back", only="ack"),
    )


def storm_of_copies(tap: str, seconds: float) -> tuple[Rule, ...]:
    """Return rules that double and hold segments as they are sent first, and drop others."""
    return (
        harm("drop", share=0.02, tap=tap),
        harm("hold", *range(20, 250, 15), seconds=0.025, tap=tap),
        harm("copy", *range(5, 250, 10), seconds=seconds, tap=tap),
        harm("drop", share=0.05, way="back", only="ack"),
    )


BURSTS: Steps = [NO_DELAY, ["open"], *trickle(20, 4 * MSS, 0.35), *END]
MESSAGES: Steps = [NO_DELAY, ["open"], *trickle(40, 300, 0.12), *END]

STORMS = (
    Case("storm-cubic", "all at once: 3 % dropped, held, some doubled", bulk(300), harm=storm(0.03), seed=11),
    Case("storm-bbr", "the same to BBR, dropped before the middle", bulk(300, "bbr"),
         harm=storm(0.03, tap="before"), seed=12),
    Case("storm-bbr-paced", "an outage of four round trips and two in five acknowledgements lost, paced BBR",
         bulk(150, "bbr", [["pace", 400_000]]),
         harm=(harm("drop", share=0.017), harm("drop", share=0.4, way="back", only="ack"),
               harm("drop", (112, 120), times=4)), rtt=0.033, rate=300_000, seed=58),
    Case("storm-reno-no-sack", "the same to Reno without SACK", bulk(200, "reno"), harm=storm(0.02),
         sysctl=(NO_SACK,), seed=13),
    Case("storm-no-timestamps", "the same without timestamps", bulk(200), harm=storm(0.03),
         sysctl=(NO_TIMESTAMPS,), seed=14),
    Case("storm-ipv6", "the same by IPv6, without IP identifications", bulk(200), harm=storm(0.03),
         ipv6=True, seed=15),
    Case("storm-ipv6-copies", "by IPv6, copies up to half a round trip behind, before the middle", bulk(250),
         harm=storm_of_copies("before", 0.018), ipv6=True, seed=26),
    Case("storm-ipv6-no-sack", "the same behind the middle, to Reno without SACK", bulk(250, "reno"),
         harm=storm_of_copies("after", 0.01), ipv6=True, sysctl=(NO_SACK,), seed=27),
    Case("storm-before", "reordered, doubled and dropped before the middle, and dropped after it", bulk(250),
         harm=(harm("hold", share=0.05, seconds=0.01, tap="before"),
               harm("copy", share=0.05, seconds=0.002, tap="before"),
               harm("drop", share=0.02, tap="before"), harm("drop", share=0.02)), seed=23),
    Case("reorder-before-random", "one in ten segments late before the middle, nothing lost", bulk(250),
         harm=(harm("hold", share=0.05, seconds=0.003, tap="before"),
               harm("hold", share=0.05, seconds=0.009, tap="before")), seed=24),
    Case("reorder-before-no-sack", "the same without SACK and timestamps", bulk(250, "reno"),
         harm=(harm("hold", share=0.05, seconds=0.003, tap="before"),
               harm("hold", share=0.05, seconds=0.009, tap="before")),
         sysctl=(NO_SACK, NO_TIMESTAMPS), seed=25),
    Case("bursts-random", "bursts of four segments, 15 % lost", BURSTS,
         harm=(harm("drop", share=0.15),), seed=16),
    Case("bursts-random-no-sack", "bursts of four segments, 15 % lost, no SACK", BURSTS,
         harm=(harm("drop", share=0.15),), sysctl=(NO_SACK,), seed=17),
    Case("bursts-ack-loss", "bursts of four segments, 60 % of the acknowledgements lost", BURSTS,
         harm=(harm("drop", share=0.6, way="back", only="ack"),), seed=18),
    Case("messages-random", "small messages, 15 % lost", MESSAGES,
         harm=(harm("drop", share=0.15),), seed=19),
    Case("messages-ack-loss", "small messages, half of the acknowledgements lost", MESSAGES,
         harm=(harm("drop", share=0.5, way="back", only="ack"),), seed=20),
    Case("long-path", "a round trip of 300 ms, 3 % lost", bulk(150),
         harm=(harm("drop", share=0.03),), rtt=0.3, seed=21),
    Case("short-path", "a round trip of 2 ms, 3 % lost", bulk(300),
         harm=(harm("drop", share=0.03),), rtt=0.002, seed=22),
)  # fmt: skip

CAPTURES = (
    Case("offload", "segmentation offload: the capture holds super-segments", bulk(700), offload=True,
         routed="tbf rate 10mbit burst 70kb limit 140kb"),
    Case("any-interface", "captured on all interfaces: each packet twice in the middle", bulk(200),
         routed="tbf rate 5mbit burst 4kb limit 20kb", capture_any=True),
    Case("routed", "a token bucket's queue overflows", bulk(300),
         routed="tbf rate 5mbit burst 4kb limit 20kb"),
    Case("routed-paced", "the same, paced so slowly that each repair waits for most of a timeout",
         bulk(150, "reno", [["pace", 125_000]]), routed="tbf rate 5mbit burst 4kb limit 10kb",
         router_loss=0.03),
)  # fmt: skip

CASES = (*LOSSES, *TIMEOUTS, *SPURIOUS, *NO_LOSS, *ENDS, *STORMS, *CAPTURES)
