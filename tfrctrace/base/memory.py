"""Return freed memory to the system."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_OF_ALLOCATOR: Final = "_RJEM_MALLOC_CONF"
_OF_POLARS: Final = "dirty_decay_ms:500"
_KEEP_NOTHING: Final = "dirty_decay_ms:0,muzzy_decay_ms:0"


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
    """Have the allocator of Polars (jemalloc) keep no freed pages, if Polars is not imported yet.

    Of a report of many flows it keeps as much as the report shows. Polars appends this variable to settings
    of its own, and leaves both to child processes; what a user has set stays.
    """
    given = os.environ.get(_OF_ALLOCATOR, "")
    if "polars" not in sys.modules and (not given or given.startswith(_OF_POLARS)):
        os.environ[_OF_ALLOCATOR] = ",".join(filter(None, (given, _KEEP_NOTHING)))
