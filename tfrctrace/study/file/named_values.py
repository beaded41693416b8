"""Values that a study file states once, in `[values]`, and uses in any of its strings: `${warmup}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import table_of, text
from tfrctrace.study.file.names import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.base.toml import Table

_USE: Final = re.compile(r"\$\{([^{}]*)\}")


def named_values(content: Table) -> dict[str, str]:
    """Return the `[values]` of a study."""
    return {
        name: text(value, name) for name, value in table_of(content.get("values", {}), "`[values]`").items()
    }


def with_values(content: Table, values: Mapping[str, str]) -> Table:
    """Return a study without its `[values]`; these stand in the strings that use them."""
    return {name: _filled(part, values) for name, part in content.items() if name != "values"}


def _filled(part: Any, values: Mapping[str, str]) -> Any:  # noqa: ANN401  any value of TOML
    if isinstance(part, str):
        return _USE.sub(lambda found: _value(found[1], values), part)
    if isinstance(part, list):
        return [_filled(one, values) for one in part]
    if isinstance(part, dict):
        return {name: _filled(one, values) for name, one in part.items()}
    return part


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        raise (
            unknown("`[values]`", name, list(values))
            if values
            else UsageError(f"`${{{name}}}` is used, but the study has no `[values]`")
        )
    return values[name]
