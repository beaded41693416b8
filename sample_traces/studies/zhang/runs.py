"""L. Zhang, P. Sénac, E. Lochin, M. Diaz: TFRC in a crowded cell of 802.11b, and MTFRC in it."""

from __future__ import annotations

from itertools import product
from typing import Any

from simulation import Run, bounded, flow, spread_starts

PAYLOAD_BYTES = 1024
FULL_VALUES = {
    "warmup": "10s",
    "stations_warmup": "5s",
    "change": "65s",
    "times": "from 15 s to 200 s, a change at 80 s",
    "unclear": "even at the paper's scale",
}
"""After the first packet, at 15 s: the paper averages from 25 s, and two stations come nearer at 80 s."""
TIMES_S = {"full": (15.0, 80.0, 200.0), "small": (1.0, 6.0, 11.0)}
"""When traffic begins, when two stations come nearer, and the end."""

CELL = {"basic_rate": "11Mb", "station_buffer": 32000, "access_buffer": 20000}
"""The paper's buffers, and acknowledgements at 11 Mbit/s, as `tfrctrace capacity --preset paper` has them."""

COUNTS = (4, 6, 8, 10, 12, 16, 20, 24, 30)
MIXES = {"all11": "11", "one55": "5.5", "one2": "2", "one1": "1"}
"""Figure 2: the rate of one of the stations; all others have 11 Mbit/s."""
LOADS_KBPS = (800, 1000, 1200, 1300, 1400, 1500, 1600, 2000, 2400)

X_T_KBPS = {"far": 1080.3, "near": 1405.1}
"""X_t of two stations at 11 and two at 5.5 Mbit/s, then of four at 11, by `tfrctrace capacity`."""
X_FAIR_KBPS = {"scenario2": 552.3, 1: 3015.2, 2: 1494.9, 3: 979.9}
"""X_fair of scenario 2, and of so many uploads and as many downloads at 11 Mbit/s; both count payload."""


def runs(*, small: bool) -> list[Run]:
    """List figures 1, 2 and 3, both scenarios, and uploads against as many downloads."""
    repetitions = range(1, 3 if small else 11)
    listed: list[Run] = []
    for run in repetitions:
        listed += _crowds(run, small=small) + _loads(run, small=small) + _scenarios(run, small=small)
    return listed


def _cell(
    name: str, rates: list[str], flows: list[dict[str, Any]], run: int, end_s: float, **more: Any
) -> Run:
    """Return a run of a cell whose access point and stations have these rates."""
    options = (
        CELL | {"stations": len(rates) - 1, "rates": " ".join(rates), "seed": run, "duration": end_s} | more
    )
    return Run(name, "stations", [{"stop": end_s - 0.5} | one for one in flows], options)


def _load(count: int, kbps: int, first_s: float, run: int) -> list[dict[str, Any]]:
    flows = [flow("cbr", i + 1, i, "up", size=PAYLOAD_BYTES, rate=f"{kbps}kb") for i in range(count)]
    return spread_starts(flows, first_s, run)


def _crowds(run: int, *, small: bool) -> list[Run]:
    """Let 4 to 30 stations send more than there is room for."""
    first_s, _, _ = TIMES_S["small" if small else "full"]
    end_s = first_s + (2.2 if small else 20.0)
    return [
        _cell(
            f"stations-{count}-{mix}-{run}",
            ["11", slow, *["11"] * (count - 1)],
            _load(count, 8000 // count, first_s, run),
            run,
            end_s,
        )
        for count, (mix, slow) in product((4, 10, 30) if small else COUNTS, MIXES.items())
    ]


def _loads(run: int, *, small: bool) -> list[Run]:
    """Send more and more from four stations: 802.11b as in the model, 802.11a as in the text of figure 1."""
    first_s, _, _ = TIMES_S["small" if small else "full"]
    end_s = first_s + (4.0 if small else 20.0)
    radios: dict[str, tuple[str, dict[str, Any]]] = {"b": ("11", {})}
    if not small:
        radios["a"] = ("6", {"phy": "a", "basic_rate": "6Mb"})
    return [
        _cell(f"load-{kbps}-{kind}-{run}", [rate] * 5, _load(4, kbps, first_s, run), run, end_s, **more)
        for (kind, (rate, more)), kbps in product(radios.items(), (1000, 1400, 2000) if small else LOADS_KBPS)
    ]


def _scenarios(run: int, *, small: bool) -> list[Run]:
    """Run TFRC and MTFRC: figure 3, scenario 1, scenario 2, and uploads against as many downloads."""
    first_s, change_s, end_s = TIMES_S["small" if small else "full"]
    # the lines of the MAC have the stations and their rates, for a replay of MTFRC
    traced = {"mac": "ON"} if small and run == 1 else {}

    def uploads(count: int) -> list[dict[str, Any]]:
        flows = [flow("tfrc", i + 1, i, "up", size=PAYLOAD_BYTES) for i in range(count)]
        return spread_starts(flows, first_s, run)

    def downloads(first: int, count: int) -> list[dict[str, Any]]:
        stations = range(first, first + count)
        flows = [flow("tfrc", i + 1, i, "down", size=PAYLOAD_BYTES, port=40) for i in stations]
        return spread_starts(flows, first_s, 100 + run)

    def both(
        scenario: str, rates: list[str], up: int, down: int, bounds_kbps: dict[float, float], **more: Any
    ) -> list[Run]:
        """Return a run with uploads of TFRC, and one with those of MTFRC."""
        tfrc, others = uploads(up), downloads(up, down)
        name = f"{scenario}-{up + down if scenario != 'updown' else up}"
        return [
            _cell(f"{name}-tfrc-{run}", rates, tfrc + others, run, end_s, **traced, **more),
            _cell(f"{name}-mtfrc-{run}", rates, bounded(tfrc, bounds_kbps) + others, run, end_s, **more),
        ]

    near = ["11"] * 5
    first = {"change_at": change_s, "changed_rates": " ".join(near)}
    bounds = {0.0: X_T_KBPS["far"], change_s: X_T_KBPS["near"]}
    listed = [
        _cell(f"slow-2-tfrc-{run}", ["11", "5.5", "5.5"], uploads(2), run, end_s),
        *both("scenario1", ["11", "11", "11", "5.5", "5.5"], 4, 0, bounds, **first),
        *both("scenario2", ["5.5", "11", "2", "5.5", "5.5", "5.5"], 2, 3, {0.0: X_FAIR_KBPS["scenario2"]}),
    ]
    if not small or run == 1:
        for count in (3,) if small else (1, 2, 3):
            listed += both("updown", ["11"] * (2 * count + 1), count, count, {0.0: X_FAIR_KBPS[count]})
    return listed
