"""A study file (TOML, see docs/experiments.md): read with bounds, and every name in it checked.

Errors are reported before the first run is read: a misspelt quantity must not cost an hour.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import FilterError, InputError, UsageError, input_problem
from tfrctrace.base.toml import listed, number, read_toml, refuse_unknown, table_of, text
from tfrctrace.study.definition import Study
from tfrctrace.study.file.names import refuse_twice, unknown
from tfrctrace.study.file.outputs import OutputParser, quantity_of
from tfrctrace.study.file.run_settings import label_rules, parse_measuring_plan, run_rule
from tfrctrace.trace.measuring import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.study.definition import MeasuringPlan

MAX_FILE_BYTES: Final = 1_000_000
MAX_PARTS: Final = 1_000
"""Tables of one kind: quantities, figures, claims and so on."""

_DEFAULT_CONFIDENCE: Final = 0.95
_PARTS: Final = ("quantity", "table", "figure", "compare", "expect", "reference")


def read_study(path: str, *, allow_code: bool = False) -> Study:
    """Return the study in the file `path`, which may name classes (`module:Class`) only if `allow_code`.

    Raises `InputError` for what cannot be read or cannot be.
    """
    try:
        return _study(path, read_toml(path, MAX_FILE_BYTES), allow_code=allow_code)
    except (UsageError, FilterError) as error:
        raise InputError([input_problem(path, "study", str(error), hint=error.hint)]) from error


def _study(path: str, content: Table, *, allow_code: bool) -> Study:
    refuse_unknown(
        content, {"title", "description", "confidence", "runs", "measure", "labels", *_PARTS}, "the study"
    )
    folder = os.path.dirname(path)
    runs = run_rule(table_of(content.get("runs", {}), "`[runs]`"), folder)
    quantities = tuple(_parse_each(content, "quantity", quantity_of))
    labels = label_rules(table_of(content.get("labels", {}), "`[labels]`"))
    measure = parse_measuring_plan(
        table_of(content.get("measure", {}), "`[measure]`"),
        labels,
        folder,
        runs.parameters,
        allow_code=allow_code,
    )
    metrics = [quantity.term.name for quantity in quantities if quantity.term.kind == "metric"]
    check_names(metrics, capacity=measure.capacity, weight=measure.weight, step=measure.step)
    _check_replays(quantities, measure)
    plans = OutputParser(quantities, runs)
    return Study(
        path=path,
        folder=folder,
        title=text(content.get("title", os.path.splitext(os.path.basename(path))[0]), "title"),
        description=text(content["description"], "description") if "description" in content else "",
        confidence=_confidence(content.get("confidence", _DEFAULT_CONFIDENCE)),
        runs=runs,
        measure=measure,
        quantities=quantities,
        tables=_with_unique_names(_parse_each(content, "table", plans.table), "table"),
        figures=_with_unique_names(_parse_each(content, "figure", plans.figure), "figure"),
        comparisons=tuple(_parse_each(content, "compare", plans.comparison)),
        expectations=tuple(_parse_each(content, "expect", plans.expectation)),
        references=tuple(one for many in _parse_each(content, "reference", plans.references) for one in many),
    )


def _check_replays(quantities: Iterable[Quantity], measure: MeasuringPlan) -> None:
    known = measure.replay.algorithms if measure.replay else ()
    for quantity in quantities:
        term = quantity.term
        if term.kind == "replay" and term.name not in known:
            raise unknown(f"quantity `{quantity.name}`: replayed algorithm", term.name, known)


def _parse_each(content: Table, kind: str, make: Callable[[Table, str], Any]) -> Iterator[Any]:
    """Give what `make` returns for each `[[kind]]` and its name in errors."""
    tables = listed(content.get(kind, []), kind)
    if len(tables) > MAX_PARTS:
        raise UsageError(f"more than {MAX_PARTS} tables `[[{kind}]]`")
    for place, table in enumerate(tables, start=1):
        called = f"{kind} {place}"
        yield make(table_of(table, called), called)


def _with_unique_names(made: Iterator[Any], kind: str) -> tuple[Any, ...]:
    parts = tuple(made)
    refuse_twice([part.name for part in parts], kind)
    return parts


def _confidence(value: object) -> float:
    level = number(value, "confidence")
    if not 0 < level < 1:
        raise UsageError(f"`confidence` is not between 0 and 1, but `{value}`")
    return level
