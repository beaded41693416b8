"""Losses of several flows at once, against the drops that ns-2 wrote."""

from __future__ import annotations

import lzma
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.sets.synchronisation import loss_synchronisation
from tfrctrace.metrics.windows import Windows

TRACE = Path(__file__).parents[2] / "data" / "ns2" / "wired-mix.tr.xz"
TENTH_NS = 100_000_000


def drops_of_ns2():
    """Return the flows that lose a packet, by the tenth of a second, of the lines of drops."""
    found = {}
    with lzma.open(TRACE, "rt") as lines:
        for line in lines:
            event, time_s, *rest = line.split()
            if event == "d":
                found.setdefault(int(float(time_s) * 10), set()).add(int(rest[5]))
    return found


def test_flows_lose_together_as_ns_2_drops_their_packets():
    drops = drops_of_ns2()
    flows = sorted(set().union(*drops.values()))
    trace = tfrctrace.open(TRACE, bin_width="100ms")
    windows = Windows(0, TENTH_NS, 1000)
    found, count = loss_synchronisation([trace.bins], windows, len(flows))
    assert found == pytest.approx(sum(map(len, drops.values())) / len(drops) / len(flows), rel=0.05)
    # what is dropped at the end of a tenth of a second may have been sent in the one before
    assert count == pytest.approx(len(drops), abs=3)


@pytest.mark.parametrize(
    ("lost", "retransmitted", "expected"),
    [
        # of two flows both lose in the first window, one in the second and none in the third
        (([1, 0, 0], [2, 3, 0]), ([0] * 3, [0] * 3), (0.75, 2)),
        # a capture at one end shows what was sent again
        (([None] * 3, [None] * 3), ([1, 0, 0], [1, 0, 0]), (1.0, 1)),
        # what was lost counts, not that it was sent again later
        (([1, 0, 0], [1, 0, 0]), ([0, 1, 0], [0, 0, 1]), (1.0, 1)),
        (([0] * 3, [0] * 3), ([0] * 3, [0] * 3), (None, 0)),
    ],
)
def test_losses_are_those_of_the_trace_or_what_was_sent_again(lost, retransmitted, expected):
    bins = pl.DataFrame(
        {
            "flow": [1] * 3 + [2] * 3,
            "time_ns": [0, TENTH_NS, 2 * TENTH_NS] * 2,
            "lost_packets": pl.Series([*lost[0], *lost[1]], dtype=pl.UInt64),
            "retransmitted_packets": pl.Series([*retransmitted[0], *retransmitted[1]], dtype=pl.UInt64),
        }
    )
    assert loss_synchronisation([bins], Windows(0, TENTH_NS, 3), 2) == expected
