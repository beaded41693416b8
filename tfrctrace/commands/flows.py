"""`tfrctrace flows`: the table of flows."""

from __future__ import annotations

import heapq
import os
import sys
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from tfrctrace.commands.anonymity_options import AnonymityOptions
from tfrctrace.commands.options import Traces, check_place
from tfrctrace.commands.reading_options import ReadingOptions
from tfrctrace.console import Console
from tfrctrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tfrctrace.parsers._native import Problem
    from tfrctrace.parsers.reading import Reading

Flow = list[dict[str, Any]]
"""The rows of the directions of one flow."""

DEFAULT_LIMIT: Final = 25


FlowsFormat = Literal["table", "json", "csv", "parquet"]
SortKey = Literal["flow", "bytes", "packets", "goodput", "retransmissions", "rtt"]

_FORMAT_OF_SUFFIX: Final[Mapping[str, FlowsFormat]] = {
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "table",
}


def flows(
    traces: Traces,
    *,
    form: Annotated[
        FlowsFormat | None,
        typer.Option(
            "--format", help="Form of the output; without it the name after -o tells, else a table."
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    sort: Annotated[
        SortKey | None, typer.Option("--sort", help="Order of the text table, largest first (except flow).")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            metavar="N",
            show_default=str(DEFAULT_LIMIT),
            help="Flows in the text table, 0 for all.",
        ),
    ] = None,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """List the flows of traces: who with whom, how much, how fast, retransmissions, RTT and delivery.

    The text table shows the columns that people look at first; the other forms have all of them, one row for
    each flow and direction.
    """
    chosen = _format(form, output)
    if chosen != "table" and (sort is not None or limit is not None):
        raise UsageError(
            f"`--sort` and `--limit` shape the text table, but the format is {chosen}",
            hint=f"leave them out: {chosen} has every flow, in order of first packet",
        )
    check_place(output, traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(
        traces,
        console,
        anonymizer=anonymity.anonymizer(console),
        meanwhile=_load_table if chosen == "table" else None,
    )
    read = trace.read("flows")
    if chosen == "table":
        _write_text(read, output, sort or "flow", DEFAULT_LIMIT if limit is None else limit)
    elif chosen == "json":
        _write_json(read, trace.warnings, output)
    elif chosen == "csv":
        _write_csv(read, output)
    else:
        _write_parquet(read, output)
    return console.exit_status


def _load_table() -> None:
    """Load what draws the table while the core is reading."""
    import tfrctrace.reports.output
    import tfrctrace.reports.text  # noqa: F401

    if sys.stdout.isatty():
        import rich.box
        import rich.console
        import rich.table  # noqa: F401


def _write_text(reading: Reading, output: str, sort: SortKey, limit: int) -> None:
    from shutil import get_terminal_size

    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.text import write_flows

    chosen = _chosen(reading.table("flows").rows(), sort, limit or None)
    with open_text_output(output) as file:
        write_flows(
            file,
            chosen,
            reading.sources,
            total=reading.flow_count,
            order="in order of first packet" if sort == "flow" else f"by {sort}, largest first",
            width=get_terminal_size().columns if file.isatty() else None,
        )


def _write_json(reading: Reading, problems: list[Problem], output: str) -> None:
    from tfrctrace import __version__
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.tables import write_flows_json

    with open_text_output(output) as file:
        write_flows_json(
            file,
            reading.table("flows").json(),
            reading.sources,
            problems,
            schema_version=SCHEMA_VERSION,
            version=__version__,
        )


def _write_csv(reading: Reading, output: str) -> None:
    from tfrctrace.parsers.schema import FLOWS
    from tfrctrace.reports.output import open_output
    from tfrctrace.reports.tables import write_csv

    with open_output(output) as file:
        write_csv(file, (column.name for column in FLOWS), reading.table("flows").csv())


def _write_parquet(reading: Reading, output: str) -> None:
    from tfrctrace.parsers.reading import arrow_schema
    from tfrctrace.reports.output import open_output
    from tfrctrace.reports.tables import write_table

    with open_output(output) as file:
        write_table(file, "parquet", reading.table("flows").batches(), arrow_schema("flows"))


def _chosen(rows: Iterable[dict[str, Any]], sort: SortKey, limit: int | None) -> list[Flow]:
    """Return the first `limit` flows in the order of `sort`; equal ones in order of first packet."""
    flows = _by_flow(rows)
    if sort == "flow":
        return list(islice(flows, limit))
    key = _KEYS[sort]
    if limit is None:
        return sorted(flows, key=key, reverse=True)
    return heapq.nlargest(limit, flows, key=key)


def _by_flow(rows: Iterable[dict[str, Any]]) -> Iterator[Flow]:
    """Give the rows of each flow together; they follow each other in the table."""
    for _, directions in groupby(rows, key=itemgetter("flow")):
        yield list(directions)


def _sum_of(column: str) -> Callable[[Flow], float]:
    return lambda flow: sum(row[column] or 0 for row in flow)


def _largest(column: str) -> Callable[[Flow], float]:
    # what is not known comes last
    return lambda flow: max(-1.0 if row[column] is None else row[column] for row in flow)


_KEYS: Final[Mapping[SortKey, Callable[[Flow], float]]] = {
    "bytes": _sum_of("wire_bytes"),
    "packets": _sum_of("packets"),
    "goodput": _largest("goodput_bps"),
    "retransmissions": _sum_of("retransmitted_packets"),
    "rtt": _largest("rtt_p50_ms"),
}


def _format(form: FlowsFormat | None, output: str) -> FlowsFormat:
    """Return the form that was asked for, else that of the file's name, else the table."""
    return form or _FORMAT_OF_SUFFIX.get(os.path.splitext(output)[1].lower(), "table")
