"""Whether a record from the cache has the parts that its task needs: anybody may have written the file."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBER: Final = (int, float)
OPTIONAL_NUMBER: Final = (int, float, NoneType)
OPTIONAL_TEXT: Final = (str, NoneType)

COMMON: Final[Mapping[str, Any]] = {
    "failed": bool,
    "problems": [{**dict.fromkeys(Problem.__annotations__, (str, int, NoneType)), "flows": [int]}],
}
"""Shape of what every record has."""


def has_shape(value: object, shape: Any) -> bool:  # noqa: ANN401  a type, or types in tuples, lists and dicts
    """Return whether `value` is of the type `shape`.

    A tuple holds alternatives, a list the shape of each item, a dict that of each name (all under `str`).
    """
    if isinstance(shape, tuple):
        return any(has_shape(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict) or (str not in shape and value.keys() != shape.keys()):
            return False
        return all(has_shape(part, shape[str if str in shape else name]) for name, part in value.items())
    return isinstance(value, shape)
