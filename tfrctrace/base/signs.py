"""The signs of limits and claims: `<`, `<=`, `>`, `>=` and `==`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SIGNS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
"""Longer ones first, as a parser tries them. Numbers and columns of frames can be compared."""
