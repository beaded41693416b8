"""Whether a document is as its JSON schema says: of what is read back, as anybody may have changed it.

Of JSON Schema 2020-12 only what `json_schema` writes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_IS_OF: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    # Python reads NaN and infinity, which JSON has not
    "number": lambda value: (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    ),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def first_complaint(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return what in `value` is against `schema`, and where; None if nothing is."""
    return next(_complaints(value, schema, "the document"), None)


def _complaints(value: object, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if "anyOf" in schema:
        if all(any(True for _ in _complaints(value, one, where)) for one in schema["anyOf"]):
            yield f"{where} has an unexpected type"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is not one of {', '.join(schema['enum'])}"
    kinds = schema.get("type", ())
    named = [kinds] if isinstance(kinds, str) else kinds
    if named and not any(_IS_OF[kind](value) for kind in named):
        yield f"{where} is no {' or '.join(named)}"
    elif isinstance(value, (int, float)):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where} is out of range"
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _complaints(item, schema.get("items", {}), f"{where}[{place}]")
    elif isinstance(value, dict):
        yield from _complaints_of_object(value, schema, where)


def _complaints_of_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where} has no `{name}`"
    for name, part in value.items():
        if name in properties or others:
            yield from _complaints(part, properties.get(name, others), f"`{name}` of {where}")
        elif others is False:
            yield f"{where} has an unknown field `{name}`"
