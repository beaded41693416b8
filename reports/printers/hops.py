"""The hops between captures in a terminal: a line for each, over all flows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfrctrace.base.errors import printable
from tfrctrace.metrics.sets.hop_totals import HopRow, hop_totals
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.units import MISSING, format_count, format_ms, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def hop_lines(rows: Iterable[HopRow]) -> Iterator[str]:
    """Give the lines of a table of `hops`, with names of captures below their common folder."""
    totals = hop_totals(rows)
    folder = _common_folder({name for total in totals for name in (total.from_capture, total.to_capture)})
    lines = [("hop from", "to", "packets", "lost", "share", "in flight", "missed", "delay mean / max")]
    for one in totals:
        share = MISSING if one.loss_share is None else format_share(one.loss_share)
        delays = (one.delay_mean_ms, one.delay_max_ms)
        mean, largest = (MISSING if delay is None else format_ms(delay) for delay in delays)
        lines.append(
            (
                printable(one.from_capture.removeprefix(folder)),
                printable(one.to_capture.removeprefix(folder)),
                format_count(one.packets),
                format_count(one.lost),
                share,
                format_count(one.in_flight),
                format_count(one.missed),
                f"{mean} / {largest}",
            )
        )
    yield from aligned(lines, left={0, 1})


def _common_folder(names: Iterable[str]) -> str:
    """Return the folder that all names begin with; empty without one."""
    folders = {os.path.dirname(name) for name in names}
    return os.path.join(folders.pop(), "") if len(folders) == 1 and folders != {""} else ""
