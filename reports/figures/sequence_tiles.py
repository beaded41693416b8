"""The time-sequence graph of a direction: tiles of the core as a page takes them, and what a drawing shows.

The core's `flow/tcp/sequence_graph` writes the content of a tile; `page/sequence.js` reads it, too.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

_ACKNOWLEDGEMENT: Final = 0x10
_CLASS: Final = 0x0F
"""Bits of the kind of a point: whether it acknowledges, and the class of a segment."""

_ELSEWHERE: Final = 1
"""Marks a round-trip time that did not begin with a point of the same tile."""

_NS_PER_US: Final = 1_000

_MOST_IN_TILE: Final = 8_192
_MOST_BYTES: Final = 4_000_000
"""More than the content of such a tile has."""

_NUMBER_BITS: Final = 64

SEGMENT_CLASSES: Final = (
    "fast_retransmission",
    "sack_retransmission",
    "rto_retransmission",
    "tail_loss_probe",
    "unexplained_retransmission",
    "syn_retransmission",
    "fin_retransmission",
    "keep_alive",
    "zero_window_probe",
    "network_duplicate",
    "capture_duplicate",
    "reordering",
    "retransmission_of_unseen",
)
"""Classes of segments, in the order of the core: a tile has their numbers, from 1."""

_DRAWN: Final = ("data", "classified", "acknowledged", "window")
_RANGES: Final = (*_DRAWN, "sacked", "flight", "rtt")
"""What a summary has the lowest and the highest of: sequence numbers, bytes, ns."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A row of tiles, without its flow: one piece of a level. Level 0 has points, others have summaries."""

    level: int
    count: int
    start_ns: int
    end_ns: int
    tile: str
    """Its content as base64."""


class Mark(NamedTuple):
    """What a drawing has of a point or a summary: a sequence number at a time."""

    time_ns: int
    kind: str
    bytes: int


class Point(NamedTuple):
    """A segment, or an acknowledgement with its window and SACK blocks."""

    time_ns: int
    packet: int
    kind: int
    position: int
    end: int | None
    """End of a segment, right edge of the window of an acknowledgement if that is known."""
    flight_bytes: int
    """Data of the sender in flight after it."""
    sacked: tuple[tuple[int, int], ...] = ()
    rtt_ns: int | None = None
    """Round-trip time of the data that it acknowledges, if it gives one."""

    @property
    def acknowledges(self) -> bool:
        """Whether it is of the receiver."""
        return bool(self.kind & _ACKNOWLEDGEMENT)

    @property
    def class_number(self) -> int:
        """Number of the class of a segment; 0 for one that is simply the next."""
        return self.kind & _CLASS


class Summary(NamedTuple):
    """What neighbours have in common; `ranges` are None where there is nothing of the kind."""

    points: int
    start_ns: int
    end_ns: int
    packet: int
    ranges: tuple[tuple[int, int] | None, ...]
    zero_windows: int
    classes: tuple[int, ...]


class _Columns:
    """Columns of numbers (LEB128) in the content of a tile, from the first to the last."""

    def __init__(self, tile: Tile) -> None:
        inflating = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._content = inflating.decompress(base64.b64decode(tile.tile, validate=True), _MOST_BYTES)
        if not inflating.eof:
            raise ValueError("the content of a tile is cut off or too large")
        self._at = 1
        self._start_ns = tile.start_ns
        self._ns_per_tick = _NS_PER_US if self._content[0] else 1

    def raw(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._content):
            raise IndexError
        return self._content[self._at - count : self._at]

    def numbers(self, count: int) -> list[int]:
        content, at, values = self._content, self._at, list[int]()
        for _ in range(count):
            value = shift = 0
            while (byte := content[at]) & 0x80:
                value |= (byte & 0x7F) << shift
                shift += 7
                if shift > _NUMBER_BITS:
                    raise ValueError("a number of a tile is too long")
                at += 1
            at += 1
            values.append(value | byte << shift)
        self._at = at
        return values

    def skip(self, count: int) -> None:
        if count > len(self._content):
            raise IndexError
        found = re.compile(rb"(?:[\x80-\xff]{0,9}+[\x00-\x7f]){%d}+" % count).match(self._content, self._at)
        if found is None:
            raise IndexError
        self._at = found.end()

    def signed(self, count: int) -> list[int]:
        return [(value >> 1) ^ -(value & 1) for value in self.numbers(count)]

    def steps(self, count: int) -> list[int]:
        return list(accumulate(self.signed(count)))

    def durations_ns(self, count: int) -> list[int]:
        return [value * self._ns_per_tick for value in self.numbers(count)]

    def times_ns(self, count: int, start_ns: int | None = None) -> list[int]:
        start_ns = self._start_ns if start_ns is None else start_ns
        return [start_ns + value * self._ns_per_tick for value in self.steps(count)]


def tiles_of(sequence: pl.DataFrame) -> tuple[Tile, ...]:
    """Return the tiles of one direction."""
    names = [field.name for field in fields(Tile)]
    return tuple(Tile(*row) for row in sequence.select(names).iter_rows())


def check_tiles(sequence: pl.DataFrame) -> None:
    """Raise `ValueError` if tiles of a file, which anybody may have written, cannot be drawn."""
    import polars as pl

    sound = sequence.drop_nulls().filter(
        pl.col("count").is_between(1, _MOST_IN_TILE), pl.col("start_ns") <= pl.col("end_ns")
    )
    if sound.height < sequence.height:
        raise ValueError("a tile of a graph lacks a value, is empty or too large, or ends before it begins")
    for own in sequence.partition_by("flow", "direction"):
        tiles = tiles_of(own)
        try:
            # a page unpacks each level as it comes into view
            for tile in tiles:
                if tile.level == 0:
                    _check_points(tile)
                else:
                    _check_marks(mark for one in summaries(tile) for mark in _marks_of_summary(one))
            _check_marks(overview(tiles))
        except (IndexError, binascii.Error, zlib.error) as error:
            raise ValueError("the content of a tile is damaged") from error


def _check_points(tile: Tile) -> None:
    """Raise unless a tile of level 0 has all that its points need; most numbers are only counted."""
    columns = _Columns(tile)
    kinds = columns.raw(tile.count)
    if max(kind & _CLASS for kind in set(kinds)) > len(SEGMENT_CLASSES):
        raise ValueError("a segment of a tile is of an unknown class")
    places = [place for place, kind in enumerate(kinds) if kind & _ACKNOWLEDGEMENT]
    columns.skip(2 * tile.count + 2 * (tile.count - len(places)) + 2 * len(places))
    columns.skip(2 * sum(columns.numbers(len(places))))
    columns.skip(tile.count)
    answered = columns.numbers(len(places))
    if any(back - _ELSEWHERE > place for back, place in zip(answered, places, strict=True)):
        raise IndexError
    columns.skip(answered.count(_ELSEWHERE))


def _check_marks(marks: Iterable[Mark]) -> None:
    if any(abs(number) >> (_NUMBER_BITS - 1) for mark in marks for number in (mark.time_ns, mark.bytes)):
        raise ValueError("a number of a tile is too large")


def points(tile: Tile) -> Iterator[Point]:
    """Give the points of a tile of level 0."""
    columns = _Columns(tile)
    kinds = columns.raw(tile.count)
    times_ns, packets = columns.times_ns(tile.count), columns.steps(tile.count)
    acknowledgements = sum(bool(kind & _ACKNOWLEDGEMENT) for kind in kinds)
    segments = tile.count - acknowledgements
    jumps, lengths = columns.signed(segments), columns.steps(segments)
    ends = list(accumulate(map(sum, zip(jumps, lengths, strict=True))))
    acknowledged, windows = columns.steps(acknowledgements), columns.steps(acknowledgements)
    blocks = columns.numbers(acknowledgements)
    starts, sizes = columns.steps(sum(blocks)), columns.numbers(sum(blocks))
    flights, answered = columns.steps(tile.count), columns.numbers(acknowledgements)
    elsewhere_ns = iter(columns.times_ns(answered.count(_ELSEWHERE), 0))
    of_segments = zip(ends, lengths, strict=True)
    of_acknowledgements = zip(acknowledged, windows, blocks, answered, strict=True)
    of_blocks = zip(starts, sizes, strict=True)
    of_all = zip(times_ns, packets, kinds, flights, strict=True)
    for place, (time_ns, packet, kind, flight_bytes) in enumerate(of_all):
        if kind & _ACKNOWLEDGEMENT:
            position, window, count, back = next(of_acknowledgements)
            sacked = [next(of_blocks) for _ in range(count)]
            # a window is counted from 1: 0 says that its scale is not known
            edge = position + window - 1 if window else None
            placed = tuple((position + start, position + start + size) for start, size in sacked)
            rtt_ns = next(elsewhere_ns) if back == _ELSEWHERE else None
            if back - _ELSEWHERE > place:
                raise IndexError
            if back > _ELSEWHERE:
                rtt_ns = time_ns - times_ns[place - (back - _ELSEWHERE)]
            yield Point(time_ns, packet, kind, position, edge, flight_bytes, placed, rtt_ns)
        else:
            end, length = next(of_segments)
            yield Point(time_ns, packet, kind, end - length, end, flight_bytes)


def summaries(tile: Tile) -> Iterator[Summary]:
    """Give the summaries of a tile of another level."""
    columns, count = _Columns(tile), tile.count
    counts, starts_ns = columns.numbers(count), columns.times_ns(count)
    durations_ns, packets = columns.durations_ns(count), columns.steps(count)
    ranges: list[list[tuple[int, int] | None]] = []
    for _ in _RANGES:
        there = columns.raw(count)
        some = sum(map(bool, there))
        lows, heights = columns.steps(some), columns.numbers(some)
        known = ((low, low + height) for low, height in zip(lows, heights, strict=True))
        ranges.append([next(known) if is_there else None for is_there in there])
    zero_windows = columns.numbers(count)
    classes = [columns.numbers(count) for _ in SEGMENT_CLASSES]
    for at, (start_ns, duration_ns) in enumerate(zip(starts_ns, durations_ns, strict=True)):
        yield Summary(
            counts[at],
            start_ns,
            start_ns + duration_ns,
            packets[at],
            tuple(column[at] for column in ranges),
            zero_windows[at],
            tuple(column[at] for column in classes),
        )


def overview(tiles: Iterable[Tile]) -> Iterator[Mark]:
    """Give what a drawing of the whole graph shows: the lowest level that is one tile."""
    levels: dict[int, list[Tile]] = {}
    for tile in tiles:
        levels.setdefault(tile.level, []).append(tile)
    end_ns = max(tile.end_ns for own in levels.values() for tile in own)
    # a level without the points beyond a limit ends earlier
    whole = (own[0] for _, own in sorted(levels.items()) if len(own) == 1 and own[0].end_ns == end_ns)
    lowest = next(whole, None)
    if lowest is None:
        raise ValueError("no level of a graph is one tile")
    if lowest.level == 0:
        return (mark for point in points(lowest) for mark in _marks_of_point(point))
    return (mark for summary in summaries(lowest) for mark in _marks_of_summary(summary))


def _marks_of_point(point: Point) -> Iterator[Mark]:
    if point.acknowledges:
        yield Mark(point.time_ns, "acknowledged", point.position)
        if point.end is not None:
            yield Mark(point.time_ns, "window", point.end)
    elif point.end is not None and point.end > point.position:
        yield Mark(point.time_ns, "classified" if point.class_number else "data", point.position)


def _marks_of_summary(summary: Summary) -> Iterator[Mark]:
    for kind, limits in zip(_RANGES, summary.ranges, strict=True):
        if limits is not None and kind in _DRAWN:
            yield Mark(summary.start_ns, kind, limits[0])
            yield Mark(summary.end_ns, kind, limits[1])
