"""Find the inputs that arguments name: files, directories, streams and objects, in a fixed order."""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import STANDARD_INPUT, UsageError, input_problem
from tfrctrace.parsers.pcap_over_ip import host_and_port, is_pcap_over_ip
from tfrctrace.parsers.remote import is_remote, listed_objects, public_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.parsers.remote import StoreAccess

CAPTURE_SUFFIXES: Final = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar", ".pcapn")
COMPRESSION_SUFFIXES: Final = (".gz", ".zst", ".lz4", ".xz", ".bz2")

_NAMES_SHOWN: Final = 3
# Without a prefix the name starts with the node.
_NS3_NAME: Final = (
    r"(?:^|-)(?:(?P<node>[0-9]{1,9})-(?P<device>[0-9]{1,9})"
    r"|n(?P<ip_node>[0-9]{1,9})-i(?P<interface>[0-9]{1,9}))$"
)


@dataclass(slots=True)
class Inputs:
    """The inputs, and problems found before reading them."""

    names: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_read_once(self) -> bool:
        """Whether an input is a stream that is gone when it was read: standard input, or PCAP over IP."""
        return any(name == STANDARD_INPUT or is_pcap_over_ip(name) for name in self.names)


def find_inputs(arguments: Sequence[str], *, join: bool = False, store: StoreAccess | None = None) -> Inputs:
    """Return the inputs that `arguments` name.

    A file keeps its position. A directory stands for the traces below it in natural order (`x2` before
    `x10`); other files in it are skipped with a note. With `join`, files are sorted in natural order, and
    missing numbers are reported; pipes, which cannot be read before they are sorted by time, are not.
    """
    if not arguments:
        raise UsageError("no input is given")
    if STANDARD_INPUT in arguments and len(arguments) > 1:
        raise UsageError("`-` (standard input) cannot be read together with other inputs")
    inputs = Inputs()
    if list(arguments) == [STANDARD_INPUT]:
        _refuse_terminal()
    for argument in arguments:
        if is_pcap_over_ip(argument):
            host_and_port(argument)
            inputs.names.append(argument)
        elif is_remote(argument):
            inputs.names += remote_names(argument, store)
        elif os.path.isdir(argument):
            _add_directory(inputs, argument)
        else:
            inputs.names.append(argument)
    if join and not any(map(_is_pipe, inputs.names)):
        from tfrctrace.parsers.rotated_names import missing_files

        inputs.names.sort(key=natural_key)
        inputs.problems += filter(None, [missing_files(inputs.names)])
    return inputs


def is_url(name: str) -> bool:
    """Return whether an input is an object of a store, or what a server sends, and no file."""
    return is_remote(name) or is_pcap_over_ip(name)


def remote_names(argument: str, store: StoreAccess | None) -> list[str]:
    """Return the URLs of the objects that a URL names: all below it if it ends in `/`."""
    if not argument.endswith("/"):
        return [public_url(argument)]
    return sorted((listed_object.url for listed_object in listed_objects(argument, store)), key=natural_key)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders numbers in names by value: `trace2` before `trace10`."""
    pieces = re.split(r"([0-9]+)", name)
    return [(1, int(piece), "") if index % 2 else (0, 0, piece) for index, piece in enumerate(pieces)]


def size_in_bytes(name: str) -> int | None:
    """Return the number of bytes to read; None for a pipe or a missing file."""
    if name == STANDARD_INPUT:
        return None
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def without_suffixes(name: str) -> str:
    """Return the last part of a path without the suffixes of captures and compression."""
    stem = os.path.basename(name)
    for suffixes in (COMPRESSION_SUFFIXES, CAPTURE_SUFFIXES):
        root, suffix = os.path.splitext(stem)
        if root and suffix.lower() in suffixes:
            stem = root
    return stem


def ns3_place(name: str) -> str | None:
    """Return the ns-3 node and device of a capture, from its file name.

    `run-3-1.pcap` is of node 3, device 1, and `run-n3-i1.pcap` of an interface of its IP layer. None for
    names of another form; that a name has this form does not prove that ns-3 gave it.
    """
    found = re.search(_NS3_NAME, without_suffixes(name).removesuffix(".tr"))
    if found is None:
        return None
    if found["ip_node"]:
        return f"node {int(found['ip_node'])}, interface {int(found['interface'])}"
    return f"node {int(found['node'])}, device {int(found['device'])}"


def _is_pipe(name: str) -> bool:
    return is_pcap_over_ip(name) or (os.path.exists(name) and size_in_bytes(name) is None)


def _refuse_terminal() -> None:
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(
            "standard input is a terminal, not a capture",
            hint="pipe a capture into it: `tcpdump -w - | tfrctrace flows -`",
        )


def _add_directory(inputs: Inputs, directory: str) -> None:
    """Add the captures below `directory`, and a problem for what cannot be used."""

    def cannot_list(error: OSError) -> None:
        folder = os.fsdecode(error.filename)
        inputs.problems.append(input_problem(folder, "cannot_open", f"cannot be listed: {_reason(error)}"))

    captures: list[str] = []
    skipped: list[str] = []
    for path in _regular_files(directory, cannot_list):
        try:
            (captures if looks_like_capture(path) else skipped).append(path)
        except OSError as error:
            inputs.problems.append(input_problem(path, "cannot_open", f"cannot be opened: {_reason(error)}"))
    inputs.names += captures
    if not captures:
        inputs.problems.append(
            input_problem(directory, "no_captures", "is a directory without any trace of a known format")
        )
    elif skipped:
        inputs.problems.append(_note_of_skipped(directory, skipped))


def _note_of_skipped(directory: str, skipped: list[str]) -> Problem:
    names = [f"`{os.path.relpath(path, directory)}`" for path in skipped[:_NAMES_SHOWN]]
    if len(skipped) > _NAMES_SHOWN:
        names.append(f"{len(skipped) - _NAMES_SHOWN} more")
    count = (
        "1 file is not a trace and was"
        if len(skipped) == 1
        else f"{len(skipped)} files are not traces and were"
    )
    return input_problem(directory, "skipped", f"{count} left out: {', '.join(names)}", severity="note")


def _regular_files(directory: str, on_error: Callable[[OSError], None]) -> list[str]:
    """Return the files below `directory` in natural order, without pipes and devices, which could block."""
    paths = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(directory, onerror=on_error)
        for name in names
    ]
    return sorted(filter(os.path.isfile, paths), key=natural_key)


def looks_like_capture(path: str) -> bool:
    """Return whether a file is a trace of a known format, by its content or its name."""
    from tfrctrace.parsers._native import is_trace

    return has_capture_name(path) or is_trace(path)


def has_capture_name(path: str) -> bool:
    """Return whether a name has a capture suffix: `.pcap`, `.pcapng.zst`, or tcpdump's rotated `.pcap12`."""
    name = os.path.basename(path).lower()
    root, suffix = os.path.splitext(name)
    if suffix in COMPRESSION_SUFFIXES:
        name = root
    return name.rstrip("0123456789").endswith(CAPTURE_SUFFIXES)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
