"""A place of the study as a scenario of the farm of kernels."""

from __future__ import annotations

import csv
import gzip
import random
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

FARM: Final = Path(__file__).resolve().parents[1] / "kernel_farm"
sys.path.insert(0, str(FARM))

from boot import Kernel, add_options, find_kernel, make_all  # noqa: E402
from scenario import CONTROLLERS, FRAME_BYTES, Application, Scenario, Sender, draw_networks  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.study.criteria import FlowOfPlace, Judging, Place

__all__ = ["CONTROLLERS", "add_options", "find_kernel", "make_runs"]

VARIATION: Final = 0.03
"""By which part round-trip times, and by how many seconds starts, differ between seeds."""
LONGEST_PAUSE_S: Final = 0.4
"""Of the log of a flow, which has a line every 20 ms: a kernel that got no processor for longer was not
under way as it shows."""


def make_runs(
    asked: Mapping[Path, tuple[Place, str, int]],
    judging: Judging,
    parameters: Sequence[str],
    jobs: int,
    kernel: Kernel,
) -> int:
    """Make the run of each folder, of a place, a controller and a seed; return how many failed."""
    scenarios = {
        folder: scenario_of(place, controller, judging.ports, seed)
        for folder, (place, controller, seed) in asked.items()
    }
    failed = make_all(scenarios, kernel, parameters, jobs)
    return failed + sum(map(set_aside, asked))


def set_aside(folder: Path) -> bool:
    """Take a run out of the study, with the reason, if its kernel had to wait for a processor."""
    capture, log = folder / "sender.pcap.gz", folder / "flow.tcp_info.csv.gz"
    if not capture.exists() or not log.exists():
        return False
    with gzip.open(log, "rt") as lines:
        times_s = [int(row["time_ns"]) / 1e9 for row in csv.DictReader(lines)]
    paused_s = max((after - before for before, after in pairwise(times_s)), default=0.0)
    if paused_s <= LONGEST_PAUSE_S:
        return False
    capture.rename(folder / "set-aside.pcap.gz")
    capture.with_name("sender.pcap.gz.failed").write_text(
        f"the kernel had no processor for {paused_s:.1f} s: remove the folder and make the run again\n"
    )
    return True


def scenario_of(place: Place, controller: str, ports: Mapping[str, Sequence[int]], seed: int) -> Scenario:
    """Return a scenario of the farm: the place with a controller as the newcomer, a bit different by seed."""
    dice = random.Random(f"{seed}/{place.name}")
    rtt_s = place.rtt_s * dice.uniform(1 - VARIATION, 1 + VARIATION)
    buffer_bytes = max(round(place.buffer * place.rate_bps * place.rtt_s / 8), 5 * FRAME_BYTES)
    senders = []
    for flow, port in zip(place.flows, place.ports_of_flows(ports), strict=True):
        start_s = flow.start_s + dice.uniform(0, VARIATION)
        senders.append(
            Sender(flow.controller or controller, round(start_s, 3), 20_000 + port, port, _application(flow))
        )
    first, *others = senders
    return Scenario(
        seed=seed,
        number=0,
        limit="shared" if others else "bottleneck",
        duration_s=place.duration_s,
        rate_bps=place.rate_bps,
        delays_s=(round(rtt_s / 8, 6), round(rtt_s * 3 / 8, 6), round(rtt_s * 3 / 8, 6), round(rtt_s / 8, 6)),
        queue=place.queue,
        buffer_bytes=buffer_bytes,
        ecn=place.ecn,
        loss=place.loss,
        reordering=place.reordering,
        policer=None,
        reverse_rate_bps=None,
        change=_change(place, rtt_s),
        offload=False,
        middle=None,
        networks=tuple(draw_networks(dice, 7)),
        sender=first,
        competitors=tuple(others),
        competitors_delay_s=0.0,
        backwards=None,
        competitors_from="a",
        outage=None if place.outage is None else (place.outage[0], sum(place.outage)),
        rates=place.rates,
        far_ports=tuple(place.far_ports(ports)),
        clears_marks=place.clears_marks,
        tunnel=place.tunnel,
    )


def _application(flow: FlowOfPlace) -> Application:
    if flow.every_s is not None:
        return Application("paced", flow.send, flow.every_s)
    return Application(total=flow.total)


def _change(place: Place, rtt_s: float) -> tuple[float, float] | None:
    """Return when the path changes, and its delay before the bottleneck from then on."""
    if place.change is None:
        return None
    at_s, changed_s = place.change
    return at_s, round(max(rtt_s / 8 + changed_s - place.rtt_s, 0.0005), 6)
