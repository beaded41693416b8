"""The folders of which questions may be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, UsageError
from tfrctrace.parsers.sources import find_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NUMBERED: Final = "capture-"


class Folders:
    """What is in some folders; nothing else can be named, also not by `..` or by a link that leads out."""

    def __init__(self, named: Iterable[str], *, hides_names: bool = False) -> None:
        """Take the folders; raises `UsageError` for what is none.

        With `hides_names` captures are called by their number, and nothing by its name.
        """
        self._hides_names = hides_names
        self._roots: list[Path] = []
        for name in named:
            root = Path(name).resolve()
            if not root.is_dir():
                raise UsageError(f"`{name}` is not a folder", hint="name the folder that has the captures")
            self._roots.append(root)

    def captures(self) -> Sequence[Path]:
        """Return the captures in the folders, in order."""
        found: dict[Path, None] = {}
        for root in self._roots:
            try:
                names = find_inputs([str(root)]).names
            except InputError:  # of a folder without captures
                continue
            paths = (Path(name).resolve() for name in names)
            found |= dict.fromkeys(path for path in paths if path.is_file() and self._has(path))
        return sorted(found)

    def file(self, name: str) -> Path:
        """Return the file `name`, a path of its own or below one of the folders."""
        return self._named(name, Path.is_file, "file")

    def file_or_folder(self, name: str) -> Path:
        """Return the file or folder `name`."""
        return self._named(name, lambda path: path.is_file() or path.is_dir(), "file or folder")

    def runs(self, name: str) -> Path:
        """Return the capture `name`, or the folder of captures without a link that leads out."""
        path = self.file_or_folder(name)
        names = find_inputs([str(path)]).names if path.is_dir() else []
        if not all(self._has(Path(one).resolve()) for one in names):
            raise UsageError(
                f"`{name}` has links to captures outside of the folders that may be read",
                hint="name a folder without them",
            )
        return path

    def shown(self, path: Path) -> str:
        """Return how a capture is called: by its path below its folder, if that is clear."""
        if self._hides_names:
            return f"{_NUMBERED}{self.captures().index(path) + 1}"
        for root in self._roots:
            if path.is_relative_to(root):
                short = path.relative_to(root)
                is_clear = sum((other / short).exists() for other in self._roots) == 1
                return str(short) if is_clear else str(path)
        return str(path)

    def _named(self, name: str, is_wanted: Callable[[Path], bool], what: str) -> Path:
        if self._hides_names:
            numbered = {f"{_NUMBERED}{number}": path for number, path in enumerate(self.captures(), 1)}
            if name in numbered:
                return numbered[name]
        for root in () if self._hides_names else self._roots:
            try:
                path = (root / name).resolve()
                if self._has(path) and is_wanted(path):
                    return path
            except (OSError, ValueError):  # a name too long, or with a zero byte
                continue
        raise UsageError(
            f"no {what} `{name}` is in the folders that may be read", hint="`captures` lists the captures"
        )

    def _has(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self._roots)
