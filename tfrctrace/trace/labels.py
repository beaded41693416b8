"""Labels for flows, given by rules: `reno=port 5201`, `up=src host 10.0.0.1 and transport tcp`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.trace.conditions import (
    CONDITION_COLUMNS,
    CONDITIONS,
    CONGESTION_CONTROL,
    MAIN_CAUSE,
    Beyond,
    Scanner,
    matching_rows,
    needs,
    read_conditions,
)
from tfrctrace.trace.passes import OF_CONTROLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.parsers.reading import StackedTable
    from tfrctrace.trace.conditions import Condition
    from tfrctrace.trace.passes import TableName

_AGENTS: Final = (
    "ns-2 calls the packets of every TCP agent `tcp`, Reno's as those of Vegas: `flow_id N` or `port N` "
    "separates them"
)

CLASH: Final = "label"
"""Kind of the problem with a rule that fits flows which have another label; `source` is the rule."""

UNUSED: Final = "unused_label"
"""Kind of the problem with a rule that fits no flow; `source` is the rule."""

_SYNTAX: Final = (
    f"write NAME=CONDITION [and CONDITION], with conditions {CONDITIONS}, `starts after TIME` and "
    "`starts before TIME`, or `congestion_control` alone for the name that each flow's is found to have"
)

_COLUMNS: Final = (
    *("flow", "direction", "source", "start_ns", "packets", "data_packets", "payload_bytes", "wire_bytes"),
    "label",
)
"""Columns of the table of flows that choose flows and directions."""

_WEIGHT: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]+)?", re.ASCII)
_MOST_WEIGHT: Final = 1e15

_NOTHING: Final = Beyond()


@dataclass(frozen=True, slots=True)
class Rule:
    """One label, and the conditions that a flow must fulfil to have it.

    The rule `congestion_control` labels all flows by the names of theirs.
    """

    text: str
    label: str
    conditions: tuple[Condition, ...]

    @property
    def is_of_controls(self) -> bool:
        """Whether it labels flows by the names of their congestion controls."""
        return not self.conditions


def parse_rule(text: str, called: Callable[[str], str] | None = None) -> Rule:
    """Return the rule that `text` describes. Raises `UsageError` if it is none.

    `called` gives the name of a host in the tables, if that is not its address.
    """
    if text.strip() == CONGESTION_CONTROL:
        return Rule(text, CONGESTION_CONTROL, ())
    scanner = Scanner(text, "rule for a label", _SYNTAX)
    label = scanner.expect("[^=]+", "a name").strip()
    scanner.expect("=", "`=`")
    conditions = read_conditions(scanner, has_labels=False)
    scanner.end("`and` or the end")
    if called is not None:
        conditions = tuple(
            (*words[:-1], called(words[-1])) if "host" in words[:-1] else words for words in conditions
        )
    return Rule(text, label, conditions)


def name_causes(rules: Iterable[Rule]) -> bool:
    """Return whether a rule is about causes, which are not in the table of flows."""
    return any(needs(rule.conditions, MAIN_CAUSE) for rule in rules)


def name_controls(rules: Iterable[Rule]) -> bool:
    """Return whether a rule is about congestion controls, which are not in the table of flows."""
    return any(rule.is_of_controls or needs(rule.conditions, CONGESTION_CONTROL) for rule in rules)


def tables_beyond(rules: Sequence[Rule]) -> tuple[TableName, ...]:
    """Return the tables that have to be collected beside flows for rules."""
    if name_controls(rules):
        return OF_CONTROLS
    return ("cause_sums",) if name_causes(rules) else ()


def parse_weights(texts: Iterable[str]) -> dict[str, float]:
    """Return the weights that texts such as `video=2` give to labels. Raises `UsageError` for others."""
    weights: dict[str, float] = {}
    for text in texts:
        label, _, weight = (part.strip() for part in text.rpartition("="))
        if not label or not _WEIGHT.fullmatch(weight):
            raise UsageError(f"`{text}` is not a weight of a label", hint="write NAME=NUMBER, as `video=2`")
        weights[label] = float(weight)
    check_weights(weights)
    return weights


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise `UsageError` for a weight that is not above 0, with which no share can be compared."""
    for label, weight in weights.items():
        if not 0 < weight < _MOST_WEIGHT:
            raise UsageError(f"the weight of `{label}` is not above 0 and below 1e15, but {weight:g}")


def with_labels(
    flows: pl.DataFrame, rules: Sequence[Rule], beyond: Beyond = _NOTHING
) -> tuple[pl.DataFrame, list[Problem]]:
    """Return `flows` with `label` set by the first rule that fits, and what is wrong with the rules.

    `src` and `dst` are those of the row. A rule that fits no flow, and one that fits a flow which has another
    label already, are warnings. `beyond` has what rules ask for and the flows do not have.
    """
    import polars as pl

    known = beyond.joined(flows)
    problems: list[Problem] = []
    taken = flows["label"].is_not_null()
    for rule in rules:
        names = _controls(known) if rule.is_of_controls else None
        fits = matching_rows(known, rule.conditions) if names is None else names.is_not_null()
        if not fits.any():
            hint = _AGENTS if any(words[0] == "agent" for words in rule.conditions) else None
            problems.append(input_problem(rule.text, UNUSED, "fits no flow", severity="warning", hint=hint))
        elif (fits & taken).any():
            problems.append(
                input_problem(
                    rule.text,
                    CLASH,
                    "fits flows that have a label already, which keep it",
                    severity="warning",
                    flows=flows.filter(fits & taken)["flow"].unique().sort().to_list(),
                )
            )
        label = (
            pl.when(fits & ~taken)
            .then(pl.lit(rule.label) if names is None else names)
            .otherwise(pl.col("label"))
            .alias("label")
        )
        flows, taken = flows.with_columns(label), taken | fits
    return flows, problems


def _controls(flows: pl.DataFrame) -> pl.Series:
    """Return the names of the congestion control of each row; acknowledgements have those of the data."""
    import polars as pl

    own = pl.col(CONGESTION_CONTROL)
    return flows.select(pl.coalesce(own, own.drop_nulls().first().over("flow"))).to_series()


@dataclass(frozen=True, slots=True)
class LabelledFlows:
    """The flows of a trace, with labels."""

    flows: pl.DataFrame
    """A row for each direction with packets: what chooses flows, and `row`, its place in the table."""
    _table: StackedTable
    _labels: pl.Series | None
    """Labels of all rows of the table; None for its own ones."""

    def take(self, places: pl.Series, columns: Iterable[str] | None) -> pl.DataFrame:
        """Return some columns or all of the rows at `places` of `flows`, which ascend, with the label."""
        rows = self.flows["row"][places]
        frame = self._table.take(rows.to_list(), None if columns is None else {"label", *columns})
        return frame if self._labels is None else frame.with_columns(self._labels[rows])

    def frame(self, columns: Iterable[str]) -> pl.DataFrame:
        """Return some columns of all rows of the table, with the label."""
        frame = self._table.frame({"label", *columns})
        return frame if self._labels is None else frame.with_columns(self._labels)


def read_labelled(
    table: StackedTable, rules: Sequence[Rule], beyond: Beyond = _NOTHING
) -> tuple[LabelledFlows, list[Problem]]:
    """Return the flows of `table` with the labels that `rules` give, and what is wrong with the rules."""
    from tfrctrace.parsers.frames import joined_frame

    if rules:
        flows, problems = with_labels(table.frame({*_COLUMNS, *CONDITION_COLUMNS}), rules, beyond)
        labels = flows["label"]
        return LabelledFlows(_narrow(flows.with_row_index("row")), table, labels), problems
    before = 0
    parts = []
    for frame in table.frames(_COLUMNS):
        parts.append(_narrow(frame.with_row_index("row", before)))
        before += frame.height
    return LabelledFlows(joined_frame(parts, parts[0].clear()), table, None), []


def _narrow(flows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that have packets, with names in as few bytes as there are different ones."""
    import polars as pl

    return flows.filter(pl.col("packets") > 0).select(
        "row",
        *(name for name in _COLUMNS if name not in {"direction", "source"}),
        pl.col("direction").cast(pl.Enum(["fwd", "rev"])),
        pl.col("source").cast(pl.Categorical),
    )
