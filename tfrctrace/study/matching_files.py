"""The files that a pattern matches."""

from __future__ import annotations

import glob
import os
import re
from typing import Final

from tfrctrace.parsers.sources import natural_key

_REPEATED: Final = re.compile(rf"(?<![^{os.sep}])(\*\*{os.sep})(?:\*\*{os.sep})+")


def matching_files(pattern: str, folder: str = "") -> list[str]:
    """Return the paths below `folder` that fit a pattern, each once, in natural order.

    `**` stands for any folders, so that several in a row are one: each would multiply the time.
    """
    shortest = _REPEATED.sub(r"\1", os.path.expanduser(pattern))
    found = set(glob.glob(shortest, root_dir=folder or None, recursive=True))
    return sorted(found, key=lambda name: (natural_key(name), name))
