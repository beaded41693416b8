"""Memory, threads or open files that the machine refused: a bug neither of tfrctrace nor of an input."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Final

from tfrctrace.base.memory_limit import is_memory_limited

if TYPE_CHECKING:
    from collections.abc import Iterator

OUT_OF_MEMORY: Final = "out of memory"
_FILES: Final = "too many open files"
_THREADS: Final = "no more threads or processes can be started"

HINTS: Final = {
    OUT_OF_MEMORY: "raise the memory limit (`ulimit -v`, the container's), or use fewer `--jobs`",
    _FILES: "raise the limit of open files (`ulimit -n`), or use fewer `--jobs`",
    _THREADS: "raise the limits of processes and memory (`ulimit -u`, `ulimit -v`), or use fewer `--jobs`",
}

_BY_ERRNO: Final = {
    errno.ENOMEM: OUT_OF_MEMORY,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.EAGAIN: _THREADS,  # of fork and clone
}
# The dynamic linker and the interpreter report these as text only.
_BY_TEXT: Final = {
    "failed to map segment from shared object": OUT_OF_MEMORY,
    "cannot allocate memory": OUT_OF_MEMORY,
    "null pointer when creating": OUT_OF_MEMORY,  # zstd
    "can't start new thread": _THREADS,
    "resource temporarily unavailable": _THREADS,
}


def shortage(error: BaseException) -> str | None:
    """Return what the machine lacked when `error`, or what led to it, was raised; None if nothing."""
    if _lacks_polars_library():
        return OUT_OF_MEMORY
    return next((found for one in _chain(error) if (found := _own_shortage(one))), None)


def _lacks_polars_library() -> bool:
    """Return whether Polars was imported without its library: it goes on, and fails where that is needed."""
    return "polars" in sys.modules and "polars._plr" not in sys.modules


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _own_shortage(error: BaseException) -> str | None:
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, SystemError | SyntaxError):
        # where an allocation fails, C code may return without an exception, and the compiler misread a module
        return OUT_OF_MEMORY if is_memory_limited() else None
    if isinstance(error, OSError):
        return _BY_ERRNO.get(error.errno or 0)
    # a panic of a library in Rust is no `Exception`
    if isinstance(error, ImportError | RuntimeError) or type(error).__name__ == "PanicException":
        text = str(error).lower()
        return next((found for words, found in _BY_TEXT.items() if words in text), None)
    return None
