"""A flow of UDP as ns-2 writes it down: packets that are sent and received at given times."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Sequence

NS_PER_S = 1_000_000_000


def simulated_row(packets: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    """Return the row of the table of flows for packets of (sent in ns, received in ns, bytes)."""
    lines = []
    for number, (sent_ns, received_ns, size) in enumerate(packets):
        packet = f"0 1 cbr {size} ------- 1 0.0 1.0 {number} {number}"
        lines += [(sent_ns, number, "+", packet), (sent_ns, number, "-", packet)]
        lines.append((received_ns, number, "r", packet))
    text = "".join(
        f"{event} {at // NS_PER_S}.{at % NS_PER_S:09d} {packet}\n"
        for at, _, event, packet in sorted(lines, key=lambda line: (line[0], line[2] == "r", line[1]))
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flow.tr"
        path.write_text(text)
        return tfrctrace.open(path).flows.filter(direction="fwd").row(0, named=True)
