"""Return freed memory to the system."""

from __future__ import annotations

import ctypes
import os
import sys


def trim_heap() -> None:
    """Return freed memory to the system if the C library is glibc; else do nothing.

    After a hundred thousand flows the core frees a hundred megabytes in small pieces. glibc keeps them, while
    drawing the report allocates as much again.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def give_memory_back_at_once() -> None:
    """Have the allocator of Polars (jemalloc) give freed memory back, if Polars is not imported yet.

    It keeps freed pages for a while: of a report of many flows as much as it shows of them.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
