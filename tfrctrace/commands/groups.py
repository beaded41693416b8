"""`tfrctrace groups`: packets, round-trip times, losses and failures of groups of flows by interval."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import KINDS
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Traces, check_order, grouping_help, rows_option
from tfrctrace.commands.options.completion import groupings
from tfrctrace.commands.options.grouped_help import measuring_option, output_option
from tfrctrace.commands.options.output_options import GroupOutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.printers.terminal import terminal_width

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO, Literal, TextIO

    import polars as pl

    from tfrctrace.api import Trace
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.metrics.groups import Groups
    from tfrctrace.metrics.loaded_delay import LinkLoad, LoadedDelay
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult

ORDERS: Final = ("group", "bytes", "packets", "goodput", "rtt", "retransmissions", "failures")

DEFAULT_ROWS: Final = 25

_OF_ROWS: Final = ("openmetrics", "otlp", "ndjson")
"""Forms of every row that are text."""

_COLUMNS: Final[Mapping[str, str]] = {
    "bytes": "wire_bytes",
    "packets": "packets",
    "goodput": "goodput_bps",
    "rtt": "rtt_p95_ms",
    "retransmissions": "retransmission_ratio",
}

_SHOWN: Final[Mapping[str, str]] = {"retr.": "retransmissions", "failed": "failures", "RTT p50/p95": "rtt"}
"""Orders by the names of columns of the text table."""


def groups(
    traces: Traces,
    *,
    by: Annotated[
        str | None,
        measuring_option(
            "--by",
            metavar="WHAT",
            autocompletion=groupings,
            show_default="host, or as the objectives",
            help=grouping_help(KINDS.values()),
        ),
    ] = None,
    every: Annotated[
        str | None,
        measuring_option(
            "--every",
            metavar="TIME",
            show_default="one interval",
            help="Width of the intervals, e.g. 5min; they begin at multiples of it since the epoch.",
        ),
    ] = None,
    inventory: Annotated[
        str | None,
        measuring_option(
            "--inventory",
            metavar="FILE",
            help="Names of sites by network, and the rates promised to them, for --by site (TOML or CSV).",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        measuring_option(
            "--label",
            metavar="NAME=RULE",
            help="Label flows for --by label, e.g. 'reno=port 5201'; others are labelled by transport.",
        ),
    ] = None,
    limits: Annotated[
        str | None,
        measuring_option(
            "--limits", metavar="FILE", help="Judge the objectives of a TOML file (docs/check.md)."
        ),
    ] = None,
    causes: Annotated[
        bool,
        measuring_option(
            "--causes", help="Sum up the time of TCP flows by what held them back (docs/why-is-it-slow.md)."
        ),
    ] = False,
    under_load: Annotated[
        bool,
        measuring_option(
            "--under-load", help="Compare the round-trip times while the link is idle and while it is loaded."
        ),
    ] = False,
    capacity: Annotated[
        str | None,
        measuring_option(
            "--capacity",
            metavar="RATE",
            show_default="99th percentile of its rate",
            help="Capacity of the link for --under-load, e.g. 10M.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        output_option(
            "--sort",
            metavar="KEY",
            show_default="bytes",
            help="Order of the text table, largest or worst first: group (by name), bytes, packets, goodput, "
            "rtt, retransmissions, failures, the name of a shown column, or with --causes a cause, such as "
            "receiver.",
        ),
    ] = None,
    rows: Annotated[int | None, rows_option("rows in the text table", DEFAULT_ROWS)] = None,
    buckets: Annotated[
        bool,
        output_option("--buckets", help="Write the buckets of the percentiles instead, as CSV or Parquet."),
    ] = False,
    result: GroupOutputOptions,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Sum up traffic, RTT and losses by host or port over time.

    The text table shows the most used columns; the other formats have all of them, one row for each
    direction of a group in each interval.
    """
    from tfrctrace.base.grouping import parse_grouping
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.gate.limits_file import read_objectives
    from tfrctrace.gate.objective_results import judge_objectives
    from tfrctrace.metrics.flow.causes import CAUSES
    from tfrctrace.reports.printers.groups import write_groups
    from tfrctrace.reports.printers.objectives import result_lines, worst_verdicts
    from tfrctrace.trace.gather_groups import check_labels, gather_groups, gather_loaded_delays, leading_rows

    chosen = result.chosen
    _check_form(chosen, sort, rows, buckets=buckets, under_load=under_load, causes=causes)
    sort = _SHOWN.get(sort or "", sort)
    if sort in CAUSES and not causes:
        raise UsageError(f"`--sort {sort}` needs `--causes`")
    check_order(sort, (*ORDERS, *CAUSES))
    if capacity is not None and not under_load:
        raise UsageError("`--capacity` needs `--under-load`")
    every = every or ("1s" if under_load else None)
    if limits is None:
        objectives, grouping = [], parse_grouping(by or "host", every, inventory)
    else:
        if under_load or chosen not in {"table", "json"}:
            raise UsageError("`--limits` applies to the table and to JSON")
        objectives = read_objectives(limits)
        grouping = _common_grouping(objectives, by, every, inventory)
    labels = tuple(label or ())
    check_labels(grouping, labels)
    if chosen == "openmetrics" and grouping.every_ns is not None:
        raise UsageError(
            "a series of OpenMetrics has one point, and `--every` makes several",
            hint="leave it out, or choose `--format otlp`",
        )
    result.check(traces)
    zone = TimeZone.named(reading.timezone)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))

    if under_load:
        found = gather_loaded_delays(trace, grouping, labels, capacity)
        _write_under_load(result, *found, DEFAULT_ROWS if rows is None else rows or None)
        return console.exit_status

    judged = judge_objectives(trace, objectives, labels)

    def write_text(file: TextIO) -> None:
        order = sort or "bytes"
        most = DEFAULT_ROWS if rows is None else rows or None
        shown, total = leading_rows(trace, grouping, labels, _key(order), most, causes=causes)
        write_groups(
            file,
            shown,
            total=total,
            order="by group" if order == "group" else f"by {order}, largest first",
            every_ns=grouping.every_ns,
            zone=zone,
            verdicts=worst_verdicts(judged) if judged else None,
            has_causes=causes,
            width=terminal_width(file),
        )
        file.writelines(f"{line}\n" for line in result_lines(judged, zone))

    def gather() -> Groups:
        return gather_groups(trace, grouping, labels, causes=causes)

    is_one = trace.is_joined or len(trace.names) == 1
    if chosen == "ndjson" and every and is_one and not (causes or grouping.kind.made_of or trace.is_pair):
        result.write_text({"ndjson": lambda file: _write_released(file, trace, grouping, console)})
        return console.exit_status
    if result.write_text({form: partial(_write_of_rows, form, gather) for form in _OF_ROWS}):
        return console.exit_status
    result.write(
        table=write_text,
        json=lambda file: _write_json(file, gather(), trace, judged),
        rows=lambda file, form: _write_rows(file, gather(), form, raw=result.raw, buckets=buckets),
    )
    return console.exit_status


def _check_form(
    chosen: str, sort: str | None, rows: int | None, *, buckets: bool, under_load: bool, causes: bool
) -> None:
    """Raise for options that have no effect on the chosen form."""
    if chosen != "table" and (sort is not None or rows is not None):
        raise UsageError(
            f"`--sort` and `--rows` apply to the text table only, but the format is {chosen}",
            hint=f"leave them out: {chosen} lists every row, by group and interval",
        )
    if buckets and chosen not in {"csv", "parquet"}:
        raise UsageError("`--buckets` writes CSV or Parquet", hint="JSON has them beside the groups")
    if under_load and (sort is not None or buckets or causes):
        raise UsageError("`--sort`, `--buckets` and `--causes` do not apply to `--under-load`")
    if under_load and chosen in _OF_ROWS:
        raise UsageError(f"`--under-load` is not written as {chosen}")


def _write_released(file: TextIO, trace: Trace, grouping: Grouping, console: Console) -> None:
    """Write rows while the trace is read, and show its progress unless the rows themselves do."""
    import json

    encode = json.JSONEncoder(allow_nan=False).encode
    watching = (Console(quiet=True) if file.isatty() else console).watching
    for row in trace.released_groups(grouping, watching):
        file.write(f"{encode(row)}\n")
        file.flush()


def _write_of_rows(form: str, gather: Callable[[], Groups], file: TextIO) -> None:
    """Write groups as one of the forms that other programs take row by row."""
    import json

    found = gather()
    if form == "ndjson":
        encode = json.JSONEncoder(allow_nan=False).encode
        file.writelines(f"{encode(row)}\n" for row in found.rows.iter_rows(named=True))
    elif form == "otlp":
        from tfrctrace import __version__
        from tfrctrace.reports.files.otlp import write_otlp

        write_otlp(file, found, version=__version__)
    else:
        from tfrctrace.reports.files.openmetrics import write_openmetrics

        write_openmetrics(file, found)


def _write_under_load(
    result: GroupOutputOptions, load: LinkLoad, rows: list[LoadedDelay], most: int | None
) -> None:
    from tfrctrace import __version__
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.printers.under_load import (
        write_loaded_delays_json,
        write_loaded_delays_table,
        write_loaded_delays_text,
    )

    head = {"schema_version": SCHEMA_VERSION, "tool": {"name": "tfrctrace", "version": __version__}}
    result.write(
        table=lambda file: write_loaded_delays_text(file, load, rows, most=most),
        json=lambda file: write_loaded_delays_json(file, load, rows, head),
        rows=lambda file, form: write_loaded_delays_table(file, form, rows, raw=result.raw),
    )


def _key(sort: str) -> tuple[tuple[str, ...], pl.Expr | None]:
    """Return the columns that decide about the order, and the value that they give."""
    import polars as pl

    if sort == "group":
        return ("packets",), None
    if sort == "failures":
        names = ("connections_refused", "connections_unanswered")
        return names, pl.sum_horizontal(names, ignore_nulls=False)
    column = _COLUMNS.get(sort, f"{sort}_ns")
    return (column,), pl.col(column)


def _common_grouping(
    objectives: Sequence[Objective], by: str | None, every: str | None, inventory: str | None
) -> Grouping:
    """Return the grouping that is asked for, or that of all objectives, which have to have it."""
    from tfrctrace.base.grouping import parse_grouping

    groupings = list(dict.fromkeys(objective.grouping for objective in objectives))
    if by is None and every is None:
        if len(groupings) == 1:
            return groupings[0]
        raise UsageError(
            "the file has no objective" if not groupings else "the objectives are of several groupings",
            hint="name one by `--by` and `--every`, and the objectives of it in a file",
        )
    asked = parse_grouping(by or "host", every, inventory)
    for one in objectives:
        if one.grouping != asked:
            raise UsageError(
                f"`{one.name}` is of other groups or intervals than the table",
                hint="leave out `--by` and `--every`, or name those of the file",
            )
    return asked


def _write_json(file: TextIO, found: Groups, trace: Trace, judged: Sequence[ObjectiveResult]) -> None:
    from tfrctrace import __version__
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.files.table_files import write_groups_json

    write_groups_json(
        file,
        found.rows,
        found.buckets,
        trace.sources,
        trace.warnings,
        objectives=[_judged_facts(result, trace.name) for result in judged],
        schema_version=SCHEMA_VERSION,
        version=__version__,
    )


def _judged_facts(result: ObjectiveResult, name: str) -> dict[str, Any]:
    import msgspec

    from tfrctrace.gate.objective_verdict import run_outcome

    facts = msgspec.to_builtins(run_outcome(result, name))
    del facts["run"]  # the document is about one
    return {"require": result.objective.require, "severe": result.objective.severe, **facts}


def _write_rows(
    file: BinaryIO, found: Groups, form: Literal["csv", "parquet"], *, raw: bool, buckets: bool
) -> None:
    import polars as pl

    from tfrctrace.parsers._native import empty_table
    from tfrctrace.parsers.schema import polars_schema
    from tfrctrace.reports.files.table_files import write_table

    frame, name = (found.buckets, "group_buckets") if buckets else (found.rows, "groups")
    write_table(file, form, [frame.cast(pl.Schema(polars_schema(name)))], empty_table(name), raw=raw)
