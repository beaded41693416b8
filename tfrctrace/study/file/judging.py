"""The criteria of a study file: `[judge]`, `[[scenario]]` and `[[criterion]]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, get_args

from tfrctrace.base.bitrates import parse_capacity_bps
from tfrctrace.base.durations import parse_duration_ns, parse_offset_ns
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
    whole,
)
from tfrctrace.study.criteria import Criterion, FlowOfPlace, Judging, Place, Queue
from tfrctrace.study.file.claims import Bound
from tfrctrace.study.file.names import file_name, refuse_twice, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.study.criteria import About
    from tfrctrace.study.file.names import OutputNames

MOST_FLOWS: Final = 100
MOST_FAR_FLOWS: Final = 15
"""As many as Linux' prio has bands besides the first."""
_PATH: Final = (
    "rate", "rtt", "buffer", "queue", "ecn", "clears_marks", "tunnel", "loss", "reordering", "duration",
)  # fmt: skip
_TIMES: Final = ("change_at", "change_rtt", "outage_at", "outage", "rates", "back_rates")
_OF_RUNS: Final = ("scenario", "quantity", "metric", "group", "worse", "margin", "slack", "limit", "alone")


def judging_of(content: Table, names: OutputNames, labels: Sequence[str]) -> Judging | None:
    """Parse what a study judges; None if it has no `[judge]`."""
    if "judge" not in content:
        if wrong := [name for name in ("scenario", "criterion") if name in content]:
            raise UsageError(f"`[[{wrong[0]}]]` needs `[judge]`")
        return None
    table = table_of(content["judge"], "`[judge]`")
    refuse_unknown(
        table, {"source", "parameter", "scenario", "references", "least_runs", "alone"}, "`[judge]`"
    )
    parameter, scenario = (text(table.get(key), key) for key in ("parameter", "scenario"))
    for name in (parameter, scenario):
        names.check_parameter("`[judge]`", name)
    names.refuse_repetition("`[judge]`", [parameter, scenario])
    references = texts(table.get("references"), "references")
    refuse_twice(references, "reference")
    ports = _ports(labels)
    places = tuple(
        _place(table_of(one, f"scenario {place}"), f"scenario {place}", ports)
        for place, one in enumerate(listed(content.get("scenario", []), "scenario"), start=1)
    )
    refuse_twice([place.name for place in places], "scenario")
    known = [place.name for place in places]
    alone = optional_text(table, "alone") or ""
    if alone and alone not in known:
        raise unknown("`alone` of `[judge]`: scenario", alone, known)
    criteria = tuple(
        _criterion(table_of(one, f"criterion {place}"), f"criterion {place}", names, known, labels)
        for place, one in enumerate(listed(content.get("criterion", []), "criterion"), start=1)
    )
    if not references and any(one.place and one.limit is None for one in criteria):
        raise UsageError("`references` of `[judge]` names none, and a criterion has no `limit`")
    return Judging(
        source=text(table.get("source", "the study"), "source"),
        parameter=parameter,
        scenario=scenario,
        references=references,
        least_runs=max(whole(table.get("least_runs", 2), "least_runs"), 2),
        places=places,
        criteria=criteria,
        ports=ports,
        alone_place=alone,
    )


def _ports(labels: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the ports that the rules `port N` give each label."""
    found: dict[str, tuple[int, ...]] = {}
    for rule in labels:
        label, _, condition = rule.partition("=")
        word, _, port = condition.strip().partition(" ")
        if word == "port" and port.isdecimal():
            found[label] = (*found.get(label, ()), int(port))
    return found


def _place(table: Table, called: str, ports: dict[str, tuple[int, ...]]) -> Place:
    refuse_unknown(table, {"name", "says", "flows", *_PATH, *_TIMES}, f"`[[scenario]]` {called}")
    name = file_name(table.get("name"), f"name of {called}")
    flows = tuple(_flow(table_of(one, called), called) for one in listed(table.get("flows"), "flows"))
    if not 0 < len(flows) <= MOST_FLOWS:
        raise UsageError(f"{called} has {len(flows)} flows, not 1 to {MOST_FLOWS}")
    if sum(flow.rtt_s is not None for flow in flows) > MOST_FAR_FLOWS:
        raise UsageError(f"more than {MOST_FAR_FLOWS} flows of {called} have an `rtt` of their own")
    for label in {flow.label for flow in flows}:
        there = ports.get(label, ())
        if sum(flow.label == label for flow in flows) > len(there):
            raise UsageError(
                f"{called} has more flows `{label}` than `[labels]` has ports of that label",
                hint=f'write `{label} = ["port 5201", "port 5202"]` below `[labels]`',
            )
    rtt_s = _seconds(table, "rtt")
    if any(flow.rtt_s is not None and flow.rtt_s <= rtt_s for flow in flows):
        raise UsageError(f"a flow of {called} has an `rtt` that is no longer than that of its path")
    if table.get("clears_marks") and not table.get("ecn"):
        raise UsageError(f"{called} has `clears_marks` without marks", hint="write `ecn = true`")
    return Place(
        name=name,
        says=text(table.get("says", name), "says"),
        rate_bps=parse_capacity_bps(text(table.get("rate"), "rate")),
        rtt_s=rtt_s,
        buffer=number(table.get("buffer"), "buffer"),
        queue=cast("Queue", one_of(table.get("queue", "bfifo"), get_args(Queue), "queue")),
        ecn=flag(table.get("ecn", False), "ecn"),
        clears_marks=flag(table.get("clears_marks", False), "clears_marks"),
        tunnel=flag(table.get("tunnel", False), "tunnel"),
        loss=number(table.get("loss", 0), "loss"),
        reordering=number(table.get("reordering", 0), "reordering"),
        duration_s=_seconds(table, "duration"),
        change=_together(table, "change_at", "change_rtt"),
        outage=_together(table, "outage_at", "outage"),
        rates=_rates(table, "rates", called),
        back_rates=_rates(table, "back_rates", called),
        flows=flows,
    )


def _seconds(table: Table, key: str) -> float:
    return parse_duration_ns(text(table.get(key), key)) / 1e9


def _together(table: Table, one: str, other: str) -> tuple[float, float] | None:
    if one not in table and other not in table:
        return None
    return _seconds(table, one), _seconds(table, other)


def _rates(table: Table, key: str, called: str) -> tuple[tuple[float, float], ...]:
    changes = [table_of(one, called) for one in listed(table.get(key, []), key)]
    for change in changes:
        refuse_unknown(change, {"at", "rate"}, f"`{key}` of {called}")
    return tuple(
        (
            parse_offset_ns(text(change.get("at"), "at")) / 1e9,
            parse_capacity_bps(text(change.get("rate"), "rate")),
        )
        for change in changes
    )


def _flow(table: Table, called: str) -> FlowOfPlace:
    known = {"label", "controller", "start", "bytes", "send", "every", "rtt"}
    refuse_unknown(table, known, f"flows of {called}")
    return FlowOfPlace(
        label=text(table.get("label"), "label"),
        controller=optional_text(table, "controller"),
        start_s=parse_offset_ns(text(table.get("start", "0s"), "start")) / 1e9,
        total=whole(table["bytes"], "bytes") if "bytes" in table else None,
        send=whole(table.get("send", 0), "send"),
        every_s=_seconds(table, "every") if "every" in table else None,
        rtt_s=_seconds(table, "rtt") if "rtt" in table else None,
    )


def _criterion(
    table: Table, called: str, names: OutputNames, places: Sequence[str], labels: Sequence[str]
) -> Criterion:
    refuse_unknown(table, {"section", "title", "reason", "about", *_OF_RUNS}, f"`[[criterion]]` {called}")
    section, title = (text(table.get(key), f"{key} of {called}") for key in ("section", "title"))
    if "scenario" not in table:
        if wrong := [key for key in _OF_RUNS if key in table]:
            raise UsageError(f"{called} has no `scenario`, so it has no `{wrong[0]}`")
        return Criterion(section=section, title=title, reason=text(table.get("reason"), "reason"))
    place, quantities = text(table["scenario"], "scenario"), texts(table.get("quantity"), "quantity")
    if place not in places:
        raise unknown(f"{called}: scenario", place, places)
    group = optional_text(table, "group")
    for quantity in quantities:
        names.check_quantity(called, quantity)
        _check_group(group, names.quantities[quantity], called, labels)
    if ("limit" in table) == ("margin" in table):
        raise UsageError(f"{called} needs a `limit`, or a `margin` over the references")
    return Criterion(
        section=section,
        title=title,
        place=place,
        quantities=quantities,
        metric=text(table.get("metric", quantities[0]), "metric"),
        group=group,
        worse=_worse(table, called),
        limit=number(table["limit"], "limit") if "limit" in table else None,
        about=cast("About", one_of(table.get("about", "harm"), ("harm", "performance"), "about")),
        alone=optional_text(table, "alone") or "",
    )


def _check_group(group: str | None, quantity: Quantity, called: str, labels: Sequence[str]) -> None:
    """Raise unless a quantity has a value of the group, or of no group if that is None."""
    term, over = quantity.term, quantity.over
    known: list[str | None] = [None]
    if over is not None:
        known = [f"{term.group} over {over.group}"]
    elif term.is_of_flows:
        known = [term.group] if term.group else [*dict.fromkeys(rule.partition("=")[0] for rule in labels)]
    if group not in known:
        names = [name for name in known if name]
        if group is None:
            raise UsageError(f"{called} needs a `group`", hint=f"`{quantity.name}` has {', '.join(names)}")
        raise unknown(f"{called}: group of `{quantity.name}`", group, names)


def _worse(table: Table, called: str) -> Bound:
    """Return when a value is worse: so many times above or below the other, and by the slack."""
    slack, margin = number(table.get("slack", 0), "slack"), number(table.get("margin", 1), "margin")
    if margin < 1:
        raise UsageError(f"{called}: `margin` is below 1")
    if one_of(table.get("worse"), ("higher", "lower"), "worse") == "higher":
        return Bound(">", margin, slack)
    return Bound("<", 1 / margin, -slack)
