"""The claims and the published values in a study file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import flag, listed, number, one_of, optional_text, refuse_unknown, text, texts
from tfrctrace.study.definition import GROUP, RATE, Expectation, Reference, Share
from tfrctrace.study.file.claims import ScenarioMean, parse_claim, terms
from tfrctrace.study.file.names import parameter_value, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Quantity, Term
    from tfrctrace.study.definition import FigurePlan, TablePlan, Where
    from tfrctrace.study.file.claims import Claim
    from tfrctrace.study.file.names import OutputNames


class ClaimParser:
    """Reads the claims and references of a study."""

    def __init__(self, names: OutputNames) -> None:
        """Take the names that they may use."""
        self._names = names
        self._at_times: dict[str, Quantity] = {}

    def quantities_at_times(self) -> Iterable[Quantity]:
        """Give the quantities of which claims ask before or after a time."""
        return self._at_times.values()

    def expectation(self, table: Table, called: str) -> Expectation:
        """Parse an `[[expect]]`; errors call it `called`."""
        refuse_unknown(
            table,
            {"claim", "says", "where", "holds", "figure", "holds_in_paper", "reason", "in", "required"},
            f"`[[expect]]` {called}",
        )
        claim = self._claim(parse_claim(text(table.get("claim"), f"claim of {called}")), called)
        stated = flag(table["holds_in_paper"], "holds_in_paper") if "holds_in_paper" in table else None
        return Expectation(
            claim=claim,
            says=text(table.get("says", claim.text), "says"),
            where=self._names.where(table, called),
            holds=flag(table.get("holds", True), "holds"),
            figures=texts(table.get("figure", []), "figure"),
            holds_in_paper=stated,
            reason=optional_text(table, "reason") or "",
            share=cast("Share", one_of(table.get("in", "all"), get_args(Share), "in")),
            is_required=flag(table.get("required", stated is None), "required"),
        )

    def _claim(self, claim: Claim, called: str) -> Claim:
        """Return a claim whose names are checked, and whose numbers are in the units of its quantities."""
        for term in terms(claim):
            self._names.check_quantity(called, term.quantity)
            for parameter, _ in term.where:
                self._names.check_parameter(called, parameter)
            self._names.refuse_repetition(called, [parameter for parameter, _ in term.where])
        if claim.parameter is not None:
            self._names.check_parameter(called, claim.parameter)
            self._names.refuse_repetition(called, [claim.parameter])
        quantity = self._names.quantities[next(terms(claim)).quantity]
        return claim.adapted(lambda term: self._at_time(term, called), lambda unit: _factor(unit, quantity))

    def _at_time(self, term: ScenarioMean, called: str) -> ScenarioMean:
        """Return a term without times: its quantity is then one of that part of the series."""
        if not term.times:
            return term
        quantity = self._names.quantities[term.quantity]
        if quantity.term.kind != "series":
            raise UsageError(
                f"{called}: `{term.quantity}` is known of the whole run only",
                hint='`before` and `after` need a quantity with `series`, such as `series = "rate"`',
            )
        times = {word: parse_duration_ns(time) / 1e9 for word, time in term.times}

        def at_time(whole: Term) -> Term:
            return replace(
                whole,
                from_s=times.get("after", whole.from_s),
                until_s=times.get("before", whole.until_s),
            )

        name = "_".join((term.quantity, *(part for pair in term.times for part in pair)))
        over = quantity.over
        self._at_times[name] = replace(
            quantity,
            name=name,
            term=at_time(quantity.term),
            over=None if over is None else at_time(over),
        )
        return ScenarioMean(name, term.group, term.where)

    def references(self, table: Table, called: str) -> list[Reference]:
        """Return one reference for `value`; or of a table one for each value, after those of `by`."""
        refuse_unknown(
            table,
            {"quantity", "source", "figure", "group", "where", "value", "by", "values"},
            f"`[[reference]]` {called}",
        )
        quantities = texts(table.get("quantity"), f"quantity of {called}")
        for quantity in quantities:
            self._names.check_quantity(called, quantity)
        if ("value" in table) == ("values" in table) or ("by" in table) != ("values" in table):
            raise UsageError(f"{called} needs a `value`, or `by` and `values`")
        where = self._names.where(table, called)
        by = texts(table.get("by", []), "by")
        for axis in by:
            self._names.check_axis(called, axis)
        rows = [[number(table["value"], "value")]] if "value" in table else listed(table["values"], "values")
        figure = optional_text(table, "figure")
        source = optional_text(table, "source") or figure
        if source is None:
            raise UsageError(f"{called} needs a `source` or a `figure`")
        found = []
        for row in rows:
            cells = _cells(row, len(by), len(quantities), called)
            at = {axis: (parameter_value(value, axis),) for axis, value in zip(by, cells, strict=False)}
            for quantity, value in zip(quantities, cells[len(by) :], strict=True):
                if value != "":
                    group = self._group(quantity, at, table, called)
                    own = {axis: values for axis, values in {**where, **at}.items() if axis != GROUP}
                    found.append(
                        Reference(
                            quantity=quantity,
                            source=source,
                            where=own,
                            group=group,
                            value=number(value, "values"),
                            figure=figure,
                        )
                    )
        return found

    def _group(self, quantity: str, at: Where, table: Table, called: str) -> str | None:
        """Return the label that a published value is about; None for a quantity that is about no label."""
        if not self._names.quantities[quantity].is_about_groups:
            return optional_text(table, "group")
        group = str(at[GROUP][0]) if GROUP in at else optional_text(table, "group")
        if group is None:
            raise UsageError(f"{called}: `{quantity}` has a value for each label, so `group` must name one")
        return group


def check_figures(
    tables: Sequence[TablePlan],
    figures: Sequence[FigurePlan],
    expectations: Sequence[Expectation],
    references: Sequence[Reference],
) -> None:
    """Raise if a claim or a published value is about a figure that no entry has as its `id`."""
    plans: tuple[FigurePlan | TablePlan, ...] = (*figures, *tables)
    known = list(dict.fromkeys(plan.paper.id for plan in plans if plan.paper.id))
    for place, expectation in enumerate(expectations, start=1):
        for name in expectation.figures:
            if name not in known:
                raise unknown(f"expect {place}: figure", name, known)
    for reference in references:
        if reference.figure is not None and reference.figure not in known:
            raise unknown(f"a reference of `{reference.quantity}`: figure", reference.figure, known)


def _factor(unit: str, quantity: Quantity) -> float:
    """Return what turns a number of a claim into the unit of its quantity."""
    wanted = _unit_of(quantity)
    if not unit or unit == wanted:
        return 1.0
    if {unit, wanted} == {"s", "ms"}:
        return 1e3 if unit == "s" else 1e-3
    if wanted is None:
        raise UsageError(
            f"`{quantity.name}` has the unit of its trace, so a claim cannot name `{unit}`",
            hint="write the number without a unit",
        )
    raise UsageError(
        f"`{quantity.name}` is not in `{unit}`", hint=f"its unit is {wanted}" if wanted else "it has no unit"
    )


def _unit_of(quantity: Quantity) -> str | None:
    """Return the unit of a quantity; None for a series whose values name it."""
    term = quantity.term
    if term.kind != "series" or quantity.over is not None or term.over_time == "cov":
        return quantity.unit
    return "bit/s" if term.name == RATE else None


def _cells(row: object, names: int, values: int, called: str) -> list[Any]:
    cells = row if isinstance(row, list) else [row]
    if len(cells) != names + values:
        example = (
            "pairs such as `[4, 0.98]`" if (names, values) == (1, 1) else f"rows of {names + values} cells"
        )
        raise UsageError(f"{called}: `values` has {example}, not `{row}`")
    return cells
