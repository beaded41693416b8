"""Bounds on memory, unless the user sets others."""

from __future__ import annotations

from typing import Final

MAX_FLOWS: Final = 1_000_000
"""Flows that are followed in one trace."""

MAX_SAMPLES: Final = 10_000_000
"""Samples of each kind (RTT samples, losses, rounds, ...) that are kept of one trace."""

MAX_DECOMPRESSED_BYTES: Final = 64 * 2**30
"""Bytes after which a compressed input is given up as a decompression bomb."""
