"""The tables and figures of a study, made of the cells of its results.

A label, or a value of a parameter, has the same colour in all figures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.figures.charts import MAX_SERIES, Chart, Series
from tfrctrace.reports.printers.means_table import Column, Estimate, Grid
from tfrctrace.reports.units import counted
from tfrctrace.study.definition import GROUP, RATE
from tfrctrace.study.results.cells import is_same, sorted_values
from tfrctrace.study.results.pivot import pivot
from tfrctrace.trace.labels import parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.metrics.results.study import Series as TimeSeries
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.study.definition import FigurePlan, Study, TablePlan, Value, Where
    from tfrctrace.study.find_runs import Run
    from tfrctrace.study.results.pivot import PivotCell
    from tfrctrace.study.run_study import StudyResults

_TIME_LABEL: Final = "time (s)"


def grid_of(results: StudyResults, plan: TablePlan) -> Grid:
    """Return the table that `plan` asks for; a row is about one group at most."""
    study = results.study
    cells = results.cells_by([*plan.rows, *plan.where])

    def placed(axes: Sequence[str]) -> dict[str, list[PivotCell]]:
        return {
            quantity: pivot(
                cells,
                quantity,
                axes,
                where=plan.where,
                references=study.references,
                level=study.confidence,
                runs=study.runs,
            )
            for quantity in plan.columns
        }

    axes, found = plan.rows, placed(plan.rows)
    if any(max(Counter(one.at for one in own).values(), default=0) > 1 for own in found.values()):
        axes = (*plan.rows, GROUP)
        found = placed(axes)
    columns = {quantity: own[0].cell.unit for quantity, own in found.items() if own}
    rows: dict[tuple[Value, ...], dict[str, Estimate]] = {}
    for quantity, own in found.items():
        for one in own:
            rows.setdefault(one.at, {})[quantity] = _estimate(one)
    orders = [sorted_values(at[place] for at in rows) for place in range(len(axes))]
    ordered = sorted(
        rows, key=lambda at: [order.index(value) for order, value in zip(orders, at, strict=True)]
    )
    return Grid(
        name=plan.name,
        title=_title(plan),
        axes=axes,
        columns=tuple(Column(label=quantity, unit=unit) for quantity, unit in columns.items()),
        rows=tuple(
            (tuple(map(str, at)), tuple(rows[at].get(key, Estimate(value=None)) for key in columns))
            for at in ordered
        ),
    )


def _title(plan: TablePlan | FigurePlan) -> str:
    """Return a title with what the paper calls the table or figure."""
    return (
        plan.title
        if plan.paper.id is None
        else f"{plan.paper.id[:1].upper()}{plan.paper.id[1:]}: {plan.title}"
    )


def label_colours(study: Study) -> dict[str, int]:
    """Return the numbers of the colours of all labels; `chart_of` adds those of other series."""
    plans = [study.measure, *(rule.measure for rule in study.runs.rules if rule.measure is not None)]
    labels = dict.fromkeys(parse_rule(rule).label for plan in plans for rule in plan.labels)
    return {label: number for number, label in enumerate(labels)}


def _estimate(placed: PivotCell) -> Estimate:
    student = placed.cell.student
    return Estimate(
        value=placed.cell.mean,
        low=student.low if student else None,
        high=student.high if student else None,
        runs=len(placed.cell.values),
        reference=placed.reference.value if placed.reference else None,
    )


def chart_of(results: StudyResults, plan: FigurePlan, colours: dict[str, int] | None = None) -> Chart | None:
    """Return the figure that `plan` asks for; None if no run has what it shows.

    What `colours` has no number for gets the next one, and is added to it.
    """
    numbers = label_colours(results.study) if colours is None else colours
    found: list[PivotCell] = []
    if plan.kind == "time series":
        series, unit = _times(results, plan, numbers), _time_unit(results, plan)
        categories: list[Value] = []
    else:
        axes = [axis for axis in (plan.x, plan.series) if axis is not None]
        found = pivot(
            results.cells_by([*axes, *plan.where]),
            plan.y,
            axes,
            where=plan.where,
            references=results.study.references,
            level=results.study.confidence,
            runs=results.study.runs,
        )
        categories = _categories(plan, found)
        series = list(_series(plan, found, categories, numbers))
        unit = found[0].cell.unit if found else ""
    if not series:
        return None
    return Chart(
        key=plan.name,
        title=_title(plan),
        description=f"{_title(plan)}: {plan.y} of {', '.join(one.label for one in series[:MAX_SERIES])}",
        caption=_caption(results, plan, found, len(series)),
        kind=plan.kind,
        x_label=plan.x_label or (_TIME_LABEL if plan.kind == "time series" else plan.x or ""),
        y_label=plan.y_label or plan.y,
        unit=unit,
        series=tuple(series[:MAX_SERIES]),
        categories=tuple(map(str, categories)),
        # rates are means of windows; what a sender or a report says holds until it says otherwise
        is_stepped=plan.kind == "time series" and plan.y != RATE,
    )


def _categories(plan: FigurePlan, found: Sequence[PivotCell]) -> list[Value]:
    """Return the names on the x axis; none if it has numbers, which only lines are drawn at."""
    if plan.x is None:
        return []
    values = sorted_values(placed.at[0] for placed in found)
    is_numeric = not any(isinstance(value, str) for value in values)
    return [] if plan.kind == "line" and is_numeric else values


def _series(
    plan: FigurePlan, found: Sequence[PivotCell], categories: Sequence[Value], colours: dict[str, int]
) -> Iterator[Series]:
    by_label: dict[str, list[PivotCell]] = {}
    for placed in found:
        by_label.setdefault(_label(plan, placed), []).append(placed)
    is_alone = len(by_label) == 1
    for label, members in by_label.items():
        colour = _colour(_colour_name(plan, members[0]), colours)
        if plan.kind == "cdf":
            values = tuple(value for placed in members for value in placed.cell.values)
            if values:
                yield Series(label=label, x=values, values=(), colour=colour)
            continue
        line = _line(label, members, categories)
        if is_alone and plan.kind == "bars" and plan.x == GROUP:
            named = tuple(_colour(str(placed.at[0]), colours) for placed in members)
            yield replace(line, category_colours=named)
        else:
            yield replace(line, colour=colour)
    for place, (label, members) in enumerate(by_label.items()):
        reported = [placed for placed in members if placed.reference is not None]
        if reported and plan.kind != "cdf":
            yield Series(
                label="reported" if len(by_label) == 1 else f"{label}, reported",
                x=tuple(_place(placed.at[0], categories) for placed in reported),
                values=tuple(placed.reference.value for placed in reported if placed.reference),
                reference_of=place,
            )


def _colour_name(plan: FigurePlan, placed: PivotCell) -> str:
    """Return the name whose colour a series has: its label, or the value of its parameter."""
    if placed.rest or plan.series is None:
        return placed.rest or placed.cell.group or plan.y
    value = placed.at[-1]
    return value if isinstance(value, str) else f"{plan.series} {value}"


def _colour(name: str, colours: dict[str, int]) -> int:
    return colours.setdefault(name, len(colours))


def _line(label: str, members: Sequence[PivotCell], categories: Sequence[Value]) -> Series:
    students = [placed.cell.student for placed in members]
    return Series(
        label=label,
        x=tuple(_place(placed.at[0], categories) for placed in members),
        values=tuple(placed.cell.mean for placed in members),
        low=tuple(student.low if student else None for student in students),
        high=tuple(student.high if student else None for student in students),
        samples=tuple(placed.cell.values for placed in members),
    )


def _label(plan: FigurePlan, placed: PivotCell) -> str:
    """Return what a series is called: the value of its parameter, and the group where several are mixed."""
    named = [] if plan.series is None else [str(placed.at[-1])]
    if plan.series is not None and plan.series != GROUP:
        named[0] = f"{plan.series} {named[0]}" if not isinstance(placed.at[-1], str) else named[0]
    # a parameter may have the names of labels as its values
    return ", ".join(dict.fromkeys([*named, *([placed.rest] if placed.rest else [])])) or plan.y


def _place(value: Value, categories: Sequence[Value]) -> float:
    return float(categories.index(value)) if categories else float(value)


def _caption(results: StudyResults, plan: FigurePlan, found: Sequence[PivotCell], series: int) -> str:
    study = results.study
    parts = [f"In the paper: {plan.paper.setting.rstrip('.')}."] if plan.paper.setting else []
    names = {run.name for placed in found for run in placed.cell.runs}
    runs = counted(len(names) or len(_shown_runs(results, plan.where)), "run")
    if study.set_up or plan.paper.set_up:
        parts.append(f"Here: {'; '.join(filter(None, (plan.paper.set_up, study.set_up, runs)))}.")
    if plan.kind in {"line", "bars"}:
        parts.append(
            f"Means with {study.confidence:.0%} intervals (Student's t) where there are two runs or more."
        )
    if plan.kind == "box":
        parts.append(
            "Quartiles by nearest rank, and the median; whiskers reach to the last value within 1.5 of the "
            "distance of the quartiles."
        )
    if plan.where:
        conditions = (f"{axis} {' or '.join(map(str, wanted))}" for axis, wanted in plan.where.items())
        parts.append(f"Only {', '.join(conditions)}.")
    sources = dict.fromkeys(placed.reference.source for placed in found if placed.reference is not None)
    if sources:
        parts.append(f"Reported: {'; '.join(sources)}.")
    if series > MAX_SERIES:
        parts.append(f"{series - MAX_SERIES} more series are left out.")
    return " ".join(parts)


def _shown_runs(results: StudyResults, where: Where) -> list[tuple[Run, StudyRecord]]:
    """Return the runs whose parameters are looked at; a group is chosen later."""
    conditions = {axis: wanted for axis, wanted in where.items() if axis != GROUP}
    return [
        (run, record)
        for run, record in results.read()
        if all(
            any(is_same(run.parameters[axis], one) for one in wanted) for axis, wanted in conditions.items()
        )
    ]


def drawn_series(results: StudyResults) -> dict[str, set[str]]:
    """Return the names of the runs of each series that a figure draws."""
    drawn: dict[str, set[str]] = {}
    for plan in results.study.figures:
        if plan.kind == "time series" and plan.is_drawn:
            drawn.setdefault(plan.y, set()).update(run.name for run, _ in _shown_runs(results, plan.where))
    return drawn


def _times(results: StudyResults, plan: FigurePlan, colours: dict[str, int]) -> list[Series]:
    """Return a curve for each flow of the runs that are looked at; those of one label differ in dashes."""
    groups = plan.where.get(GROUP)
    shown = _shown_runs(results, plan.where)
    curves = [
        (run, series)
        for run, record in shown
        for series in record.series.get(plan.y, [])
        if groups is None or any(is_same(series.group, group) for group in groups)
    ]
    in_run = Counter((run.name, series.group) for run, series in curves)
    return [
        Series(
            label=_curve_label(
                run, series, is_one_of=in_run[run.name, series.group] > 1, runs=len(shown), plan=plan
            ),
            x=tuple(series.time_s),
            values=tuple(series.values),
            colour=_colour(str(series.group), colours),
        )
        for run, series in curves
    ]


def _curve_label(run: Run, series: TimeSeries, *, is_one_of: bool, runs: int, plan: FigurePlan) -> str:
    """Return what a curve is called; the flow is named if it `is_one_of` several of its group in the run."""
    label = str(series.group)
    if is_one_of:
        label += f" {series.flow}"
    if runs > 1:
        is_named = plan.series is not None and plan.series in run.parameters
        more = str(run.parameters[plan.series]) if plan.series is not None and is_named else run.name
        label += "" if more == series.group else f", {more}"
    return label


def _time_unit(results: StudyResults, plan: FigurePlan) -> str:
    for _, record in results.read():
        for series in record.series.get(plan.y, []):
            return str(series.unit)
    return ""
