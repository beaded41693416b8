"""What a terminal can show."""

from __future__ import annotations

import os
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

RED: Final = "1;31"
GREEN: Final = "1;32"
YELLOW: Final = "1;33"
CYAN: Final = "1;36"
DIM: Final = "2"


def terminal_width(file: TextIO) -> int | None:
    """Return the columns of the terminal that `file` is, or None."""
    return get_terminal_size().columns if file.isatty() else None


def has_colours(file: TextIO) -> bool:
    """Return whether `file` is a terminal, and NO_COLOR is not set (https://no-color.org)."""
    return file.isatty() and not os.environ.get("NO_COLOR")


def coloured(text: str, colour: str) -> str:
    """Return the text with the codes that show it in a colour."""
    return f"\x1b[{colour}m{text}\x1b[0m"
