"""The audit against planted faults: `python tests/links/evaluate_audit.py [--write] [--first N] [--links N]`.

Every third link is drawn without a fault, the others with one or two of random kind, place, time and size.
The audit judges them by its usual objectives; printed is which faults it found, and whether it named their
place; `--write` puts the table into `docs/validation.md`. Limits were chosen on links of seeds below 200.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from faults import KINDS
from link import draw_link
from link_files import BEGIN, write_link

from tfrctrace import cli

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from faults import Fault

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
FIRST: Final = 5001
LINKS: Final = 30
HOSTS: Final = 8
CONNECTIONS_PER_S: Final = 0.1
SLACK_S: Final = 1_800
"""Width of the widest intervals: an incident may begin and end so much beside its fault."""
NONE: Final = "none"
SMALLEST: Final = 0.3
"""Least size of a fault, as a share of what is drawn."""
NOTHING: Final = {
    "kind": NONE,
    **dict.fromkeys(("planted", "found", "false", "place", "hosts", "unknown"), 0),
}
HEADS: Final = ("fault", "planted", "found", "missed", "false", "place right", "hosts right", "unknown")


def place_of(fault: Fault) -> tuple[str, list[str], bool]:
    """Return where an audit should find a fault: place, hosts that it should name, and whether under load."""
    match fault.kind:
        case "dead capture":
            return "capture", [], False
        case "slow server":
            return "server", list(fault.servers), False
        case "outage":
            return "server side", [], False
        case "loss":
            is_before = "loss_before" in fault.size
            return (
                ("server side" if is_before else "client side"),
                sorted(fault.hosts or fault.servers),
                False,
            )
        case "bufferbloat":
            return ("client side" if "near_rtt_s" in fault.size else "server side"), [], True
        case _:
            return "client side", list(fault.hosts), False


def scaled(fault: Fault, by: float) -> Fault:
    """Return a fault of a share of its size."""
    return replace(
        fault, size={name: value if value == 1 else by * value for name, value in fault.size.items()}
    )


def evaluate_link(seed: int, days: float, kinds: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Draw a link, audit it, and return what became of each fault, or of the link without one."""
    random = Random(seed)
    if kinds is None:
        kinds = [] if seed % 3 == 0 else random.sample(KINDS, random.choice((1, 1, 2)))
    link = draw_link(seed, list(kinds), days=days, hosts=HOSTS, connections_per_s=CONNECTIONS_PER_S)
    link.faults = [scaled(fault, random.uniform(SMALLEST, 1)) for fault in link.faults]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_link(link, folder / "captures")
        options = ("--quiet", "--jobs", "1", "-o", str(folder / "audit"))
        status = cli.run(["audit", str(folder / "captures"), *options])
        assert status == 0, status
        incidents = json.loads((folder / "audit" / "audit.json").read_text())["incidents"]
    false = sum(not any(overlap_s(one, fault, SLACK_S) for fault in link.faults) for one in incidents)
    found = [_found(fault, incidents) for fault in link.faults] or [dict(NOTHING)]
    found[0]["false"] = false
    return [{"seed": seed, **one} for one in found]


def _found(fault: Fault, incidents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the audit says of a fault: by the incident that overlaps it longest."""
    into = {**NOTHING, "kind": fault.kind, "planted": 1, "truth": fault.facts()}
    own = max(incidents, key=lambda one: overlap_s(one, fault), default=None)
    if own is not None and overlap_s(own, fault):
        place, hosts, _ = place_of(fault)
        into["found"] = 1
        into["place"] = int(own["place"] == place)
        into["hosts"] = int(sorted(own["hosts"]) == hosts)
        into["unknown"] = int(own["place"] == "unknown")
        into["said"] = [own[key] for key in ("place", "scope", "hosts", "under_load", "confidence")]
    return into


def overlap_s(incident: Mapping[str, Any], fault: Fault, slack_s: float = 0.0) -> float:
    """Return how long an incident and a fault are at one time."""
    begin_s, end_s = (incident[name] / 1e9 - BEGIN.timestamp() for name in ("begin_ns", "end_ns"))
    shared_s: float = min(end_s, fault.until_s + slack_s) - max(begin_s, fault.since_s - slack_s)
    return max(shared_s, 0.0)


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the page."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    for name in (*KINDS, NONE, "all"):
        own = [one for one in found if name in (one["kind"], "all")]
        planted, right, false, place, hosts, unknown = (
            sum(one[key] for one in own) for key in ("planted", "found", "false", "place", "hosts", "unknown")
        )
        label = f"{name} ({len({one['seed'] for one in own})} links)"
        cells = (label, planted, right, planted - right, false, place, hosts, unknown)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--links", type=int, default=LINKS)
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.links)
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for one in pool.map(evaluate_link, seeds, [given.days] * len(seeds)):
            sys.stderr.writelines(f"{json.dumps(fault)}\n" for fault in one)
            found += one
    text = table(found)
    if not given.write:
        sys.stdout.write(text)
        return
    begin, end = "<!-- measured: audit -->\n", "<!-- end of audit -->"
    page = PAGE.read_text()
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page))


if __name__ == "__main__":
    main()
