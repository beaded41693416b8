"""What the kernel and the program say of a run: for how long the flow was held back by what.

    python evaluation/kernel_farm/truth.py RUNS      print it for each run

The receiver is the kernel's own clock (`tcpi_rwnd_limited`, steps of 10 ms), and all of the time between two
samples that both show data up to the edge of the window: of a sender that paces (BBR), `tcp_write_xmit` asks
for the pace before it asks for the window, and stops the clock meanwhile. Where the samples are far apart and
data were sent between them, that is an upper bound. While losses are repaired, the network holds the flow
back. Else the application does while the program has no data for the socket and the kernel none that is not
sent, and the send buffer while the program has data, the kernel none that is not sent, and the window room.
The kernel's clock of the send buffer (`tcpi_sndbuf_limited`) is a lower bound: it starts where a transmission
finds the buffer full (`tcp_cwnd_validate`), but without segmentation offload the last segment that the buffer
takes has left before it is found full (`tcp_sendmsg_locked`). The rest of the flow's life is the network's:
the scenario says which part of it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario import Scenario, scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR_NS: Final = 30_000_000
"""Samples that are farther apart hide windows that open and close between them."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Stretches of a flow's life in seconds, by what held it back, and the kernel's counters."""

    life_s: float
    application_s: float
    receiver_s: float
    receiver_least_s: float
    """Lower bound of it."""
    send_buffer_s: float
    send_buffer_clock_s: float
    """The kernel's clock, a lower bound."""
    network_s: float
    network_bps: float
    """What the receiver acknowledged while the network held the flow back."""
    retransmitted: int
    """Segments, by `tcpi_total_retrans`."""
    delivered_ce: int
    max_cwnd: int
    """Segments."""
    min_rtt_ms: float

    @property
    def largest(self) -> str:
        """Name of what held the flow back longest."""
        held = {
            "application": self.application_s,
            "receiver": self.receiver_s,
            "send_buffer": self.send_buffer_s,
            "network": self.network_s,
        }
        return max(held, key=held.__getitem__)


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a log; numbers where they are some."""
    with gzip.open(path, "rt", newline="") as file:
        return [
            {name: int(value) if value.lstrip("-").isdigit() else value for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


def truth_of(samples: list[dict[str, Any]], states: list[dict[str, Any]]) -> Truth:
    """Return the sums of one flow by its samples of TCP_INFO and the states of its application."""
    first, last = samples[0], samples[-1]
    life_s = (last["time_ns"] - first["time_ns"]) / 1e9
    changes = [(row["time_ns"], row["state"]) for row in states]
    application_ns = send_buffer_ns = receiver_ns = unsure_ns = 0
    network_bytes = network_ns = 0
    for before, after in pairwise(samples):
        clock_ns = 1000 * (after["rwnd_limited_us"] - before["rwnd_limited_us"])
        if _is_at_edge(before) and _is_at_edge(after):
            at_edge_ns = after["time_ns"] - before["time_ns"]
            receiver_ns += at_edge_ns
            if at_edge_ns > NEAR_NS and before["bytes_sent"] < after["bytes_sent"]:
                unsure_ns += max(at_edge_ns - clock_ns, 0)
            continue
        receiver_ns += clock_ns
        if before["rwnd_limited_us"] < after["rwnd_limited_us"]:
            continue
        if before["notsent_bytes"]:
            network_bytes += after["bytes_acked"] - before["bytes_acked"]
            network_ns += after["time_ns"] - before["time_ns"]
            continue
        if before["lost"] and after["lost"]:
            continue
        idle_ns = _idle_ns(changes, before["time_ns"], after["time_ns"])
        application_ns += idle_ns
        if after["notsent_bytes"] == 0 and _has_room(before) and _has_room(after):
            send_buffer_ns += after["time_ns"] - before["time_ns"] - idle_ns
    application_s, send_buffer_s, receiver_s = application_ns / 1e9, send_buffer_ns / 1e9, receiver_ns / 1e9
    return Truth(
        life_s=life_s,
        application_s=application_s,
        receiver_s=receiver_s,
        receiver_least_s=receiver_s - unsure_ns / 1e9,
        send_buffer_s=send_buffer_s,
        send_buffer_clock_s=last["sndbuf_limited_us"] / 1e6,
        network_s=max(life_s - application_s - receiver_s - send_buffer_s, 0.0),
        network_bps=8e9 * network_bytes / network_ns if network_ns else 0.0,
        retransmitted=last["total_retrans"],
        delivered_ce=last["delivered_ce"],
        max_cwnd=max(sample["snd_cwnd"] for sample in samples),
        min_rtt_ms=last["min_rtt_us"] / 1e3,
    )


def _has_room(sample: dict[str, Any]) -> bool:
    """Return whether the congestion window would let another segment go (`tcp_packets_in_flight`)."""
    flight = sample["unacked"] - sample["sacked"] - sample["lost"] + sample["retrans"]
    return bool(flight < sample["snd_cwnd"])


def _is_at_edge(sample: dict[str, Any]) -> bool:
    """Return whether the receive window has no room for another segment (`tcp_snd_wnd_test`)."""
    return bool((sample["unacked"] + 1) * sample["snd_mss"] > sample["snd_wnd"])


def _idle_ns(changes: list[tuple[int, str]], begin_ns: int, end_ns: int) -> int:
    """Return for how much of a stretch the application had no data; before it first writes it has none."""
    idle, state, at_ns = 0, "idle", begin_ns
    for time_ns, following in changes:
        if time_ns >= end_ns:
            break
        if time_ns > at_ns:
            idle += (time_ns - at_ns) * (state == "idle")
            at_ns = time_ns
        state = following
    return idle + (end_ns - at_ns) * (state == "idle")


def read(folder: Path, name: str = "flow") -> tuple[Scenario, Truth]:
    """Return what a run was and what is true of one of its flows."""
    scenario = scenario_of(json.loads((folder / "scenario.json").read_text()))
    return scenario, truth_of(
        rows(folder / f"{name}.tcp_info.csv.gz"), rows(folder / f"{name}.application.csv.gz")
    )


def parser_of_runs(program: str | None) -> argparse.ArgumentParser:
    """Return the parser of a program with this documentation, whose arguments are folders of runs."""
    parser = argparse.ArgumentParser(
        description=program, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", metavar="RUNS", type=Path, nargs="+", help="folders of runs")
    return parser


def finished(runs: Iterable[Path]) -> list[Path]:
    """Return the folders of the runs that came to their end."""
    return sorted(done.parent for folder in runs for done in folder.glob("*/done"))


def main() -> None:
    """Print the truth of every run below a folder."""
    columns = ("life", "app.", "recv.", "buffer", "clock", "netw.", "retr.", "CE", "min RTT")
    print(f"{'run':44}" + "".join(f"{column:>9}" for column in columns))
    for folder in finished(parser_of_runs(__doc__).parse_args().runs):
        _, truth = read(folder)
        seconds = (
            truth.life_s,
            truth.application_s,
            truth.receiver_s,
            truth.send_buffer_s,
            truth.send_buffer_clock_s,
            truth.network_s,
        )
        numbers = "".join(f"{value:9.2f}" for value in seconds)
        counts = f"{truth.retransmitted:9}{truth.delivered_ce:9}{truth.min_rtt_ms:9.2f}"
        print(f"{folder.name:44}{numbers}{counts}")


if __name__ == "__main__":
    main()
