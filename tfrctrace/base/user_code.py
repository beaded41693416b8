"""Classes of the user's own that an option names as `module:Class`."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def load_class(path: str) -> Any:  # noqa: ANN401  whatever class the module has
    """Return what `path`, as `module:Class`, names: of an installed module, else of the current folder.

    Raises `UsageError` if it cannot be imported.
    """
    module, _, name = path.partition(":")
    try:
        with _current_folder_last():
            return getattr(import_module(module), name)
    except Exception as error:
        raise UsageError(f"`{path}` cannot be loaded: {error}") from error


@contextmanager
def _current_folder_last() -> Iterator[None]:
    """Search the current folder after all others.

    It may be full of strangers' files: a `scapy.py` beside a capture must not run in place of scapy. It stays
    last, for what the class imports later.
    """
    before, here = list(sys.path), os.getcwd()
    sys.path[:] = [*(place for place in before if place not in {"", here}), here]
    try:
        yield
    finally:
        sys.path[:] = before if {"", here}.intersection(before) else [*before, here]
