"""Names in a study file: each once, fit for files, and known; values of parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import table_of, text
from tfrctrace.study.definition import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.study.definition import RunRules, Value, Where

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)


def refuse_twice(names: Sequence[str], kind: str) -> None:
    """Raise `UsageError` if a name of this `kind` is there twice."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"there is more than one {kind} `{name}`", hint="give each a `name` of its own")


def file_name(value: object, place: str) -> str:
    """Return a name that is also that of files."""
    name = text(value, place)
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{place}` cannot be `{name}`", hint="letters, digits, `_`, `-` and `.`, as files are called so"
        )
    return name


def unknown(place: str, name: str, known: Sequence[str]) -> UsageError:
    """Return the error for a name that is not among those that are `known`."""
    there = ", ".join(known)
    return UsageError(
        f"{place}: there is no `{name}`", hint=f"there are {there}" if there else "there are none"
    )


def parameter_value(value: object, place: str) -> Value:
    """Return a value that a parameter can have."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError(f"`{place}` is neither a number nor a text, but `{value}`")
    return value


class OutputNames:
    """The quantities and parameters of a study, to which its outputs refer by name."""

    def __init__(self, quantities: Sequence[Quantity], runs: RunRules) -> None:
        """Take the quantities, of which none may be called as another one, and the parameters of the runs."""
        refuse_twice([quantity.name for quantity in quantities], "quantity")
        self.quantities = {quantity.name: quantity for quantity in quantities}
        self._parameters = runs.parameters
        self._repetition = runs.repetition
        self._axes = (*runs.parameters, GROUP)

    def where(self, table: Table, called: str) -> Where:
        """Parse `where` of a table that errors call `called`."""
        conditions = table_of(table.get("where", {}), f"`where` of {called}")
        for axis in conditions:
            self.check_axis(called, axis)
        return {
            axis: tuple(
                parameter_value(one, axis) for one in (wanted if isinstance(wanted, list) else [wanted])
            )
            for axis, wanted in conditions.items()
        }

    def refuse_repetition(self, called: str, names: Iterable[str]) -> None:
        """Raise where means are compared, each of which is over the repetitions."""
        if self._repetition is not None and self._repetition in names:
            raise UsageError(
                f"{called}: `{self._repetition}` is the repetition, over which means are taken",
                hint="without `repetition` below `[runs]` every run is a scenario of its own",
            )

    def check_quantity(self, called: str, name: str) -> None:
        """Raise unless there is a quantity `name`."""
        if name not in self.quantities:
            raise unknown(f"{called}: quantity", name, list(self.quantities))

    def check_parameter(self, called: str, name: str) -> None:
        """Raise unless runs have a parameter `name`."""
        if name not in self._parameters:
            raise unknown(f"{called}: parameter", name, self._parameters)

    def check_axis(self, called: str, name: str) -> None:
        """Raise unless `name` is a parameter or `group`."""
        if name not in self._axes:
            raise unknown(f"{called}: parameter", name, self._axes)
