"""Objectives as a file has them: `[[objective]]` with a limit on a row of the table of groups."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import parse_grouping
from tfrctrace.base.toml import number, one_of, optional_text, refuse_unknown, table_of, text, whole
from tfrctrace.gate.requirement import Level, parse_requirement, parse_share
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.metrics.group_values import MEASURES, SINGLE_VALUES, GroupQuantity, GroupTerm
from tfrctrace.metrics.groups import SUMS
from tfrctrace.metrics.objectives import DEFAULT_LEAST, Objective
from tfrctrace.runs.quantity import COLUMNS, RTT_SAMPLES, Language

if TYPE_CHECKING:
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.gate.requirement import Limit
    from tfrctrace.runs.quantity import Kind, Term
    from tfrctrace.trace.conditions import Condition, Scanner

_KEYS: Final = {
    "require",
    "severe",
    "by",
    "every",
    "least",
    "target",
    "level",
    "name",
    "raise",
    "clear",
    "inventory",
}
_DEFAULT_BY: Final = "link"
_DEFAULT_EVERY: Final = "1min"
_LEVELS: Final = get_args(Level)
_OF_ENDS: Final = ("sent", "received")
_OF_FLOWS: Final = ("fwd", "rev")
_WORD: Final = r"\S+"
_NOT_BELOW_0: Final = "no value is below 0"
_AT_MOST_1: Final = frozenset({"retransmission_ratio", "path_loss_ratio", "wifi_retry_ratio"})


def parse_objective(value: object) -> Objective:
    """Return the objective that a table of a file describes. Raises `UsageError` for an invalid one."""
    table = table_of(value, "`[[objective]]`")
    refuse_unknown(table, _KEYS, "`[[objective]]`")
    limit = parse_requirement(text(table.get("require"), "require"), language=OF_GROUPS)
    grouping = parse_grouping(
        text(table.get("by", _DEFAULT_BY), "by"),
        text(table.get("every", _DEFAULT_EVERY), "every"),
        optional_text(table, "inventory"),
    )
    quantity = _group_quantity(limit, grouping)
    _check_possible(limit)
    severe = _severe(table, limit)
    return Objective(
        name=optional_text(table, "name") or limit.text,
        require=limit.text,
        severe=None if severe is None else severe.text,
        grouping=grouping,
        quantity=quantity,
        sign=limit.sign,
        bound=limit.bound,
        severe_bound=None if severe is None else severe.bound,
        unit=limit.quantity.unit or ("%" if limit.unit == "%" else ""),
        least=_least(table),
        target=_target(table),
        level=cast("Level", one_of(table.get("level", "fail"), _LEVELS, "level")),
        raise_after=_intervals(table, "raise"),
        clear_after=_intervals(table, "clear"),
    )


def _kind(name: str) -> Kind:
    if name in MEASURES:
        return "samples"
    if name in SINGLE_VALUES:
        return "group column"
    elsewhere = ""
    if name in COLUMNS or name in BY_NAME:
        elsewhere = f": it is a {'column of flows' if name in COLUMNS else 'metric'}, for `[[limit]]`"
    near = difflib.get_close_matches(name, [*SINGLE_VALUES, *MEASURES], n=4, cutoff=0.5)
    raise UsageError(
        f"an interval of a group has no `{name}`{elsewhere}",
        hint=f"the nearest are {', '.join(near)}" if near else "see docs/columns.md#groups",
    )


def _conditions(scanner: Scanner) -> tuple[Condition, ...]:
    found: list[Condition] = []
    while not found or scanner.accept(r"and(?!\S)"):
        name = scanner.expect(r"(?:direction|group)(?!\S)", "`direction` or `group`")
        names = "|".join((*_OF_ENDS, *_OF_FLOWS))
        of_direction = (rf"(?:{names})(?!\S)", "sent, received, fwd or rev")
        found.append((name, scanner.expect(*(of_direction if name == "direction" else (_WORD, "a name")))))
    return tuple(found)


OF_GROUPS: Final = Language(_kind, _conditions)
"""Quantities of a group in an interval."""


def _group_quantity(limit: Limit, grouping: Grouping) -> GroupQuantity:
    chosen = {name: str(value) for name, value, *_ in limit.quantity.conditions}
    known = _OF_ENDS if grouping.kind.is_end else _OF_FLOWS
    if (direction := chosen.get("direction")) is not None and direction not in known:
        raise UsageError(
            f"`{limit.text}`: groups by {grouping.by} have no direction `{direction}`",
            hint=f"they have {' and '.join(known)}",
        )
    if len(chosen) < len(limit.quantity.conditions):
        raise UsageError(f"`{limit.text}` has a condition twice, and a row is in one group and direction")
    over = limit.quantity.over
    return GroupQuantity(
        _group_term(limit.quantity.term),
        None if over is None else _group_term(over),
        direction,
        chosen.get("group"),
    )


def _group_term(term: Term) -> GroupTerm:
    name, aggregation = term.name, term.aggregation
    if term.kind == "samples":
        if aggregation in {"sum", "count"} or (aggregation == "mean" and name != RTT_SAMPLES):
            raise UsageError(
                f"`{aggregation}({name})` is not known of a group", hint=f"write such as `p95({name})`"
            )
    elif aggregation not in ({"", "sum"} if name in SUMS else {""}):
        raise UsageError(
            f"`{aggregation}({name})`: a group has one value of `{name}` in an interval",
            hint=f"write `{name}`",
        )
    return GroupTerm(name, aggregation)


def _check_possible(limit: Limit) -> None:
    """Raise for a limit that no value can meet, or that none can break."""
    is_share = limit.quantity.over is not None or limit.quantity.term.name.endswith(("_ratio", "_share"))
    if limit.unit == "%" and not is_share:
        raise UsageError(f"`{limit.text}` has a limit in %, and the quantity is no share")
    least_fails = limit.sign in {">", ">="}
    most = 1.0 if limit.quantity.over is None and limit.quantity.term.name in _AT_MOST_1 else None
    below = limit.bound < 0 or (limit.bound == 0 and limit.sign in {"<", ">="})
    above = most is not None and (limit.bound > most or (limit.bound == most and limit.sign in {">", "<="}))
    if not below and not above:
        return
    why = _NOT_BELOW_0 if below else "no value is above 1"
    is_impossible = limit.sign == "==" or least_fails == above
    raise UsageError(f"`{limit.text}` is {'never' if is_impossible else 'always'} met: {why}")


def _severe(table: dict[str, Any], limit: Limit) -> Limit | None:
    if "severe" not in table:
        return None
    severe = parse_requirement(text(table["severe"], "severe"), language=OF_GROUPS)
    own, other = limit.quantity, severe.quantity
    if (own.term, own.over, own.conditions) != (other.term, other.over, other.conditions):
        raise UsageError(
            f"`severe` is about `{other.name}`, `require` about `{own.name}`",
            hint="write the same quantity, with the limit beyond which a violation is severe",
        )
    is_upper = limit.sign in {"<", "<="}
    if limit.sign == "==" or is_upper != (severe.sign in {"<", "<="}) or severe.sign == "==":
        raise UsageError(f"`{severe.text}` is not a wider limit than `{limit.text}`")
    if severe.bound == limit.bound or (severe.bound > limit.bound) != is_upper:
        raise UsageError(
            f"`{severe.text}` is not a wider limit than `{limit.text}`",
            hint="what is severely violated has to be violated, too",
        )
    return severe


def _intervals(table: dict[str, Any], name: str) -> int:
    """Return a number of consecutive intervals."""
    count = whole(table.get(name, 1), name)
    if count < 1:
        raise UsageError(f"`{name}` must be at least 1: it is a number of intervals")
    return count


def _least(table: dict[str, Any]) -> int:
    least = whole(table.get("least", DEFAULT_LEAST), "least")
    if least < 1:
        raise UsageError("`least` must be at least 1: an interval without samples is without data")
    return least


def _target(table: dict[str, Any]) -> float:
    """Return the share of intervals that `99.5` never is, `"99.5 %"` and 0.995 are."""
    value = table.get("target", 1)
    target = parse_share(value) if isinstance(value, str) else number(value, "target")
    if not 0 < target <= 1:
        raise UsageError(
            f"`target` must be a share above 0 % of at most 100 %, not `{value}`",
            hint="write such as `99.5 %` or 0.995",
        )
    return target
