"""Return freed memory to the system."""

from __future__ import annotations

import ctypes
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
