"""Labels that a user gives to flows by rules: `reno=port 5201`, `up=src host 10.0.0.1 and transport tcp`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.trace.time_zero import time_zero_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem

_AGENTS: Final = (
    "ns-2 calls the packets of every TCP agent `tcp`, Reno's as those of Vegas: `flow_id N` or `port N` "
    "tells them apart"
)

CLASH: Final = "label"
"""Kind of the problem with a rule that fits flows which have another label."""

UNUSED: Final = "unused_label"
"""Kind of the problem with a rule that fits no flow."""

_CONDITIONS: Final = (
    "`port N`, `host ADDRESS` (also with `src` or `dst` before them), `flow N`, `flow_id N`, `dscp N`, "
    "`agent NAME`, `transport NAME`, `source FILE`"
)
_SYNTAX: Final = (
    f"write NAME=CONDITION [and CONDITION], with conditions {_CONDITIONS}, `starts after TIME` and "
    "`starts before TIME`"
)

Condition = tuple[str, ...]
"""Words such as ("src", "port", "5201")."""

_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_WEIGHT: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]+)?", re.ASCII)
_MOST_WEIGHT: Final = 1e15


@dataclass(frozen=True, slots=True)
class Rule:
    """One label, and the conditions that a flow must fulfil to have it."""

    text: str
    label: str
    conditions: tuple[Condition, ...]


def parse_rule(text: str, called: Callable[[str], str] | None = None) -> Rule:
    """Return the rule that `text` describes. Raises `UsageError` if it is none, or names no time.

    `called` says what hosts are called in the tables, if not by their addresses.
    """
    label, equals, rest = (part.strip() for part in text.partition("="))
    conditions = _split(rest)
    if not label or not equals or not all(_is_condition(words) for words in conditions):
        raise UsageError(f"`{text}` is no rule for a label", hint=_SYNTAX)
    if called is not None:
        conditions = tuple(
            (*words[:-1], called(words[-1])) if "host" in words[:-1] else words for words in conditions
        )
    return Rule(text, label, conditions)


def parse_weights(texts: Iterable[str]) -> dict[str, float]:
    """Return the weights that texts such as `video=2` give to labels. Raises `UsageError` for others."""
    weights: dict[str, float] = {}
    for text in texts:
        label, _, weight = (part.strip() for part in text.rpartition("="))
        if not label or not _WEIGHT.fullmatch(weight):
            raise UsageError(f"`{text}` is no weight of a label", hint="write NAME=NUMBER, as `video=2`")
        weights[label] = float(weight)
    check_weights(weights)
    return weights


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise `UsageError` for a weight that is not above 0, with which no share can be compared."""
    for label, weight in weights.items():
        if not 0 < weight < _MOST_WEIGHT:
            raise UsageError(f"the weight of `{label}` is not above 0 and below 1e15, but {weight:g}")


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Return conditions on flows, of which `label NAME` is one. Raises `UsageError` if there is another.

    Times are none of them: when a trace begins is known where labels are given, and a label can name them.
    """
    conditions = _split(text)
    if not all(
        (_is_condition(words) and words[0] != "starts") or _is_about_label(words) for words in conditions
    ):
        raise UsageError(
            f"`{text}` is no condition on flows",
            hint=f"write CONDITION [and CONDITION], with {_CONDITIONS}, and `label NAME`",
        )
    return conditions


def matching_rows(flows: pl.DataFrame, conditions: Sequence[Condition]) -> pl.Series:
    """Return for each row of `flows` whether it fulfils all `conditions`."""
    import polars as pl

    return flows.select(pl.all_horizontal(*map(_expression, conditions)).fill_null(value=False)).to_series()


def with_labels(flows: pl.DataFrame, rules: Sequence[Rule]) -> tuple[pl.DataFrame, list[Problem]]:
    """Return `flows` with `label` filled by the first rule that fits, and what is wrong with the rules.

    `src` and `dst` are those of the row. A rule that fits no flow, and one that fits a flow which has another
    label already, are warnings.
    """
    import polars as pl

    problems: list[Problem] = []
    taken = flows["label"].is_not_null()
    for rule in rules:
        fits = matching_rows(flows, rule.conditions)
        if not fits.any():
            hint = _AGENTS if any(words[0] == "agent" for words in rule.conditions) else None
            problems.append(input_problem(rule.text, UNUSED, "fits no flow", severity="warning", hint=hint))
        elif (fits & taken).any():
            both = ", ".join(map(str, flows.filter(fits & taken)["flow"].unique().sort().to_list()[:5]))
            problems.append(
                input_problem(
                    rule.text,
                    CLASH,
                    f"fits flows that have a label already ({both}), which keep it",
                    severity="warning",
                )
            )
        label = pl.when(fits & ~taken).then(pl.lit(rule.label)).otherwise(pl.col("label")).alias("label")
        flows, taken = flows.with_columns(label), taken | fits
    return flows, problems


def _split(text: str) -> tuple[Condition, ...]:
    return tuple(tuple(words.split()) for words in text.split(" and "))


def _is_about_label(words: Sequence[str]) -> bool:
    return len(words) == 2 and words[0] == "label"


def _is_condition(words: Sequence[str]) -> bool:
    if len(words) == 3 and words[0] in {"src", "dst"}:
        return words[1] in {"port", "host"} and _is_value(words[1], words[2])
    if len(words) == 3 and words[0] == "starts":
        return words[1] in {"after", "before"} and parse_duration_ns(words[2]) > 0
    return len(words) == 2 and words[0] in _COLUMNS and _is_value(*words)


def _is_value(what: str, value: str) -> bool:
    return what not in _NUMBERS or (_NUMBER.fullmatch(value) is not None and int(value) < 2**32)


def _expression(words: Sequence[str]) -> pl.Expr:
    import polars as pl

    *side, what, text = words
    if side == ["starts"]:
        return _starts(what, parse_duration_ns(text))
    value = int(text) if what in _NUMBERS else text
    if what == "source":
        return _is_source(text)
    if what == "label":
        return pl.col("label") == text
    columns = _COLUMNS[what]
    if side:
        columns = tuple(column for column in columns if column.startswith(side[0]))
    return pl.any_horizontal(*(pl.col(column) == value for column in columns))


def _starts(when: str, time_ns: int) -> pl.Expr:
    """Return whether a flow, in whichever direction first, starts `before` a time of its trace, or not."""
    import polars as pl

    is_before = pl.col("start_ns").min().over("flow") - time_zero_ns() < time_ns
    return is_before if when == "before" else ~is_before


def _is_source(name: str) -> pl.Expr:
    """Return whether a source is called `name`, with or without its folders."""
    import polars as pl

    return (pl.col("source") == name) | pl.col("source").str.ends_with(f"/{name}")


_NUMBERS: Final = {"port", "flow", "flow_id", "dscp"}
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "port": ("src_port", "dst_port"),
    "host": ("src", "dst"),
    "flow": ("flow",),
    "flow_id": ("flow_id",),
    "dscp": ("dscp",),
    "agent": ("agent",),
    "transport": ("transport",),
    "source": ("source",),
}
