"""L. De Cicco, S. Mascolo: TCP and TFRC over a wired path and over UMTS, in repeated tests."""

from __future__ import annotations

from typing import Any

from simulation import Run, flow, spread_starts

FULL_VALUES = {"warmup": "1ms", "length": "120 s", "unclear": "even at the paper's scale"}

SEGMENT_BYTES = 1460
WINDOW = 44
"""64 kB. The paper has neither, nor rates and delays but for the nominal 384 kbit/s of the downlink."""

PATHS: dict[str, dict[str, Any]] = {
    # Uppsala to Bari: 65 ms there and back
    "wired": {"bandwidth": "2Mb", "delay": "30ms", "queue": 30},
    # a rate that changes with the signal; of the uplinks that were usual that which fits figure 11
    "umts": {"bandwidth": "384kb", "back_bandwidth": "32kb", "delay": "90ms", "queue": 40, "varying": 0.6},
}
CHOICES = {
    "wired": ("base", "half_queue", "double_queue", "loss"),
    "umts": ("base", "half_queue", "double_queue", "loss", "uplink64"),
}
"""What the paper leaves open: queues, loss beside theirs, the uplink. Runs of single flows vary each."""
QUEUE_SHARES = {"half_queue": 0.5, "double_queue": 2}
LOSS = 0.01
"""Of the packets of the tested flow, at random."""
CROSS_KBPS = {"wired": 600, "umts": 40}
"""Bursts of other traffic, silent half of the time; those of one test are the same for TCP and TFRC."""
LEFT_KBPS = 160
"""The 20 kbyte/s that a UDP flow leaves of the wired path."""

KINDS = {
    "tcp": ["newreno"],
    "tfrc": ["tfrc"],
    "both": ["newreno", "tfrc"],
    "three_tcp": ["newreno"] * 3,
    "three_tfrc": ["tfrc"] * 3,
    "tcp_udp": ["newreno"],
    "tfrc_udp": ["tfrc"],
}
SCENARIOS = {
    "wired": {
        "quiet": ("tcp", "tfrc", "tcp_udp", "tfrc_udp", "three_tcp", "three_tfrc"),
        "reverse": ("tcp", "tfrc"),
    },
    "umts": {"quiet": ("tcp", "tfrc", "both"), "reverse": ("tcp", "tfrc")},
}


def runs(*, small: bool) -> list[Run]:
    """List the tests of both paths, each of two minutes."""
    length_s = 14.0 if small else 120.0
    tests = range(1, 4 if small else 13)
    return [
        Run(
            f"{path}-{mix}-{other_way}-{choice}-{test}",
            "wired",
            _flows(path, mix, other_way, test, length_s=length_s, loss=LOSS if choice == "loss" else 0),
            _path(path, choice) | {"seed": test, "duration": length_s + 2},
        )
        for path, scenarios in SCENARIOS.items()
        for other_way, mixes in scenarios.items()
        for mix in mixes
        for choice in (CHOICES[path] if mix in {"tcp", "tfrc"} and not small else ("base",))
        for test in tests
    ]


def _path(path: str, choice: str) -> dict[str, Any]:
    """Return a path with another queue or uplink, if that is what was chosen."""
    options = dict(PATHS[path])
    options["queue"] = round(options["queue"] * QUEUE_SHARES.get(choice, 1))
    if choice == "uplink64":
        options["back_bandwidth"] = "64kb"
    return options


def _flows(
    path: str, mix: str, other_way: str, test: int, *, length_s: float, loss: float
) -> list[dict[str, Any]]:
    data: dict[str, Any] = {"size": SEGMENT_BYTES, "window": WINDOW, "stop": length_s + 1}
    lossy = {"loss": loss} if loss else {}
    tested = [flow(kind, i + 1, i, "right") | data | lossy for i, kind in enumerate(KINDS[mix])]
    flows = spread_starts(tested, 0.0, test)
    if mix.endswith("_udp"):
        kbps = 2000 - CROSS_KBPS[path] // 2 - LEFT_KBPS
        flows.append(flow("cbr", 7, 7, "right", size=1000, rate=f"{kbps}kb", start=0.0, stop=length_s + 1))
    flows.append(
        flow("pareto", 8, 8, "right", size=500, rate=f"{CROSS_KBPS[path]}kb", start=0.1, stop=length_s + 1)
    )
    if other_way == "reverse":
        # over UMTS of the tested kind, on the wired path always TCP
        kind = KINDS[mix][0] if path == "umts" else "newreno"
        flows.append(flow(kind, 9, 9, "back", start=0.0) | data)
    return flows
