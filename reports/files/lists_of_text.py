"""Lists whose items come mixed, for a document that has one list after the other."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final, Self, TextIO

from tfrctrace.base.errors import SpoolError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

_IN_MEMORY: Final = 4 << 20
"""Bytes of a list in memory; more are in a file that has no name."""

_COPIED: Final = 1 << 20


class ListsOfText:
    """Texts by the name of their list, in order."""

    def __init__(self, names: Iterable[str]) -> None:
        self._stack = ExitStack()
        self._files = {name: self._stack.enter_context(_file()) for name in names}
        self._filled = set[str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, name: str, separator: str, text: str) -> None:
        """Add an item, with `separator` if there is one before it; a full disk raises `SpoolError`."""
        from tempfile import gettempdir

        try:
            if name in self._filled:
                self._files[name].write(separator)
            self._files[name].write(text)
        except OSError as error:
            raise SpoolError(gettempdir(), (error.strerror or str(error)).lower()) from error
        self._filled.add(name)

    def is_empty(self, name: str) -> bool:
        """Return whether the list has no item."""
        return name not in self._filled

    def copy(self, name: str, file: TextIO) -> None:
        """Write a list to `file`."""
        from tempfile import gettempdir

        try:
            self._files[name].seek(0)
        except OSError as error:
            raise SpoolError(gettempdir(), (error.strerror or str(error)).lower()) from error
        while piece := self._files[name].read(_COPIED):
            file.write(piece)


def _file() -> SpooledTemporaryFile[str]:
    return SpooledTemporaryFile(_IN_MEMORY, mode="w+", encoding="utf-8", newline="")
