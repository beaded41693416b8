"""A study file (TOML, see docs/experiments.md): read with bounds, and every name in it checked.

What is wrong is said before the first run is read: a misspelt quantity must not cost an hour.
"""

from __future__ import annotations

import csv
import os
import re
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from tfrctrace.bitrates import parse_capacity_bps
from tfrctrace.durations import parse_duration_ns
from tfrctrace.errors import InputError, UsageError, input_problem
from tfrctrace.experiment.claims import Trend, parse_claim
from tfrctrace.experiment.pattern import parameter_names
from tfrctrace.experiment.study import (
    GROUP,
    RESERVED,
    ComparisonPlan,
    Expectation,
    FigureKind,
    FigurePlan,
    Measuring,
    Quantity,
    Reduction,
    Reference,
    RunRule,
    Study,
    TablePlan,
)
from tfrctrace.labels import check_weights, parse_rule
from tfrctrace.measuring import Basis, check_names
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.parsers.schema import FLOWS
from tfrctrace.tomlfile import (
    flag,
    listed,
    number,
    one_of,
    read_toml,
    refuse_unknown,
    table_of,
    text,
    texts,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tfrctrace.experiment.study import Value, Where
    from tfrctrace.tomlfile import Table

MAX_FILE_BYTES: Final = 1_000_000
MAX_PARTS: Final = 1_000
"""Tables of one kind: quantities, figures, claims and so on."""

FILE_COLUMN: Final = "file"
"""Of a table of runs: the run's path."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_NUMERIC: Final = {column.name for column in FLOWS if column.type != "string"}
_DEFAULT_CONFIDENCE: Final = 0.95
_PARTS: Final = ("quantity", "table", "figure", "compare", "expect", "reference")


def read_study(path: str) -> Study:
    """Return the study in the file `path`. Raises `InputError` for what cannot be read or cannot be."""
    try:
        return _study(path, read_toml(path, MAX_FILE_BYTES))
    except UsageError as error:
        raise InputError([input_problem(path, "study", str(error), hint=error.hint)]) from error


def _study(path: str, content: Table) -> Study:
    refuse_unknown(
        content, {"title", "description", "confidence", "runs", "measure", "labels", *_PARTS}, "the study"
    )
    folder = os.path.dirname(path)
    runs = _runs(table_of(content.get("runs", {}), "`[runs]`"), folder)
    quantities = tuple(_parts(content, "quantity", _quantity))
    measure = _measure(table_of(content.get("measure", {}), "`[measure]`"), _labels(content))
    metrics = [quantity.metric for quantity in quantities if quantity.metric is not None]
    check_names(metrics, capacity=measure.capacity, weight=measure.weight, step=measure.step)
    names = _Names(quantities, runs)
    return Study(
        path=path,
        folder=folder,
        title=text(content.get("title", os.path.splitext(os.path.basename(path))[0]), "title"),
        description=text(content["description"], "description") if "description" in content else "",
        confidence=_confidence(content.get("confidence", _DEFAULT_CONFIDENCE)),
        runs=runs,
        measure=measure,
        quantities=quantities,
        tables=_named(_parts(content, "table", names.table), "table"),
        figures=_named(_parts(content, "figure", names.figure), "figure"),
        comparisons=tuple(_parts(content, "compare", names.comparison)),
        expectations=tuple(_parts(content, "expect", names.expectation)),
        references=tuple(one for many in _parts(content, "reference", names.references) for one in many),
    )


def _parts(content: Table, kind: str, make: Callable[[Table, str], Any]) -> Iterator[Any]:
    """Give what `make` makes of each `[[kind]]`; it is told how to call that in an error."""
    tables = listed(content.get(kind, []), kind)
    if len(tables) > MAX_PARTS:
        raise UsageError(f"more than {MAX_PARTS} tables `[[{kind}]]`")
    for place, table in enumerate(tables, start=1):
        called = f"{kind} {place}"
        yield make(table_of(table, called), called)


def _named(made: Iterator[Any], kind: str) -> tuple[Any, ...]:
    parts = tuple(made)
    _refuse_twice([part.name for part in parts], kind)
    return parts


def _refuse_twice(names: Sequence[str], kind: str) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"there is more than one {kind} `{name}`", hint="give each a `name` of its own")


def _confidence(value: object) -> float:
    level = number(value, "confidence")
    if not 0 < level < 1:
        raise UsageError(f"`confidence` is not between 0 and 1, but `{value}`")
    return level


def _runs(table: Table, folder: str) -> RunRule:
    refuse_unknown(table, {"files", "pattern", "table", "repetition"}, "`[runs]`")
    pattern = text(table["pattern"], "pattern") if "pattern" in table else None
    listing = text(table["table"], "table") if "table" in table else None
    if "files" not in table and listing is None:
        raise UsageError("the study names no runs", hint='write `files = ["runs/*.pcap"]` below `[runs]`')
    if pattern is not None and listing is not None:
        raise UsageError(
            "`pattern` and `table` cannot be together", hint="parameters come from names or from a table"
        )
    parameters: tuple[str, ...] = ()
    if pattern is not None:
        parameters = parameter_names(pattern)
    elif listing is not None:
        parameters = _table_parameters(os.path.join(folder, listing), listing)
    for name in parameters:
        if name in RESERVED:
            raise UsageError(
                f"no parameter can be called `{name}`", hint="a column of the results is called so"
            )
    rule = RunRule(
        files=texts(table["files"], "files") if "files" in table else (),
        pattern=pattern,
        table=listing,
        parameters=parameters,
        repetition=text(table["repetition"], "repetition") if "repetition" in table else None,
    )
    if rule.repetition is not None and rule.repetition not in parameters:
        raise _unknown("repetition", rule.repetition, parameters)
    return rule


def _table_parameters(path: str, called: str) -> tuple[str, ...]:
    """Return the names of the columns of a table of runs, but that of the file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            names = [name.strip() for name in next(csv.reader(file), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the table of runs `{called}` cannot be read: {error}") from error
    if FILE_COLUMN not in names:
        raise UsageError(f"the table of runs `{called}` has no column `{FILE_COLUMN}`")
    _refuse_twice(names, "column")
    return tuple(name for name in names if name != FILE_COLUMN)


def _labels(content: Table) -> tuple[str, ...]:
    """Return the rules; one label may have several, of which any suffices."""
    table = table_of(content.get("labels", {}), "`[labels]`")
    rules = tuple(f"{label}={rule}" for label, rules in table.items() for rule in texts(rules, label))
    for rule in rules:
        parse_rule(rule)
    return rules


_MEASURED_TEXTS: Final = ("window", "warmup", "capacity", "step", "filter", "input_format", "layer")


def _measure(table: Table, labels: tuple[str, ...]) -> Measuring:
    refuse_unknown(
        table,
        {*_MEASURED_TEXTS, "basis", "only_labelled", "least_packets", "dissect", "tfrc", "weight"},
        "`[measure]`",
    )
    for name in ("window", "warmup", "step"):
        if name in table:
            parse_duration_ns(text(table[name], name))
    if "capacity" in table:
        parse_capacity_bps(text(table["capacity"], "capacity"))
    given: dict[str, Any] = {name: text(table[name], name) for name in _MEASURED_TEXTS if name in table}
    if "basis" in table:
        given["basis"] = one_of(table["basis"], get_args(Basis), "basis")
    if "only_labelled" in table:
        given["only_labelled"] = flag(table["only_labelled"], "only_labelled")
    if "least_packets" in table:
        given["least_packets"] = max(whole(table["least_packets"], "least_packets"), 1)
    if "dissect" in table:
        given["dissect"] = texts(table["dissect"], "dissect")
    for name in ("tfrc", "weight"):
        if name in table:
            numbers = table_of(table[name], f"`{name}`")
            given[name] = {key: number(value, key) for key, value in numbers.items()}
    check_weights(given.get("weight", {}))
    return Measuring(labels=labels, **given)


def _quantity(table: Table, called: str) -> Quantity:
    refuse_unknown(
        table, {"name", "metric", "column", "group", "over", "flows", "timescale"}, f"`[[quantity]]` {called}"
    )
    metric = text(table["metric"], "metric") if "metric" in table else None
    column = text(table["column"], "column") if "column" in table else None
    if (metric is None) == (column is None):
        raise UsageError(f"{called} needs either a `metric` or a `column`")
    if metric is not None:
        one_of(metric, BY_NAME, "metric")
    if column is not None and column not in _NUMERIC:
        raise UsageError(
            f"{called}: the table of flows has no numbers `{column}`", hint="docs/columns.md has its columns"
        )
    timescale_s = (
        parse_duration_ns(text(table["timescale"], "timescale")) / 1e9 if "timescale" in table else None
    )
    if (metric == "cov") != (timescale_s is not None):
        raise UsageError(f"{called}: `cov`, and nothing else, needs a `timescale`, such as `1s`")
    quantity = Quantity(
        name=_file_name(table.get("name", metric or column), f"name of {called}"),
        metric=metric,
        column=column,
        group=text(table["group"], "group") if "group" in table else None,
        over=text(table["over"], "over") if "over" in table else None,
        flows=cast("Reduction", one_of(table.get("flows", "mean"), get_args(Reduction), "flows")),
        timescale_s=timescale_s,
    )
    if quantity.over is not None and (quantity.group is None or quantity.flows == "each"):
        raise UsageError(f"{called}: `over` divides by another group, so `group` must be given, not `each`")
    return quantity


def _file_name(value: object, place: str) -> str:
    """Return a name that is also that of files."""
    name = text(value, place)
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{place}` cannot be `{name}`", hint="letters, digits, `_`, `-` and `.`, as files are called so"
        )
    return name


def _unknown(place: str, name: str, known: Sequence[str]) -> UsageError:
    there = ", ".join(known)
    return UsageError(
        f"{place}: there is no `{name}`", hint=f"there are {there}" if there else "there are none"
    )


def is_about_groups(quantity: Quantity) -> bool:
    """Return whether a quantity is told of each label, not of all flows or of one label."""
    of_groups = quantity.column is not None or BY_NAME[quantity.metric or ""].subject not in {"set", "pair"}
    return of_groups and quantity.group is None


class _Names:
    """Reads the parts of a study that speak of quantities and parameters, and knows which there are."""

    def __init__(self, quantities: Sequence[Quantity], runs: RunRule) -> None:
        self._quantities = [quantity.name for quantity in quantities]
        _refuse_twice(self._quantities, "quantity")
        self._by_name = {quantity.name: quantity for quantity in quantities}
        self._parameters = runs.parameters
        self._repetition = runs.repetition
        self._axes = (*runs.parameters, GROUP)

    def table(self, table: Table, called: str) -> TablePlan:
        refuse_unknown(table, {"name", "title", "rows", "columns", "where"}, f"`[[table]]` {called}")
        name = _file_name(table.get("name", called.replace(" ", "-")), f"name of {called}")
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
        refuse_unknown(
            table,
            {"name", "title", "kind", "x", "y", "series", "where", "x_label", "y_label"},
            f"`[[figure]]` {called}",
        )
        name = _file_name(table.get("name", called.replace(" ", "-")), f"name of {called}")
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
            x_label=text(table["x_label"], "x_label") if "x_label" in table else None,
            y_label=text(table["y_label"], "y_label") if "y_label" in table else None,
        )

    def comparison(self, table: Table, called: str) -> ComparisonPlan:
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
        group = text(table["group"], "group") if "group" in table else None
        if group is None and is_about_groups(self._by_name[quantity]):
            raise UsageError(f"{called}: `{quantity}` is told of each label, so `group` must say of which")
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
            raise _unknown(f"{called}: quantity", name, self._quantities)

    def _check_parameter(self, called: str, name: str) -> None:
        if name not in self._parameters:
            raise _unknown(f"{called}: parameter", name, self._parameters)

    def _check_axis(self, called: str, name: str) -> None:
        if name not in self._axes:
            raise _unknown(f"{called}: parameter", name, self._axes)


def _pair(value: object, called: str) -> list[Any]:
    pair = listed(value, "values")
    if len(pair) != 2:
        raise UsageError(f"{called}: `values` has pairs such as `[4, 0.98]`, not `{value}`")
    return pair


def _parameter_value(value: object, place: str) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError(f"`{place}` is neither a number nor a text, but `{value}`")
    return value
