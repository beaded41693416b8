"""Text that came out of a capture or from a user, made harmless for every place where it is shown."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
"""Unicode categories that draw nothing but may move the cursor, turn the writing direction or hide text."""


_MARKDOWN: Final = str.maketrans({**{sign: f"\\{sign}" for sign in "\\|`*_{}[]#~"}, "<": "&lt;", ">": "&gt;"})
_ENTITY: Final = re.compile(r"&(?=[#\w])")

_ADDRESS: Final = re.compile(r"(?=://)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
"""Where GitHub would make a link of a bare address of the web or of mail."""


def plain_text(text: str) -> str:
    r"""Return `text` with control and format characters as visible escapes such as `\x1b` or `\u202e`.

    That covers terminal sequences, line breaks, right-to-left overrides, and the lone surrogates that stand
    for the bytes of a file name that is not UTF-8. Escaping for HTML comes after this.
    """
    # of the categories that draw something, only spaces beside the ASCII one are not printable for Python
    if text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def markdown_text(text: str) -> str:
    """Return `text` as Markdown of GitHub shows it literally, also in the cell of a table."""
    return _ADDRESS.sub(r"\\", _ENTITY.sub("&amp;", plain_text(text)).translate(_MARKDOWN))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
