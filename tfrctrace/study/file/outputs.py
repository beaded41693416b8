"""The outputs in a study file: quantities, and their tables, figures, tests and claims."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import (
    flag,
    listed,
    number,
    one_of,
    optional_text,
    refuse_unknown,
    table_of,
    text,
    texts,
)
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.runs.quantity import COLUMNS, Quantity, Term
from tfrctrace.study.definition import (
    GROUP,
    ComparisonPlan,
    Expectation,
    FigureKind,
    FigurePlan,
    Reduction,
    Reference,
    TablePlan,
)
from tfrctrace.study.file.claims import Trend, parse_claim
from tfrctrace.study.file.names import file_name, refuse_twice, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Kind
    from tfrctrace.study.definition import RunRule, Value, Where


def quantity_of(table: Table, called: str) -> Quantity:
    """Parse a `[[quantity]]`; errors call it `called`."""
    refuse_unknown(
        table,
        {"name", "metric", "column", "replay", "group", "over", "flows", "timescale"},
        f"`[[quantity]]` {called}",
    )
    kinds: list[Kind] = [kind for kind in ("metric", "column", "replay") if kind in table]
    if len(kinds) != 1:
        raise UsageError(f"{called} needs one of `metric`, `column` and `replay`")
    (kind,) = kinds
    name = text(table[kind], kind)
    if kind == "metric":
        one_of(name, BY_NAME, "metric")
    if kind == "column" and name not in COLUMNS:
        raise UsageError(
            f"{called}: the table of flows has no numbers `{name}`", hint="docs/columns.md has its columns"
        )
    timescale_s = (
        parse_duration_ns(text(table["timescale"], "timescale")) / 1e9 if "timescale" in table else None
    )
    if (kind == "metric" and name == "cov") != (timescale_s is not None):
        raise UsageError(f"{called}: `cov`, and nothing else, needs a `timescale`, such as `1s`")
    flows = one_of(table.get("flows", "mean"), get_args(Reduction), "flows")
    group, over = (optional_text(table, key) for key in ("group", "over"))
    if over is not None and (group is None or flows == "each"):
        raise UsageError(f"{called}: `over` divides by another group, so `group` must be given, not `each`")
    term = Term(name, "" if flows == "each" else flows, kind, group, timescale_s)
    return Quantity(
        file_name(table.get("name", name), f"name of {called}"),
        term,
        None if over is None else replace(term, group=over),
    )


class OutputParser:
    """Reads the parts of a study that refer to its quantities and parameters, by name."""

    def __init__(self, quantities: Sequence[Quantity], runs: RunRule) -> None:
        """Take the quantities, of which none may be called as another one, and the parameters of the runs."""
        self._quantities = [quantity.name for quantity in quantities]
        refuse_twice(self._quantities, "quantity")
        self._by_name = {quantity.name: quantity for quantity in quantities}
        self._parameters = runs.parameters
        self._repetition = runs.repetition
        self._axes = (*runs.parameters, GROUP)

    def table(self, table: Table, called: str) -> TablePlan:
        """Parse a `[[table]]`; errors call it `called`."""
        refuse_unknown(table, {"name", "title", "rows", "columns", "where"}, f"`[[table]]` {called}")
        name = file_name(table.get("name", called.replace(" ", "-")), f"name of {called}")
        columns = texts(table["columns"], "columns") if "columns" in table else tuple(self._quantities)
        rows = texts(table.get("rows", []), "rows")
        for quantity in columns:
            self._check_quantity(called, quantity)
        for axis in rows:
            self._check_axis(called, axis)
        return TablePlan(
            name=name,
            title=text(table.get("title", name), "title"),
            rows=rows,
            columns=columns,
            where=self._where(table, called),
        )

    def figure(self, table: Table, called: str) -> FigurePlan:
        """Parse a `[[figure]]`; errors call it `called`."""
        refuse_unknown(
            table,
            {"name", "title", "kind", "x", "y", "series", "where", "x_label", "y_label"},
            f"`[[figure]]` {called}",
        )
        name = file_name(table.get("name", called.replace(" ", "-")), f"name of {called}")
        kind = cast("FigureKind", one_of(table.get("kind", "line"), get_args(FigureKind), "kind"))
        y = text(table.get("y"), f"y of {called}")
        if kind != "time series":
            self._check_quantity(called, y)
        has_axis = kind in {"line", "bars", "box"}
        if has_axis != ("x" in table):
            needs = "needs an `x`" if has_axis else "has no `x`"
            raise UsageError(f"{called}: a figure of kind `{kind}` {needs}")
        for axis in ("x", "series"):
            if axis in table:
                self._check_axis(called, text(table[axis], axis))
        return FigurePlan(
            name=name,
            title=text(table.get("title", name), "title"),
            kind=kind,
            y=y,
            x=table.get("x"),
            series=table.get("series"),
            where=self._where(table, called),
            x_label=optional_text(table, "x_label"),
            y_label=optional_text(table, "y_label"),
        )

    def comparison(self, table: Table, called: str) -> ComparisonPlan:
        """Parse a `[[compare]]`; errors call it `called`."""
        refuse_unknown(table, {"quantity", "between", "where", "holm"}, f"`[[compare]]` {called}")
        quantity, between = text(table.get("quantity"), "quantity"), text(table.get("between"), "between")
        self._check_quantity(called, quantity)
        self._check_axis(called, between)
        self._refuse_repetition(called, [between])
        return ComparisonPlan(
            quantity=quantity,
            between=between,
            where=self._where(table, called),
            holm=flag(table.get("holm", False), "holm"),
        )

    def expectation(self, table: Table, called: str) -> Expectation:
        """Parse an `[[expect]]`; errors call it `called`."""
        refuse_unknown(table, {"claim", "says", "where", "holds"}, f"`[[expect]]` {called}")
        claim = parse_claim(text(table.get("claim"), f"claim of {called}"))
        for term in claim.terms():
            self._check_quantity(called, term.quantity)
            for parameter, _ in term.where:
                self._check_parameter(called, parameter)
            self._refuse_repetition(called, [parameter for parameter, _ in term.where])
        if isinstance(claim, Trend):
            self._check_parameter(called, claim.parameter)
            self._refuse_repetition(called, [claim.parameter])
        return Expectation(
            claim=claim,
            says=text(table.get("says", claim.text), "says"),
            where=self._where(table, called),
            holds=flag(table.get("holds", True), "holds"),
        )

    def references(self, table: Table, called: str) -> list[Reference]:
        """Return one reference for `value`, or one for each of `values`: pairs of a value of `by` and it."""
        refuse_unknown(
            table,
            {"quantity", "source", "group", "where", "value", "by", "values"},
            f"`[[reference]]` {called}",
        )
        quantity = text(table.get("quantity"), "quantity")
        self._check_quantity(called, quantity)
        if ("value" in table) == ("values" in table) or ("by" in table) != ("values" in table):
            raise UsageError(f"{called} needs a `value`, or `by` and `values`")
        where = self._where(table, called)
        pairs: list[tuple[Where, float]]
        if "values" in table:
            by = text(table["by"], "by")
            self._check_parameter(called, by)
            pairs = [
                ({**where, by: (_parameter_value(at, by),)}, number(value, "values"))
                for at, value in (_pair(one, called) for one in listed(table["values"], "values"))
            ]
        else:
            pairs = [(where, number(table["value"], "value"))]
        group = optional_text(table, "group")
        if group is None and self._by_name[quantity].is_about_groups:
            raise UsageError(f"{called}: `{quantity}` has a value for each label, so `group` must name one")
        source = text(table.get("source"), f"source of {called}")
        return [
            Reference(quantity=quantity, source=source, where=own, group=group, value=value)
            for own, value in pairs
        ]

    def _where(self, table: Table, called: str) -> Where:
        conditions = table_of(table.get("where", {}), f"`where` of {called}")
        for axis in conditions:
            self._check_axis(called, axis)
        return {
            axis: tuple(
                _parameter_value(one, axis) for one in (wanted if isinstance(wanted, list) else [wanted])
            )
            for axis, wanted in conditions.items()
        }

    def _refuse_repetition(self, called: str, names: Iterable[str]) -> None:
        """Raise where means are compared, each of which is over the repetitions."""
        if self._repetition is not None and self._repetition in names:
            raise UsageError(
                f"{called}: `{self._repetition}` is the repetition, over which means are taken",
                hint="without `repetition` below `[runs]` every run is a scenario of its own",
            )

    def _check_quantity(self, called: str, name: str) -> None:
        if name not in self._quantities:
            raise unknown(f"{called}: quantity", name, self._quantities)

    def _check_parameter(self, called: str, name: str) -> None:
        if name not in self._parameters:
            raise unknown(f"{called}: parameter", name, self._parameters)

    def _check_axis(self, called: str, name: str) -> None:
        if name not in self._axes:
            raise unknown(f"{called}: parameter", name, self._axes)


def _pair(value: object, called: str) -> list[Any]:
    pair = listed(value, "values")
    if len(pair) != 2:
        raise UsageError(f"{called}: `values` has pairs such as `[4, 0.98]`, not `{value}`")
    return pair


def _parameter_value(value: object, place: str) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError(f"`{place}` is neither a number nor a text, but `{value}`")
    return value
