"""Changes of files: of bytes, of numbers in text, and of values in JSON and TOML."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from case import Edit

NUMBERS: Final = (
    *("0", "-1", "1", "nan", "-inf", "1e308", "5e-324", "4294967295", "9223372036854775807"),
    *("-9223372036854775808", "18446744073709551616", "1" * 400, "0.0000000001", "", "x", "\u202e"),
)
VALUES: Final = (
    *(f'"{text}"' for text in ("", "x", "../..", "=1+1", "5 ms", "-1s", "1979-05-27", "a" * 300)),
    *("true", "null", "0", "-1", "0.5", "1e308", "-1e308", "5e-324", str(2**63), "1" * 400),
    *("[]", "{}", "[null]", "[[]]", '["x", 1]', '{"": 0}', "[[1, 2], [0, -1]]"),
)
"""Values as JSON writes them; TOML has most of them."""

SHORTEST_STEP: Final = 16
NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?")


def places(document: object) -> Iterator[tuple[Any, Any]]:
    """Give every container of a document with each of its keys."""
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, key
            yield from places(document[key])


def _change_bytes(content: bytes, edit: Edit) -> bytes:
    at = edit.at % (len(content) + 1)
    return content[:at] + edit.put.encode("latin-1") + content[at + edit.removed :]


def _repeat_bytes(content: bytes, edit: Edit) -> bytes:
    at = edit.at % (len(content) + 1)
    return content[: at + edit.removed] + content[at:]


def _change_number(content: bytes, edit: Edit) -> bytes:
    found = NUMBER.search(content, edit.at % (len(content) + 1))
    if found is None:
        return content
    return content[: found.start()] + edit.put.encode() + content[found.end() :]


def _change_json(content: bytes, edit: Edit) -> bytes:
    try:
        document = json.loads(content)
        found = list(places(document))
    except (ValueError, RecursionError):
        return _change_bytes(content, edit)
    if not found:
        return content
    container, key = found[edit.at % len(found)]
    if edit.removed:
        del container[key]
    else:
        container[key] = json.loads(edit.put)
    return json.dumps(document).encode()


def _change_line(content: bytes, edit: Edit) -> bytes:
    lines = content.split(b"\n")
    at = edit.at % len(lines)
    name, equals, _ = lines[at].partition(b"=")
    if edit.removed:
        del lines[at]
    elif equals:
        lines[at] = name + b"= " + edit.put.encode()
    else:
        lines.insert(at, lines[edit.at // 7 % len(lines)])
    return b"\n".join(lines)


CHANGES: Final[dict[str, Callable[[bytes, Edit], bytes]]] = {
    "bytes": _change_bytes,
    "repeat": _repeat_bytes,
    "number": _change_number,
    "json": _change_json,
    "line": _change_line,
}


def changed(content: bytes, edits: tuple[Edit, ...]) -> bytes:
    """Return a file after some changes."""
    for edit in edits:
        content = CHANGES[edit.kind](content, edit)
    return content


def drawn_place(chance: random.Random) -> int:
    """Return a place; files are longer than others, and their heads are worth more changes."""
    return chance.randrange(2 ** chance.choice((4, 7, 10, 14, 18)))


def drawn_bytes(chance: random.Random) -> tuple[str, int, str]:
    """Return a kind of change of bytes, how many are removed, and what is put there."""
    kind = chance.choice(("put", "flip", "cut", "insert", "repeat", "number"))
    length = chance.choice((1, 2, 4, 8, 60, 1500))
    if kind == "put":
        text = chance.choice(("\xff", "\0", "\x7f\xff", "\xff\xff\xff\xff", "\0\0\0\0", "\x80\0\0\0"))
        return "bytes", len(text), text
    if kind == "flip":
        return "bytes", 1, chr(chance.randrange(256))
    if kind == "cut":
        return "bytes", length, ""
    if kind == "insert":
        return "bytes", 0, "".join(chr(chance.randrange(256)) for _ in range(min(length, 60)))
    if kind == "repeat":
        return "repeat", length * SHORTEST_STEP, ""
    return "number", 0, chance.choice(NUMBERS)


def drawn_values(kind: str, chance: random.Random) -> tuple[str, int, str]:
    """Return a change of a value of JSON or of a line of TOML."""
    return kind, int(chance.random() < 0.3), chance.choice(VALUES)
