"""Memory that was freed and that the C library keeps for later."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Return freed memory to the system, where the C library is glibc and can; else do nothing.

    Of a hundred thousand flows the core frees a hundred megabytes in small pieces, which glibc keeps, while
    the drawing of the report takes as much anew.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
