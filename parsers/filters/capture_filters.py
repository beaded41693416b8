"""Capture filters, compiled by libpcap so that they mean the same as in tcpdump.

libpcap compiles an expression for one link type; a capture may have several, so the core requests a program
for each new one (`CompiledFilter.__call__`) and runs it. The library comes from the package `libpcap`, else
from the system. The package itself is not imported: that takes longer than analysing a million packets, and
only six functions are needed.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
import threading
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import FilterError, TfrctraceError
from tfrctrace.parsers.filters.display_filters import as_capture_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

Instruction = tuple[int, int, int, int]
"""One BPF instruction: code, jump if true, jump if false, constant."""

LARGEST_SNAP_LENGTH: Final = 262_144
"""tcpdump's snap length for a file that does not state one, in bytes (MAXIMUM_SNAPLEN)."""

_READABLE_LINK_TYPES: Final = (1, 101, 113, 276, 0, 108, 9, 50, 228, 229)
"""LINKTYPE numbers that the core decodes, Ethernet first; see https://www.tcpdump.org/linktypes.html."""

_WIRELESS_LINK_TYPES: Final = (127, 105, 163, 119)
"""The same for 802.11."""

# What tcpdump takes for a file; with it `ip broadcast` means 255.255.255.255 and 0.0.0.0.
_NETMASK: Final = 0
_OPTIMISE: Final = 1
_ERROR_BUFFER_BYTES: Final = 256  # PCAP_ERRBUF_SIZE


class LibpcapError(TfrctraceError):
    """libpcap is missing or does not work."""

    hint = "install it with `pip install libpcap`, or your system's package libpcap"


class CompiledFilter:
    """One expression, compiled for each link type on demand; safe to call from several threads."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._programs: dict[tuple[int, int], list[Instruction]] = {}
        self._lock = threading.Lock()
        self._check()

    def __repr__(self) -> str:
        return f"CompiledFilter({self.expression!r})"

    def __call__(self, link_type: int, snap_length: int) -> list[Instruction]:
        """Return the program for a LINKTYPE_ number and a snap length in bytes (0: not stated).

        Raises `FilterError` if libpcap cannot compile the expression for it.
        """
        key = (link_type, snap_length)
        # pcap_compile of libpcap before 1.8 is not reentrant
        with self._lock:
            if key not in self._programs:
                self._programs[key] = _compile(self.expression, link_type, snap_length)
            return self._programs[key]

    def _check(self) -> None:
        """Raise unless the expression is valid for some readable link type, before anything is read.

        `inbound`, for example, is an error for Ethernet and valid for Linux cooked captures. If no link type
        accepts the expression, the error is the one for Ethernet, as in tcpdump without a file.
        """
        first_error = self._first_error(_READABLE_LINK_TYPES)
        # for 802.11 libpcap does not see that no packet can match, so the first error stands
        if first_error and (
            "rejects all packets" in first_error.reason or self._first_error(_WIRELESS_LINK_TYPES)
        ):
            raise first_error

    def _first_error(self, link_types: tuple[int, ...]) -> FilterError | None:
        """Return the error for the first of `link_types`; None if one of them accepts the expression."""
        first_error: FilterError | None = None
        for link_type in link_types:
            try:
                self(link_type, LARGEST_SNAP_LENGTH)
            except FilterError as error:
                first_error = first_error or error
            else:
                return None
        return first_error


class _Instruction(ctypes.Structure):
    """`struct bpf_insn`."""

    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    """`struct bpf_program`."""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


def _compile(expression: str, link_type: int, snap_length: int) -> list[Instruction]:
    """Return the optimised BPF program of `expression` for a LINKTYPE_ number."""
    if "\0" in expression:
        # C would read the expression only up to here
        raise FilterError(expression.replace("\0", "\\0"), "has a NUL character in it")
    pcap = _libpcap()
    source = expression.encode(errors="surrogateescape")
    program = _Program()
    with _empty_capture(link_type, snap_length or LARGEST_SNAP_LENGTH) as handle:
        if pcap.pcap_compile(handle, ctypes.byref(program), source, _OPTIMISE, _NETMASK) != 0:
            reason: bytes = pcap.pcap_geterr(handle)
            raise FilterError(expression, reason.decode(errors="replace"), as_capture_filter(expression))
        try:
            return [(i.code, i.jt, i.jf, i.k) for i in program.instructions[: program.length]]
        finally:
            pcap.pcap_freecode(ctypes.byref(program))


@contextmanager
def _empty_capture(link_type: int, snap_length: int) -> Iterator[int]:
    """Yield the `pcap_t` of a capture without packets, opened as tcpdump opens a file.

    libpcap compiles differently for files and for interfaces (`inbound`, on Linux, would ask the kernel), and
    only for files does it translate LINKTYPE_ numbers into its own. So it is given a file, in memory.
    """
    content = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap_length, link_type)
    memory = ctypes.create_string_buffer(content, len(content))
    words = ctypes.create_string_buffer(_ERROR_BUFFER_BYTES)
    libc = _libc()
    file = libc.fmemopen(memory, len(content), b"r")
    if not file:
        raise MemoryError
    handle = _libpcap().pcap_fopen_offline(file, words)
    if not handle:
        libc.fclose(file)
        raise LibpcapError(words.value.decode(errors="replace"))
    try:
        yield handle
    finally:
        _libpcap().pcap_close(handle)  # closes the file too


@cache
def _libc() -> ctypes.CDLL:
    """Return the C library with the types of the functions used here."""
    library = ctypes.CDLL(None)
    library.fmemopen.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    library.fmemopen.restype = ctypes.c_void_p
    library.fclose.argtypes = (ctypes.c_void_p,)
    return library


@cache
def _libpcap() -> ctypes.CDLL:
    """Return libpcap with the types of the functions used here."""
    for name in _library_names():
        try:
            library = ctypes.CDLL(name)
        except OSError:  # not there, or built for another machine
            continue
        return _with_types(library)
    raise LibpcapError("filters need libpcap, and none was found")


def bundled_libraries() -> list[Path]:
    """Return the libraries in the package `libpcap` for this machine; normally one."""
    package = find_spec("libpcap")
    folders = package.submodule_search_locations if package else None
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return [
        path
        for folder in folders or []
        for path in sorted(Path(folder).rglob(f"libpcap.{suffix}"))
        if platform.machine() in path.parts
    ]


def _library_names() -> Iterator[str]:
    yield from map(str, bundled_libraries())
    yield from ("libpcap.so.1", "libpcap.so.0.8", "libpcap.so", "libpcap.A.dylib", "libpcap.dylib")
    from ctypes.util import find_library

    found = find_library("pcap")
    if found:
        yield found


def _with_types(library: ctypes.CDLL) -> ctypes.CDLL:
    handle = ctypes.c_void_p
    program = ctypes.POINTER(_Program)
    library.pcap_lib_version.restype = ctypes.c_char_p
    library.pcap_fopen_offline.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    library.pcap_fopen_offline.restype = handle
    library.pcap_compile.argtypes = (handle, program, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint)
    library.pcap_compile.restype = ctypes.c_int
    library.pcap_geterr.argtypes = (handle,)
    library.pcap_geterr.restype = ctypes.c_char_p
    library.pcap_freecode.argtypes = (program,)
    library.pcap_freecode.restype = None
    library.pcap_close.argtypes = (handle,)
    library.pcap_close.restype = None
    return library
