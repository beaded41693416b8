"""A study file (TOML, see docs/experiments.md): read with bounds, and every name in it checked.

Errors are reported before the first run is read: a misspelt quantity must not cost an hour.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import FilterError, InputError, UsageError, input_problem
from tfrctrace.base.toml import listed, number, optional_text, read_toml, refuse_unknown, table_of, text
from tfrctrace.study.definition import Study
from tfrctrace.study.file.claims_and_references import ClaimParser, check_figures
from tfrctrace.study.file.judging import judging_of
from tfrctrace.study.file.named_values import named_values, with_values
from tfrctrace.study.file.names import OutputNames, refuse_twice, unknown
from tfrctrace.study.file.outputs import OutputParser
from tfrctrace.study.file.quantities import quantity_of
from tfrctrace.study.file.run_settings import label_rules, parse_measuring_plan, run_rules
from tfrctrace.trace.measuring import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.study.definition import MeasuringPlan

MAX_FILE_BYTES: Final = 1_000_000
MAX_PARTS: Final = 1_000
"""Tables of one kind: quantities, figures, claims and so on."""

_DEFAULT_CONFIDENCE: Final = 0.95
_PARTS: Final = ("quantity", "table", "figure", "compare", "expect", "reference")
_KEYS: Final = {
    *(
        "title",
        "paper",
        "description",
        "set_up",
        "confidence",
        "paired",
        "made_by",
        "cannot_tell",
        "runs",
        "measure",
        "labels",
        "judge",
        "scenario",
        "criterion",
    ),
    *_PARTS,
}

_INSTALLED: Final = Path(__file__).parents[1] / "installed"


def find_study(name: str) -> str:
    """Return the path of the study that comes with the program under a name; else the name is a path."""
    path = _INSTALLED / f"{name}.toml"
    return str(path) if re.fullmatch(r"[a-z0-9-]+", name) and path.is_file() else name


def read_study(
    path: str,
    *,
    runs: str | None = None,
    allow_code: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Study:
    """Return the study in the file `path`, which may name classes (`module:Class`) only if `allow_code`.

    Its runs are in the folder `runs`, that of the file if not given. `settings` replace those of its
    `[values]` that have the same names. Raises `InputError` for what cannot be read or cannot be.
    """
    folder = os.path.dirname(path) if runs is None else runs
    try:
        content = read_toml(path, MAX_FILE_BYTES)
        values = named_values(content)
        values.update((name, value) for name, value in (settings or {}).items() if name in values)
        filled = with_values(content, values)
        return replace(_study(path, folder, filled, allow_code=allow_code), settings=values)
    except (UsageError, FilterError) as error:
        raise InputError([input_problem(path, "study", str(error), hint=error.hint)]) from error


def _study(path: str, folder: str, content: Table, *, allow_code: bool) -> Study:
    refuse_unknown(content, _KEYS, "the study")
    labels = label_rules(table_of(content.get("labels", {}), "`[labels]`"))
    measuring = table_of(content.get("measure", {}), "`[measure]`")

    def read_measure(own: Table, own_labels: Table, parameters: Sequence[str]) -> MeasuringPlan:
        return parse_measuring_plan(
            {**measuring, **own},
            label_rules(own_labels) or labels,
            os.path.dirname(path),
            parameters,
            allow_code=allow_code,
        )

    runs = run_rules(content, folder, read_measure)
    measure = read_measure({}, {}, runs.parameters)
    quantities = tuple(_parse_each(content, "quantity", quantity_of))
    metrics = [quantity.term.name for quantity in quantities if quantity.term.kind == "metric"]
    for plan in (rule.measure or measure for rule in runs.rules):
        check_names(metrics, capacity=plan.capacity, weight=plan.weight, step=plan.step)
        _check_replays(quantities, plan)
    names = OutputNames(quantities, runs)
    outputs, claims = OutputParser(names), ClaimParser(names)
    tables = _with_unique_names(_parse_each(content, "table", outputs.table), "table")
    figures = _with_unique_names(_parse_each(content, "figure", outputs.figure), "figure")
    expectations = tuple(_parse_each(content, "expect", claims.expectation))
    references = tuple(one for many in _parse_each(content, "reference", claims.references) for one in many)
    check_figures(tables, figures, expectations, references)
    return Study(
        path=path,
        folder=folder,
        settings={},
        title=text(content.get("title", os.path.splitext(os.path.basename(path))[0]), "title"),
        paper=optional_text(content, "paper") or "",
        description=optional_text(content, "description") or "",
        set_up=optional_text(content, "set_up") or "",
        cannot_tell=optional_text(content, "cannot_tell") or "",
        confidence=_confidence(content.get("confidence", _DEFAULT_CONFIDENCE)),
        runs=runs,
        measure=measure,
        quantities=(*quantities, *claims.quantities_at_times()),
        tables=tables,
        figures=figures,
        comparisons=tuple(_parse_each(content, "compare", outputs.comparison)),
        expectations=expectations,
        references=references,
        judging=judging_of(content, names, measure.labels),
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
