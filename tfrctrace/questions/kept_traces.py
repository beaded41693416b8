"""Traces that questions were asked of: read once, and kept while their files stay as they are."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import TfrctraceWarning, describe
from tfrctrace.opening import open as open_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from tfrctrace.api import Trace
    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.why import FlowCauses, UntoldFlow

_MOST_TRACES: Final = 8
_MOST_BYTES: Final = 2 * 1024**3
"""Traces, and bytes of their files, but for the last one: those not asked about for longest make room."""

_MOST_CAVEATS: Final = 2

_PACKETS: Final = (
    *("packet", "time_ns", "flow", "direction", "transport", "src", "src_port", "dst", "dst_port"),
    *("wire_bytes", "payload_bytes", "seq_rel", "ack_rel", "flags", "window_bytes", "kind", "ecn"),
)


@dataclass
class KeptTrace:
    """A trace and what was made of it; the table of packets is in a file."""

    trace: Trace
    version: tuple[int, int]
    """Time of its last change and size."""
    _packets_file: Path

    @property
    def bytes(self) -> int:
        """Size of its file."""
        return self.version[1]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The table of flows."""
        return self.trace.flows

    @cached_property
    def losses(self) -> pl.DataFrame:
        """Retransmissions and packets out of order, by time."""
        return self.trace.losses.sort("time_ns", maintain_order=True)

    @cached_property
    def why(self) -> Sequence[FlowCauses]:
        """Why each direction with data was no faster."""
        return self.trace.why()

    @cached_property
    def untold(self) -> Sequence[UntoldFlow]:
        """Flows of which nothing tells why."""
        return self.trace.untold()

    @cached_property
    def packets(self) -> pl.LazyFrame:
        """All packets, read from a file where they are needed."""
        import polars as pl

        from tfrctrace.parsers._native import empty_table
        from tfrctrace.reports.files.table_files import write_table

        batches = self.trace.packet_batches(_PACKETS)
        with self._packets_file.open("wb") as file:
            write_table(file, "parquet", batches, empty_table("packets").select(list(_PACKETS)))
        return pl.scan_parquet(self._packets_file)

    @cached_property
    def caveats(self) -> list[str] | None:
        """What was wrong with the capture."""
        return caveats(self.trace.warnings)

    def forget(self) -> None:
        """Remove the file of the packets."""
        self._packets_file.unlink(missing_ok=True)


def caveats(problems: Sequence[Problem]) -> list[str] | None:
    """Return the first problems in words, and the number of others."""
    words = [describe(problem).text for problem in problems if problem["severity"] != "note"]
    more = [f"and {len(words) - _MOST_CAVEATS} more"] if len(words) > _MOST_CAVEATS else []
    return [*words[:_MOST_CAVEATS], *more] or None


class KeptTraces:
    """The traces of files."""

    def __init__(self, folder: Path, key: bytes | None) -> None:
        """Keep tables that are too large for memory in `folder`; with a key addresses are replaced."""
        # answers have what a capture lacks; standard error has a reader only by chance
        warnings.simplefilter("ignore", TfrctraceWarning)
        self._folder = folder
        self._key = key
        self._numbers = itertools.count()
        self._kept: dict[Path, KeptTrace] = {}

    def of(self, path: Path) -> KeptTrace:
        """Return the trace of a file, read again if it changed."""
        status = path.stat()
        version = (status.st_mtime_ns, status.st_size)
        kept = self._kept.pop(path, None)
        if kept is None or kept.version != version:
            if kept is not None:
                kept.forget()
            trace = open_trace(path, anonymize=self._key or False)
            kept = KeptTrace(trace, version, self._folder / f"{next(self._numbers)}.parquet")
            while self._kept and not self._has_room(kept):
                self._kept.pop(next(iter(self._kept))).forget()
        self._kept[path] = kept
        return kept

    def _has_room(self, kept: KeptTrace) -> bool:
        total_bytes = kept.bytes + sum(one.bytes for one in self._kept.values())
        return len(self._kept) < _MOST_TRACES and total_bytes <= _MOST_BYTES
