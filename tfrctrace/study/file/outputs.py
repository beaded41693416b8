"""The outputs in a study file that refer to its quantities and parameters: tables, figures and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, get_args

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import flag, one_of, optional_text, refuse_unknown, text, texts
from tfrctrace.study.definition import (
    ComparisonPlan,
    FigureKind,
    FigurePlan,
    FigureStatus,
    PaperPlace,
    TablePlan,
)
from tfrctrace.study.file.names import file_name

if TYPE_CHECKING:
    from tfrctrace.base.toml import Table
    from tfrctrace.study.file.names import OutputNames

_OF_PAPER: Final = ("id", "setting", "set_up", "status", "states", "reason")
_DRAWN: Final = ("kind", "x", "y", "series", "where", "x_label", "y_label")


class OutputParser:
    """Reads the tables, figures and tests of a study."""

    def __init__(self, names: OutputNames) -> None:
        """Take the names that outputs may use."""
        self._names = names

    def table(self, table: Table, called: str) -> TablePlan:
        """Parse a `[[table]]`; errors call it `called`."""
        refuse_unknown(
            table, {"name", "title", "rows", "columns", "where", *_OF_PAPER}, f"`[[table]]` {called}"
        )
        name = _name(table, called)
        columns = texts(table["columns"], "columns") if "columns" in table else tuple(self._names.quantities)
        rows = texts(table.get("rows", []), "rows")
        for quantity in columns:
            self._names.check_quantity(called, quantity)
        for axis in rows:
            self._names.check_axis(called, axis)
        return TablePlan(
            name=name,
            title=text(table.get("title", name), "title"),
            rows=rows,
            columns=columns,
            where=self._names.where(table, called),
            paper=_place_in_paper(table),
        )

    def figure(self, table: Table, called: str) -> FigurePlan:
        """Parse a `[[figure]]`; errors call it `called`."""
        refuse_unknown(table, {"name", "title", *_DRAWN, *_OF_PAPER}, f"`[[figure]]` {called}")
        name = _name(table, called)
        title = text(table.get("title", name), "title")
        place = _place_in_paper(table)
        if place.status != "drawn":
            if place.id is None:
                raise UsageError(f"{called} is not drawn, so it needs the `id` that it has in the paper")
            if wrong := [key for key in _DRAWN if key in table]:
                raise UsageError(f"{called} has the status `{place.status}`, so it has no `{wrong[0]}`")
            return FigurePlan(name=name, title=title, kind="line", y="", where={}, paper=place)
        kind = cast("FigureKind", one_of(table.get("kind", "line"), get_args(FigureKind), "kind"))
        y = text(table.get("y"), f"y of {called}")
        if kind != "time series":
            self._names.check_quantity(called, y)
        has_axis = kind in {"line", "bars", "box"}
        if has_axis != ("x" in table):
            needs = "needs an `x`" if has_axis else "has no `x`"
            raise UsageError(f"{called}: a figure of kind `{kind}` {needs}")
        for axis in ("x", "series"):
            if axis in table:
                self._names.check_axis(called, text(table[axis], axis))
        return FigurePlan(
            name=name,
            title=title,
            kind=kind,
            y=y,
            x=table.get("x"),
            series=table.get("series"),
            where=self._names.where(table, called),
            x_label=optional_text(table, "x_label"),
            y_label=optional_text(table, "y_label"),
            paper=place,
        )

    def comparison(self, table: Table, called: str) -> ComparisonPlan:
        """Parse a `[[compare]]`; errors call it `called`."""
        refuse_unknown(table, {"quantity", "between", "where", "holm"}, f"`[[compare]]` {called}")
        quantity, between = text(table.get("quantity"), "quantity"), text(table.get("between"), "between")
        self._names.check_quantity(called, quantity)
        self._names.check_axis(called, between)
        self._names.refuse_repetition(called, [between])
        return ComparisonPlan(
            quantity=quantity,
            between=between,
            where=self._names.where(table, called),
            holm=flag(table.get("holm", False), "holm"),
        )


def _name(table: Table, called: str) -> str:
    """Return the name of the files of a table or figure: by default its id in the paper, or its number."""
    return file_name(table.get("name", str(table.get("id", called)).replace(" ", "-")), f"name of {called}")


def _place_in_paper(table: Table) -> PaperPlace:
    return PaperPlace(
        id=optional_text(table, "id"),
        setting=optional_text(table, "setting") or "",
        set_up=optional_text(table, "set_up") or "",
        status=cast("FigureStatus", one_of(table.get("status", "drawn"), get_args(FigureStatus), "status")),
        states=optional_text(table, "states") or "",
        reason=optional_text(table, "reason") or "",
    )
