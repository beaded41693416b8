"""The version of the package, for the room that is read first and for those that write it down."""

from typing import Final

VERSION: Final = "0.1.0"
