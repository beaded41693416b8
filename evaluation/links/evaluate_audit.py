"""The audit against planted faults.

`python evaluation/links/evaluate_audit.py [--write] [--first N] [--links N]`

Every third link is drawn without a fault, the others with one or two of random kind, place, time and size;
many have something that is always so, such as a far client or nights without anybody.
The audit judges them by its usual objectives; printed is which faults it found, and whether it named their
place; `--write` puts the table into `docs/validation.md`. Limits were chosen on links of seeds below 200.
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from faults import ALL_KINDS, LASTING, TRAITS
from link import draw_link
from link_files import BEGIN, write_link
from measured_tables import options, show, table_text

from tfrctrace import cli

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from faults import Fault

FIRST: Final = 9401
LINKS: Final = 30
HOSTS: Final = 8
CONNECTIONS_PER_S: Final = 0.1
SLACK_S: Final = 1_800
"""Width of the widest intervals: an incident may begin and end so much beside its fault."""
NEAR_S: Final = 600
"""Width of most intervals."""
MINUTE_S: Final = 60
NONE: Final = "none"
DRAWN: Final = (*ALL_KINDS, "bufferbloat")
"""Kinds, a full queue twice as often as others."""
SMALLEST: Final = 0.3
"""Least size of a fault, as a share of what is drawn."""
COUNTED: Final = (
    *("planted", "below", "found", "false", "place", "hosts", "unknown", "times", "minute", "covered"),
)
NOTHING: Final = {
    "kind": NONE,
    **dict.fromkeys(COUNTED, 0),
}
HEADS: Final = (
    *(
        "fault",
        "planted",
        "below limits",
        "found",
        "missed",
        "false",
        "place right",
        "hosts right",
        "unknown",
        "begin and end within 10 min",
        "within 1 min",
        "within what is said",
    ),
)


_PLACES: Final = {
    "dead capture": "capture",
    "capture drops": "capture",
    "dead link": "link",
    "slow server": "server",
    "unserved": "server",
    "refused": "server",
    "names fail": "server",
    "slow names": "server",
    **dict.fromkeys(("outage", "dead server", "names silent", "lost pings"), "server side"),
}
"""Where an audit should find a fault, of the kinds whose sizes do not show it."""
PINGED: Final = "198.51.100.10"


def place_of(fault: Fault) -> tuple[str, list[str]]:
    """Return where an audit should find a fault: place, and hosts that it should name."""
    is_far = {"far_rtt_s", "loss_before", "burst_loss"} & fault.size.keys()
    place = _PLACES.get(fault.kind, "server side" if is_far else "client side")
    return place, [PINGED] if fault.kind == "lost pings" else sorted(fault.hosts or fault.servers)


def is_below_limits(fault: Fault) -> bool:
    """Return whether no usual objective forbids what a fault adds: 100 ms, 1 % of segments, 10 % of pings.

    Of single hosts, whose delay may be 250 ms, it is 200 ms.
    """
    least_s = 0.2 if fault.hosts or fault.servers else 0.1
    least = {"near_rtt_s": least_s, "far_rtt_s": least_s, "loss_before": 0.01, "loss_behind": 0.01}
    least |= {"ping_loss": 0.1}
    sizes = {name: value for name, value in fault.size.items() if name in least}
    return bool(sizes) and all(value < least[name] for name, value in sizes.items())


def scaled(fault: Fault, by: float) -> Fault:
    """Return a fault of a share of its size."""
    return replace(
        fault, size={name: value if value == 1 else by * value for name, value in fault.size.items()}
    )


def evaluate_link(seed: int, days: float, drawn: Sequence[str]) -> list[dict[str, Any]]:
    """Draw a link, audit it, and return what became of each fault, or of the link without one."""
    random = Random(seed)
    kinds = [] if seed % 3 == 0 else random.sample(drawn, min(random.choice((1, 1, 2)), len(drawn)))
    traits = tuple(random.sample(TRAITS, random.choice((0, 1, 1, 2)) if kinds else random.choice((1, 1, 2))))
    if "nights" in traits and kinds:
        # a fault at night has nobody who notices it
        traits = tuple(one for one in traits if one != "nights")
    link = draw_link(
        seed,
        list(kinds),
        days=days,
        hosts=HOSTS,
        connections_per_s=CONNECTIONS_PER_S,
        traits=traits,
    )
    link.faults = [scaled(fault, random.uniform(SMALLEST, 1)) for fault in link.faults]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_link(link, folder / "captures")
        options = ("--quiet", "--jobs", "1", "-o", str(folder / "audit"))
        status = cli.run(["audit", str(folder / "captures"), *options])
        assert status == 0, status
        incidents = json.loads((folder / "audit" / "audit.json").read_text())["incidents"]
    false = sum(not any(overlap_s(one, fault, SLACK_S) for fault in link.faults) for one in incidents)
    found = [found_of(fault, incidents) for fault in link.faults] or [dict(NOTHING)]
    found[0]["false"] = false
    return [{"seed": seed, "traits": traits, **one} for one in found]


def found_of(
    fault: Fault, incidents: Sequence[Mapping[str, Any]], link_begin_s: float = BEGIN.timestamp()
) -> dict[str, Any]:
    """Return what the audit says of a fault: by the incident that overlaps it longest."""
    into = {**NOTHING, "kind": fault.kind, "planted": 1, "truth": fault.facts()}
    into["below"] = int(is_below_limits(fault))
    times = {one["number"]: overlap_s(one, fault, link_begin_s=link_begin_s) for one in incidents}
    own = max(incidents, key=lambda one: times[one["number"]], default=None)
    if own is not None and times[own["number"]]:
        begin_s, end_s = (own[name] / 1e9 - link_begin_s for name in ("begin_ns", "end_ns"))
        off_s = [begin_s - fault.since_s, end_s - fault.until_s]
        into["off_s"] = off_s
        into["times"] = int(max(map(abs, off_s)) <= NEAR_S)
        into["minute"] = int(max(map(abs, off_s)) <= MINUTE_S)
        edges = [("began", fault.since_s)]
        if fault.kind not in LASTING:
            edges.append(("ended", fault.until_s))
        into["covered"] = int(
            all(
                own[f"{name}_from_ns"] / 1e9 <= link_begin_s + true_s <= own[f"{name}_until_ns"] / 1e9
                for name, true_s in edges
            )
        )
        place, hosts = place_of(fault)
        into["found"] = 1
        into["place"] = int(own["place"] == place)
        into["hosts"] = int(sorted(own["hosts"]) == hosts)
        into["unknown"] = int(own["place"] == "unknown")
        into["said"] = [own[key] for key in ("place", "scope", "hosts", "under_load", "confidence")]
    return into


def overlap_s(
    incident: Mapping[str, Any],
    fault: Fault,
    slack_s: float = 0.0,
    link_begin_s: float = BEGIN.timestamp(),
) -> float:
    """Return how long an incident and a fault are at one time."""
    begin_s, end_s = (incident[name] / 1e9 - link_begin_s for name in ("begin_ns", "end_ns"))
    shared_s: float = min(end_s, fault.until_s + slack_s) - max(begin_s, fault.since_s - slack_s)
    return max(shared_s, 0.0)


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the page."""
    rows = []
    for name in (*ALL_KINDS, NONE, *TRAITS, "all"):
        own = [
            one
            for one in found
            if name in (one["kind"], "all") or (name in one["traits"] and one["kind"] == NONE)
        ]
        sums = {key: sum(one[key] for one in own) for key in COUNTED}
        label = f"{'quiet: ' * (name in TRAITS)}{name} ({len({one['seed'] for one in own})} links)"
        missed = sums["planted"] - sums["found"]
        rows.append((label, *(sums[key] for key in COUNTED[:3]), missed, *(sums[key] for key in COUNTED[3:])))
    return table_text(HEADS, rows)


def main() -> None:
    """Print the table, or write it into the page."""
    given = options(__doc__, FIRST, LINKS, ALL_KINDS)
    seeds = range(given.first, given.first + given.links)
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        kinds = given.fault or DRAWN
        for one in pool.map(evaluate_link, seeds, [given.days] * len(seeds), [kinds] * len(seeds)):
            sys.stderr.writelines(f"{json.dumps(fault)}\n" for fault in one)
            found += one
    show(table(found), "audit", write=given.write)


if __name__ == "__main__":
    main()
