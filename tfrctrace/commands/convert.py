"""`tfrctrace convert`: packets, flows or samples as a table for other programs, or packets as a capture."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast, get_args

import typer

from tfrctrace.base.errors import InputError, UsageError
from tfrctrace.base.nearest import proposal_or_all
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.capture_options import CaptureOptions, capture_form
from tfrctrace.commands.options.common import (
    Force,
    MaxSamples,
    RawText,
    Traces,
    check_output_place,
    check_raw,
    check_suffix,
)
from tfrctrace.commands.options.grouped_help import measuring_option, output_option
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.parsers.reading_settings import MAX_SAMPLES
from tfrctrace.reports.files.table_files import FORMAT_OF_SUFFIX, TableFormat
from tfrctrace.reports.output import STANDARD_OUTPUT
from tfrctrace.trace.passes import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl

    from tfrctrace.api import Trace
    from tfrctrace.parsers._native import ArrowStream, Table

What = Literal["packets", TableName, "congestion_controls"]
Form = Literal[TableFormat, "pcap", "pcapng"]

_SAMPLES: Final = tuple(
    name
    for name in get_args(TableName)
    if name not in {"flows", "tcp", "bins", "rtt_buckets", "rtp_sources", "rtp_intervals", "links"}
)
"""Tables limited by `--max-samples`."""

_OF_TFRC: Final = ("flows", "feedback", "loss_events", "loss_intervals", "findings")
"""Tables that depend on TFRC parameters."""

_OF_NUMBERS: Final = (*_OF_TFRC, "rtt", "rtt_buckets", "rtp_sources", "rtp_intervals", "bins")
"""Tables that depend on sequence numbers in datagrams."""

_OF_VANTAGE: Final = (*_OF_TFRC, "rounds")
"""Tables that depend on the capture point."""


def convert(
    traces: Traces,
    *,
    output: Annotated[
        str, output_option("--output", "-o", metavar="FILE", help="Output file; - is standard output.")
    ],
    what: Annotated[What, typer.Option("--what", "-w", help="Table to write.")] = "packets",
    form: Annotated[
        Form | None, output_option("--format", help="Output format; default: from the suffix of -o.")
    ] = None,
    columns: Annotated[
        str | None,
        output_option(
            "--columns",
            metavar="NAMES",
            show_default="all",
            help="Write these columns only, separated by commas (docs/columns.md); fewer take less time.",
        ),
    ] = None,
    capture: CaptureOptions,
    force: Force = False,
    raw: RawText = False,
    bin_width: Annotated[
        str | None,
        measuring_option(
            "--bin-width",
            metavar="TIME",
            show_default="fitted to the duration",
            help="Width of the bins, e.g. 500ms.",
        ),
    ] = None,
    reading: ReadingOptions,
    max_samples: MaxSamples = None,
    anonymity: AnonymityOptions,
) -> int:
    """Write one table, or packets as a capture.

    A table is Parquet, CSV or Arrow. A name that ends in .pcapng or .pcap, also with .gz, .zst, .lz4, .xz or
    .bz2, is that of a capture: packets as they were recorded. Packets are written while they are read, so a
    capture may be larger than memory.
    """
    from tfrctrace.base.durations import parse_duration_ns
    from tfrctrace.reports.files.table_files import write_table
    from tfrctrace.reports.output import open_output

    if copied := capture_form(output, form):
        from tfrctrace.commands.capture_output import refuse_table_options, write_capture

        given = {"--columns": columns, "--raw": raw, "--bin-width": bin_width, "--max-samples": max_samples}
        refuse_table_options(what, given, reading)
        check_output_place(output, traces, force=force)
        return write_capture(traces, output, copied, options=capture, reading=reading, anonymity=anonymity)
    capture.refuse()
    chosen = _form(form, output)
    _refuse_contradictions(what, chosen, output, reading, bin_width=bin_width, max_samples=max_samples)
    names = None if columns is None else _column_names(what, columns)
    check_raw(chosen, raw=raw)
    check_output_place(output, traces, force=force)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(
        traces,
        console,
        max_samples=max_samples or MAX_SAMPLES,
        bin_ns=None if bin_width is None else parse_duration_ns(bin_width),
        anonymizer=anonymity.anonymizer(console),
    )
    empty = _empty(what)
    with open_output(output) as file:
        write = partial(
            write_table, file, chosen, schema=empty if names is None else empty.select(names), raw=raw
        )
        if what == "packets":
            _write_packets(trace, console, names, write)
        else:
            write(_parts(trace, what, names))
    if output != STANDARD_OUTPUT:
        console.note(f"{what} written to `{output}`")
    return console.exit_status


def _form(form: Form | None, output: str) -> TableFormat:
    """Return the requested format, else that of the file's suffix."""
    check_suffix(output, form, FORMAT_OF_SUFFIX)
    if form == "csv" or form == "parquet" or form == "arrow":  # noqa: PLR1714  types are narrowed by it
        return form
    suffix = os.path.splitext(output)[1].lower()
    if suffix not in FORMAT_OF_SUFFIX:
        raise UsageError(
            f"the suffix of `{output}` is not a known format",
            hint="use `.parquet`, `.csv` or `.arrow`, `.pcapng` or `.pcap` for a capture, or give `--format`",
        )
    return FORMAT_OF_SUFFIX[suffix]


def _refuse_contradictions(
    what: What,
    form: TableFormat,
    output: str,
    reading: ReadingOptions,
    *,
    bin_width: str | None,
    max_samples: int | None,
) -> None:
    """Raise for options that have no effect on the selected table."""
    if reading.pair and what == "packets":
        raise UsageError("`--pair` does not apply to packets", hint="choose `--what transits`")
    if reading.layer is not None and what == "packets":
        raise UsageError("`--layer` does not apply to packets: the table has every layer")
    if reading.vantage != "auto" and what not in _OF_VANTAGE:
        raise UsageError(f"`--vantage` applies to `--what {'`, `'.join(_OF_VANTAGE)}` only")
    if reading.dissect and what not in _OF_NUMBERS:
        raise UsageError(f"`--dissect` applies to `--what {'`, `'.join(_OF_NUMBERS)}` only")
    if bin_width is not None and what != "bins":
        raise UsageError("`--bin-width` applies to `--what bins` only")
    if reading.tfrc and what not in _OF_TFRC:
        raise UsageError(f"`--tfrc` applies to `--what {'`, `'.join(_OF_TFRC)}` only")
    if max_samples is not None and what not in _SAMPLES:
        raise UsageError(f"`--max-samples` applies to `--what {'`, `'.join(_SAMPLES)}` only")
    if form != "csv" and output == STANDARD_OUTPUT and sys.stdout.isatty():
        raise UsageError(
            f"{form} is binary and cannot be printed on a terminal",
            hint="name a file with `-o`, or choose `--format csv`",
        )


def _column_names(what: What, text: str) -> list[str]:
    """Return the columns of a table that `text` names; raises `UsageError` for others."""
    known = _empty(what).columns
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UsageError(f"{what} have no column `{name}`", hint=proposal_or_all(name, known))
    if not names:
        raise UsageError("`--columns` names no column", hint=f"there are {', '.join(known)}")
    return names


def _write_packets(
    trace: Trace, console: Console, columns: list[str] | None, write: Callable[[Iterable[ArrowStream]], None]
) -> None:
    packets = trace.packet_batches(columns)
    write(console.watch_items(packets))
    if packets.read_nothing:
        raise InputError(packets.problems)
    console.print_problems(packets.problems)


def _empty(what: What) -> Table | pl.DataFrame:
    """Return the table without rows."""
    from tfrctrace.parsers._native import empty_table

    if what != "congestion_controls":
        return empty_table(what)
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    return pl.DataFrame(schema=polars_schema(what))


def _parts(trace: Trace, table: What, columns: list[str] | None) -> Iterable[ArrowStream]:
    if table in {"variables", "findings", "congestion_controls"}:
        # rows that the core does not have: a log's with their flows, and what is found of TCP's senders
        whole: pl.DataFrame = getattr(trace, table)
        return [whole if columns is None else whole.select(columns)]
    name = cast("TableName", table)
    return trace.read(name).table(name).parts(columns)
