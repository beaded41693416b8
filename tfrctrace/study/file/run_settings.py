"""The runs of a study file: which they are, and how each is read and measured."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from tfrctrace.base.bitrates import parse_capacity_bps
from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import (
    flag,
    number,
    one_of,
    optional_text,
    refuse_unknown,
    table_of,
    text,
    texts,
    whole,
)
from tfrctrace.metrics.results.metrics import Basis
from tfrctrace.parsers.tfrc import PROFILE, RTT
from tfrctrace.study.definition import RESERVED, MeasuringPlan, RunRule, RunRules
from tfrctrace.study.file.names import parameter_value, unknown
from tfrctrace.study.file_pattern import parameter_names
from tfrctrace.study.replayed_rates import parse_replay_plan
from tfrctrace.study.run_record import check_reading
from tfrctrace.study.run_table import table_parameters
from tfrctrace.trace.labels import check_weights, parse_rule
from tfrctrace.trace.measuring import check_sparse_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrctrace.base.toml import Table


def run_rules(
    content: Table, folder: str, read_measure: Callable[[Table, Table, Sequence[str]], MeasuringPlan]
) -> RunRules:
    """Parse `[runs]`, or several `[[runs]]`, of a study; paths in them are relative to `folder`.

    `read_measure` parses `[measure]` and `[labels]` with what some of the runs have instead.
    """
    tables = content.get("runs", {})
    rules = [
        _run_rule(table_of(table, "`[runs]`"), folder)
        for table in (tables if isinstance(tables, list) else [tables])
    ]
    parameters = tuple(dict.fromkeys(name for rule, _ in rules for name in rule.parameters))
    repetitions = {rule.repetition for rule, _ in rules} - {None}
    if len(repetitions) > 1:
        raise UsageError(
            f"`repetition` is {' and '.join(f'`{name}`' for name in sorted(map(str, repetitions)))}",
            hint="it must be called alike in all `[[runs]]`",
        )
    is_paired = flag(content.get("paired", False), "paired")
    if is_paired and not repetitions:
        raise UsageError("`paired` runs need a `repetition`, by which they belong together")
    return RunRules(
        rules=tuple(
            replace(rule, measure=read_measure(*own, parameters) if any(own) else None) for rule, own in rules
        ),
        parameters=parameters,
        repetition=next(iter(repetitions), None),
        is_paired=is_paired,
        made_by=optional_text(content, "made_by"),
    )


def _run_rule(table: Table, folder: str) -> tuple[RunRule, tuple[Table, Table]]:
    """Parse one `[[runs]]`, and return with it its own `measure` and `labels`."""
    refuse_unknown(
        table,
        {"files", "pattern", "table", "repetition", "parameters", "measure", "labels"},
        "`[runs]`",
    )
    pattern = optional_text(table, "pattern")
    listing = optional_text(table, "table")
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
        parameters = table_parameters(folder, listing)
    constants = {
        name: parameter_value(value, name)
        for name, value in table_of(table.get("parameters", {}), "`parameters` of `[runs]`").items()
    }
    if twice := [name for name in constants if name in parameters]:
        raise UsageError(f"the parameter `{twice[0]}` is in `parameters` and in the name of each run")
    parameters = (*parameters, *constants)
    for name in parameters:
        if name in RESERVED:
            raise UsageError(
                f"no parameter can be called `{name}`", hint="a column of the results is called so"
            )
    rule = RunRule(
        files=texts(table["files"], "files") if "files" in table else (),
        pattern=pattern,
        table=listing,
        constants=constants,
        parameters=parameters,
        repetition=optional_text(table, "repetition"),
    )
    if rule.repetition is not None and rule.repetition not in parameters:
        raise unknown("repetition", rule.repetition, parameters)
    return rule, (
        table_of(table.get("measure", {}), "`measure` of `[runs]`"),
        table_of(table.get("labels", {}), "`labels` of `[runs]`"),
    )


def label_rules(table: Table) -> tuple[str, ...]:
    """Return the rules of `[labels]`; one label may have several, of which any suffices."""
    rules = tuple(f"{label}={rule}" for label, rules in table.items() for rule in texts(rules, label))
    for rule in rules:
        parse_rule(rule)
    return rules


_MEASURED_TEXTS: Final = (
    *("window", "warmup", "capacity", "step", "filter", "input_format", "layer"),
    *("since", "until", "last", "timezone"),
)


def parse_measuring_plan(
    table: Table,
    labels: tuple[str, ...],
    folder: str,
    parameters: Sequence[str] = (),
    *,
    allow_code: bool = False,
) -> MeasuringPlan:
    """Parse `[measure]`; files of layouts are relative to `folder`, `parameters` are of the runs.

    Raises `UsageError` or `FilterError` for what cannot be, and for classes unless `allow_code`.
    """
    refuse_unknown(
        table,
        {
            *_MEASURED_TEXTS,
            "basis",
            "only_labelled",
            "both_ends",
            "least_packets",
            "sparse_share",
            "dissect",
            "tfrc",
            "weight",
            "replay",
        },
        "`[measure]`",
    )
    if not allow_code:
        _refuse_code(table)
    for name in ("window", "warmup", "step"):
        if name in table:
            parse_duration_ns(text(table[name], name))
    if "capacity" in table:
        parse_capacity_bps(text(table["capacity"], "capacity"))
    given: dict[str, Any] = {name: text(table[name], name) for name in _MEASURED_TEXTS if name in table}
    if "basis" in table:
        given["basis"] = one_of(table["basis"], get_args(Basis), "basis")
    for name in ("only_labelled", "both_ends"):
        if name in table:
            given[name] = flag(table[name], name)
    given |= _counted_flows(table)
    if "dissect" in table:
        given["dissect"] = tuple(_in_folder(one, folder) for one in texts(table["dissect"], "dissect"))
    if "weight" in table:
        weights = table_of(table["weight"], "`weight`").items()
        given["weight"] = {label: number(value, label) for label, value in weights}
        check_weights(given["weight"])
    if "tfrc" in table:
        given_tfrc = table_of(table["tfrc"], "`tfrc`").items()
        given["tfrc"] = {
            name: text(value, name) if name in {PROFILE, RTT} else number(value, name)
            for name, value in given_tfrc
        }
    if "replay" in table:
        given["replay"] = parse_replay_plan(table_of(table["replay"], "`replay`"), parameters)
    found = MeasuringPlan(labels=labels, **given)
    check_reading(found)
    return found


def _counted_flows(table: Table) -> dict[str, Any]:
    """Parse which flows metrics count, and which of them are sparse."""
    given: dict[str, Any] = {}
    if "least_packets" in table:
        given["least_packets"] = whole(table["least_packets"], "least_packets")
    if "sparse_share" in table:
        given["sparse_share"] = number(table["sparse_share"], "sparse_share")
        check_sparse_share(given["sparse_share"])
    return given


def _refuse_code(table: Table) -> None:
    """Refuse classes in `[measure]`: to import one runs its module, and a study may be a stranger's."""
    layouts = (one.partition("=")[2] for one in texts(table.get("dissect", []), "dissect"))
    replay = table_of(table.get("replay", {}), "`[measure.replay]`")
    algorithms = texts(replay.get("algorithms", []), "algorithms")
    for name in (*layouts, *algorithms):
        if ":" in name and not name.endswith(".toml"):
            raise UsageError(
                f"the study would run the code of `{name}`", hint="`--allow-code` permits it if you trust it"
            )


def _in_folder(dissect: str, folder: str) -> str:
    """Return `udp:PORT=LAYOUT` with the path of a layout's file from here, not from the study."""
    port, equals, layout = dissect.partition("=")
    return f"{port}{equals}{os.path.join(folder, layout) if layout.endswith('.toml') else layout}"
