"""The language of conditions: which flows a label names, and what a limit asks.

    label     = NAME "=" flows
    limit     = quantity SIGN NUMBER [unit] ["where" flows]
    quantity  = term ["/" term] ["where" flows]
    term      = NAME | NAME "(" NAME ")"
    flows     = condition {"and" condition}
    condition = ["src" | "dst"] "port" NUMBER | ["src" | "dst"] "host" ADDRESS
              | ("flow" | "flow_id" | "dscp" | "vni" | "teid") NUMBER
              | ("agent" | "transport" | "interface" | "tunnel" | "mpls" | "vlan" | "main_cause"
              | "congestion_control" | "source" | "label") NAME
              | "starts" ("after" | "before") TIME

This module has the scanner and the conditions on flows; labels, limits and claims stand in the modules that
use them (`trace/labels.py`, `gate/requirement.py`, `study/file/claims.py` with its own grammar).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.nearest import proposal_or_all
from tfrctrace.metrics.flow.causes import CAUSES, with_causes
from tfrctrace.trace.time_zero import time_zero_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

Condition = tuple[str, ...]
"""Words such as ("src", "port", "5201")."""

CONDITIONS: Final = (
    "`port N`, `host ADDRESS` (also with `src` or `dst` before them), `flow N`, `flow_id N`, `dscp N`, "
    "`vni N`, `teid N`, `agent NAME`, `transport NAME`, `tunnel NAME`, `mpls LABELS`, `vlan TAGS`, "
    "`interface NAME`, `main_cause NAME`, `congestion_control NAME`, `source FILE`"
)

MAIN_CAUSE: Final = "main_cause"
"""The condition on what held a direction back, for which causes have to be collected."""

CONGESTION_CONTROL: Final = "congestion_control"
"""The condition on what sent a direction: one of its names, for which rounds are needed, too."""

_WORD: Final = r"\S+"
_WHOLE: Final = r"[0-9]{1,10}(?![^\s<>=])"
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "port": ("src_port", "dst_port"),
    "host": ("src", "dst"),
    "flow": ("flow",),
    "flow_id": ("flow_id",),
    "dscp": ("dscp",),
    "vni": ("vni",),
    "teid": ("teid",),
    "agent": ("agent",),
    "transport": ("transport",),
    "interface": ("interface",),
    "tunnel": ("tunnel",),
    "mpls": ("mpls_labels",),
    "vlan": ("vlans",),
    MAIN_CAUSE: (MAIN_CAUSE,),
    CONGESTION_CONTROL: (CONGESTION_CONTROL,),
    "source": ("source",),
    "label": ("label",),
}
CONDITION_NAMES: Final = tuple(_COLUMNS)

CONDITION_COLUMNS: Final = frozenset(column for columns in _COLUMNS.values() for column in columns) - {
    MAIN_CAUSE,
    CONGESTION_CONTROL,
}
"""Columns of the table of flows."""

_NUMBERS: Final = {"port", "flow", "flow_id", "dscp", "vni", "teid"}


class Scanner:
    """A text that is read from left to right; an error says what was expected, and where."""

    def __init__(self, text: str, kind: str, syntax: str) -> None:
        """Read `text`, which should be a `kind`, with `syntax` as the hint if it is not."""
        self.text = text
        self.position = 0
        self._kind = kind
        self._syntax = syntax

    def accept(self, pattern: str) -> str | None:
        """Return what fits `pattern` at the next character that is no space, and pass it; else None."""
        start = self._start()
        found = re.compile(pattern, re.ASCII).match(self.text, start)
        if found is None:
            return None
        self.position = found.end()
        return found[0]

    def expect(self, pattern: str, expected: str) -> str:
        """Return what fits `pattern`. Raises `UsageError` if nothing does."""
        found = self.accept(pattern)
        if found is None:
            raise self.error(expected)
        return found

    def end(self, expected: str = "the end") -> None:
        """Raise `UsageError` if something follows."""
        if self._start() < len(self.text):
            raise self.error(expected)

    def error(self, expected: str) -> UsageError:
        """Return the error for what stands at the next character that is no space."""
        place = "at the end"
        if (start := self._start()) < len(self.text):
            place = f"at character {start + 1}, before `{self.text[start : start + 20]}`"
        return UsageError(
            f"`{self.text}` is not a {self._kind}: expected {expected} {place}", hint=self._syntax
        )

    def _start(self) -> int:
        return self.position + len(self.text[self.position :]) - len(self.text[self.position :].lstrip())


def read_conditions(scanner: Scanner, *, has_labels: bool) -> tuple[Condition, ...]:
    """Return conditions joined by `and`: on labels, or where these are given on times.

    When a trace begins is known where labels are given, and a label can name a time.
    """
    found = [_condition(scanner, has_labels=has_labels)]
    while scanner.accept(r"and(?!\S)"):
        found.append(_condition(scanner, has_labels=has_labels))
    return tuple(found)


def _condition(scanner: Scanner, *, has_labels: bool) -> Condition:
    if not has_labels and scanner.accept(r"starts(?!\S)"):
        when = scanner.expect(r"(?:after|before)(?!\S)", "`after` or `before`")
        time = scanner.expect(_WORD, "a time")
        parse_duration_ns(time)
        return "starts", when, time
    side = scanner.accept(r"(?:src|dst)(?!\S)")
    names = ("port", "host") if side else [name for name in _COLUMNS if has_labels or name != "label"]
    name = scanner.expect(rf"(?:{'|'.join(names)})(?!\S)", "`port` or `host`" if side else "a condition")
    value = scanner.expect(*((_WHOLE, "a number") if name in _NUMBERS else (_WORD, "a name")))
    if name == MAIN_CAUSE and value not in CAUSES:
        raise UsageError(f"`{value}` is no cause", hint=proposal_or_all(value, CAUSES))
    if name in _NUMBERS and int(value) >= 2**32:
        scanner.position -= len(value)
        raise scanner.error("a number below 2^32")
    return (side, name, value) if side else (name, value)


class Beyond(NamedTuple):
    """What the table of flows does not have, None where nothing asks for it."""

    cause_sums: pl.DataFrame | None = None
    controls: pl.DataFrame | None = None
    """The congestion control of each direction with data."""

    def joined(self, flows: pl.DataFrame) -> pl.DataFrame:
        """Return flows with it."""
        if self.cause_sums is not None:
            flows = with_causes(flows, self.cause_sums)
        if self.controls is not None:
            names = self.controls.select("flow", "direction", CONGESTION_CONTROL)
            flows = flows.join(names, on=("flow", "direction"), how="left", maintain_order="left")
        return flows


def needs(conditions: Iterable[Condition], column: str) -> bool:
    """Return whether a condition is on `MAIN_CAUSE` or `CONGESTION_CONTROL`."""
    return any(words[0] == column for words in conditions)


def matching_rows(flows: pl.DataFrame, conditions: Sequence[Condition]) -> pl.Series:
    """Return for each row of `flows` whether it fulfils all `conditions`."""
    import polars as pl

    return flows.select(pl.all_horizontal(*map(_expression, conditions)).fill_null(value=False)).to_series()


def _expression(words: Condition) -> pl.Expr:
    import polars as pl

    *side, name, text = words
    if side == ["starts"]:
        return _starts(name, parse_duration_ns(text))
    if name == "source":
        # with or without its folders
        return (pl.col("source") == text) | pl.col("source").str.ends_with(f"/{text}")
    if name == CONGESTION_CONTROL:
        # those that are equal in what was seen
        return pl.col(name).str.split("|").list.contains(text)
    value = int(text) if name in _NUMBERS else text
    columns = [column for column in _COLUMNS[name] if not side or column.startswith(side[0])]
    return pl.any_horizontal(*(pl.col(column) == value for column in columns))


def _starts(when: str, time_ns: int) -> pl.Expr:
    """Return whether a flow, in whichever direction first, starts `before` a time of its trace, or not."""
    import polars as pl

    is_before = pl.col("start_ns").min().over("flow") - time_zero_ns() < time_ns
    return is_before if when == "before" else ~is_before
