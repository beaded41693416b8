"""JSON schemas, made of the types."""

from __future__ import annotations

from typing import Any

import msgspec


def schema_of(document: type, title: str) -> dict[str, Any]:
    """Return the JSON schema of a document; its docstring is the description."""
    made = msgspec.json.schema(document)
    name = made.pop("$ref").removeprefix("#/$defs/")
    top = made["$defs"].pop(name)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **top, "title": title, "$defs": made["$defs"]}
