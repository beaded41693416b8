"""Readers of further formats, provided by other packages as entry points.

A package adds one with

    [project.entry-points."tfrctrace.readers"]
    mylog = "mypackage.reader:MyReader"

and `tfrctrace flows --input-format mylog trace.log` uses it; without the option it is tried on every input of
unknown format. A reader yields packets, so everything else works as for a capture.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, runtime_checkable

from tfrctrace.base.errors import STANDARD_INPUT, UsageError
from tfrctrace.parsers.sources import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

READERS: Final = "tfrctrace.readers"
"""Entry point group of readers."""

PACKETS_FORMAT: Final = "packets"
"""The core's name of the packet table as CSV, the format in which readers pass packets."""

_START_BYTES: Final = 4096


@runtime_checkable
class Reader(Protocol):
    """A format that is not built in. The entry point names a class without constructor arguments."""

    def recognises(self, start: bytes) -> bool:
        """Return whether a file that begins with `start` (some kilobytes) has this format."""

    def packets(self, file: BinaryIO) -> Iterable[Mapping[str, object]]:
        """Yield the packets of `file` in order, with the names and units of the packet table.

        `time_ns`, `src` and `dst` are needed; `transport` (`tcp`, `udp`, `tfrc`) with `src_port` and
        `dst_port` makes flows. A simulator's packet has a `uid`, and `event` says what happened to it.
        """


def reader_names() -> list[str]:
    """Return the names of the installed readers."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=READERS).names)


def reader_named(name: str) -> Reader:
    """Return the reader `name`; raises `UsageError` if it is not installed or not a reader."""
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=READERS, name=name):
        try:
            reader = entry_point.load()()
        except Exception as error:
            raise UsageError(
                f"the reader `{name}` ({entry_point.value}) cannot be loaded: {error}"
            ) from error
        if not isinstance(reader, Reader):
            raise UsageError(
                f"the reader `{name}` ({entry_point.value}) has no `recognises` and `packets`",
                hint="see `tfrctrace.parsers.plugins.Reader`",
            )
        return reader
    raise UsageError(f"unknown reader `{name}`", hint="is its package installed?")


def is_reader(name: str) -> bool:
    """Return whether `name` is not a format of the core."""
    from tfrctrace.parsers._native import input_formats

    return name not in input_formats()


def check_format(name: str | None) -> str | None:
    """Return `name` if it is a format of the core or of a reader; raises `UsageError` if not."""
    if name is None or not is_reader(name) or name in reader_names():
        return name
    from tfrctrace.parsers._native import input_formats

    known = ", ".join([*input_formats(), *reader_names()])
    raise UsageError(f"unknown input format `{name}`", hint=f"known: {known}")


def read_with(reader: Reader, name: str) -> tuple[str, PacketStream]:
    """Return an input for the core with the packets that `reader` yields."""
    if is_url(name):
        raise UsageError(
            f"`{name}` is no file, and readers of other packages read files or standard input",
            hint="save it to a file first",
        )
    file = sys.stdin.buffer if name == STANDARD_INPUT else open(name, "rb")  # noqa: SIM115
    return name, PacketStream(reader, file)


def reader_for(path: str) -> Reader | None:
    """Return the first reader that recognises the file.

    A reader that cannot be loaded is skipped, as it may not concern this file; selecting it by name reports
    the error.
    """
    with open(path, "rb") as file:
        start = file.read(_START_BYTES)
    for name in reader_names():
        try:
            reader = reader_named(name)
        except UsageError:
            continue
        if reader.recognises(start):
            return reader
    return None


class PacketStream:
    """The packets of a reader as a file in the core's format, generated while it is read."""

    def __init__(self, reader: Reader, file: BinaryIO) -> None:
        import csv

        # every start of a command imports this module, and few need these
        from tfrctrace.parsers.schema import TABLES

        self._names = [column.name for column in TABLES["packets"]]
        self._packets = iter(reader.packets(file))
        self._text = io.StringIO(newline="")
        self._writer = csv.DictWriter(self._text, self._names, lineterminator="\n")
        self._writer.writeheader()
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        if len(self._rest) < size:
            self._rest += self._next_rows(size - len(self._rest))
        chunk, self._rest = self._rest[:size], self._rest[size:]
        return chunk

    def _next_rows(self, size: int) -> bytes:
        """Return whole rows of `size` bytes or a little more; fewer only at the end."""
        while self._text.tell() < size and (packet := next(self._packets, None)) is not None:
            self._writer.writerow(self._checked(packet))
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        return text.encode(errors="backslashreplace")

    def _checked(self, packet: Mapping[str, object]) -> Mapping[str, object]:
        unknown = packet.keys() - set(self._names)
        if unknown:
            raise UsageError(
                f"a reader returned a packet with {min(unknown)!r}, which is not a column of packets"
            )
        return packet
