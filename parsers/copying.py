"""Packets as they were recorded: the bytes of a capture file, piece by piece.

Where packets are chosen by what is known of them, each trace is decoded and copied at the same time, a batch
of packets after the other, so no more than a batch of them is in memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict

from tfrctrace.base.errors import FilterError
from tfrctrace.base.hints import with_hints
from tfrctrace.base.interruptible import in_thread
from tfrctrace.parsers._native import CaptureWriter, Progress
from tfrctrace.parsers.reading import InOrder, filter_refused, inputs_for_core
from tfrctrace.parsers.stretches import with_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from tfrctrace.parsers._native import PacketReader
    from tfrctrace.parsers.reading_settings import ReadSettings

CAPTURE_FORMS: Final = ("pcap", "pcapng")

COMPRESSION_OF_SUFFIX: Final = {".gz": "gzip", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz", ".bz2": "bzip2"}
"""How a capture is compressed, by the end of its name."""

CHOSEN_BY: Final = ("packet", "time_ns", "flow", "direction")
"""Columns of packets by which they are chosen."""

_AT_ONCE: Final = 8_192
"""Packets that are copied at a time if they are chosen: at most some megabytes."""


class Wanted(TypedDict):
    """Packets of a batch that are copied: their numbers, which ascend, and a comment or none for each."""

    numbers: Sequence[int]
    comments: Sequence[str | None]


class CopiedPackets(InOrder):
    """All packets of all inputs, or the chosen ones, as the bytes of a capture file.

    Iterate once; `problems`, `written`, `dropped` and `without_comment` are complete at the end.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        settings: ReadSettings,
        form: tuple[str, str],
        choose: Callable[[pl.DataFrame], Wanted] | None = None,
        section_comment: str | None = None,
    ) -> None:
        """Take the form of the file and its compression, which may be empty; `choose` takes batches."""
        super().__init__(inputs, settings)
        self._choose = choose
        anonymizer = settings.anonymizer
        self._writer = CaptureWriter(
            *form, replace=anonymizer.packed if anonymizer else None, section_comment=section_comment
        )
        self.written = 0
        self.without_comment = 0
        self.dropped: dict[str, int] = {}

    @property
    def is_chosen(self) -> bool:
        """Whether some of the packets are wanted, or comments on them."""
        return self._choose is not None

    def __iter__(self) -> Iterator[bytes]:
        """Give the bytes of the file."""
        if self._choose is None:
            yield from self._whole_traces()
        else:
            yield from self._of_each_trace(self._chosen)
        yield self._writer.finish()
        counts = self._writer.counts
        self.written, self.dropped = counts["written"], counts["dropped"]
        self.without_comment = counts["without_comment"]

    def _whole_traces(self) -> Iterator[bytes]:
        for trace, progress in zip(self._traces, self._progress, strict=True):
            try:
                self._begin(trace, progress)
                while (piece := in_thread(self._writer.copy)) is not None:
                    yield piece
            except FilterError as error:
                self.problems.append(filter_refused(trace, error))
        self.sources += self._writer.sources
        self.problems += with_hints(self._writer.problems)

    def _chosen(self, trace: Sequence[str], reader: PacketReader) -> Iterator[bytes]:
        import polars as pl

        assert self._choose is not None
        self._begin(trace, None)
        copy = self._writer.copy
        while (batch := in_thread(lambda: reader.next_batch(_AT_ONCE))) is not None:
            wanted = self._choose(pl.DataFrame(batch.select(CHOSEN_BY)))
            if wanted["numbers"]:
                yield in_thread(partial(copy, wanted["numbers"], wanted["comments"])) or b""
        yield in_thread(partial(copy, [])) or b""

    def _begin(self, trace: Sequence[str], progress: Progress | None) -> None:
        settings = self._settings
        sources, form = inputs_for_core(trace, settings)
        settings = with_ends(sources, replace(settings, format=form), progress or Progress())
        self._writer.open(sources, settings, progress=progress)
