"""Captures that begin late, and whose records are out of order or jump in time, are replayed all the same."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from corpus_case import CorpusCase
from frames import PCAP_HEADER, RECORD_HEADER, records

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Record = tuple[float, bytes, bytes]


def shuffled(kept: list[Record], seed: int) -> list[Record]:
    """Return the records, each moved by a few places."""
    draw = random.Random(seed)
    return [
        record
        for _, record in sorted((place + draw.random() * 30, record) for place, record in enumerate(kept))
    ]


def rotated(kept: list[Record], _seed: int) -> list[Record]:
    """Return the records with the first third at the end: the clock goes back once."""
    third = len(kept) // 3
    return kept[third:] + kept[:third]


def years_apart(kept: list[Record], seed: int) -> list[Record]:
    """Return the records, of which one in fifty is stamped years off."""
    draw = random.Random(seed)
    changed = []
    for time, head, data in kept:
        if draw.random() < 0.02:
            seconds, *others = RECORD_HEADER.unpack(head)
            stamp = (seconds + draw.choice([-1, 1]) * 10**8) % 2**31
            changed.append((time, RECORD_HEADER.pack(stamp, *others), data))
        else:
            changed.append((time, head, data))
    return changed


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
@pytest.mark.parametrize("disorder", [shuffled, rotated, years_apart])
@pytest.mark.parametrize("case", ["storm-cubic", "outage", "storm-reno-no-sack", "reorder-very-far"])
def test_any_order_of_records_is_replayed(
    case: str, disorder: Callable[[list[Record], int], list[Record]], tmp_path: Path
) -> None:
    path = CorpusCase(case).unpack("snd", tmp_path)
    head, kept = path.read_bytes()[: PCAP_HEADER.size], list(records(path))
    for first in (0, 3, 17):
        changed = tmp_path / f"{first}.pcap"
        changed.write_bytes(head + b"".join(a + b for _, a, b in disorder(kept[first:], first)))
        trace = tfrctrace.open(changed)
        steps = trace.replay("tfrc", "bbr")
        assert not (steps["x_bps"] < 0).any()
        assert not (steps["p"] < 0).any()
        decided = trace.one_step("newreno", "cubic")["predicted_bytes"].drop_nulls()
        assert (decided >= 0).all()
