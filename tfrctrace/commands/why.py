"""`tfrctrace why`: why flows were no faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.base.memory import trim_heap
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Traces, check_order, rows_option
from tfrctrace.commands.options.grouped_help import output_option
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.printers.terminal import terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import BinaryIO, Literal, TextIO

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.why import FlowCauses, UntoldFlow

DEFAULT_ROWS: Final = 3


def why(
    traces: Traces,
    *,
    flow: Annotated[
        list[int] | None,
        typer.Option(
            "--flow", min=1, metavar="N", help="This flow only, numbered as in `tfrctrace flows`; repeatable."
        ),
    ] = None,
    sort: Annotated[
        str | None,
        output_option(
            "--sort",
            metavar="KEY",
            show_default="goodput",
            help="Order of the text: goodput (slowest first), bytes (most first), or the largest share of a "
            "cause, such as receiver.",
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="MODULE:CLASS",
            help="A congestion control of your own that may have sent a flow; repeatable.",
        ),
    ] = None,
    rows: Annotated[int | None, rows_option("directions that are described", DEFAULT_ROWS)] = None,
    result: OutputOptions,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Say what kept TCP flows from being faster.

    The text describes the slowest flows among those with a hundredth of all payload, or the named ones, and
    names the flows of which nothing tells; the other formats have all TCP flows, with the share of their time
    by cause.
    """
    from tfrctrace.metrics.flow.causes import CAUSES, CausesOfRows, rows_by

    chosen = result.chosen
    if chosen != "table" and (sort is not None or rows is not None):
        raise UsageError(
            f"`--sort` and `--rows` apply to the text only, but the format is {chosen}",
            hint=f"leave them out: {chosen} lists every direction with data",
        )
    check_order(sort, ("goodput", "bytes", *CAUSES))
    result.check(traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))
    causes = trace.why_rows(algorithm or ())
    found, untold = _of_flows(causes, trace.untold(), flow)
    warnings = trace.warnings
    # its tables are several times as large as the rows
    del trace
    trim_heap()

    def write_text(file: TextIO) -> None:
        from tfrctrace.reports.printers.why import write_why

        key = sort or "goodput"
        listed = found if flow else rows_by(causes, key, DEFAULT_ROWS if rows is None else rows)
        shown = list(CausesOfRows(listed))
        order = "slowest first" if key == "goodput" else f"by {key}, largest first"
        write_why(
            file, shown, CausesOfRows(causes), untold, order="" if flow else order, width=terminal_width(file)
        )

    result.write(
        table=write_text,
        json=lambda file: _write_json(file, CausesOfRows(found), untold, warnings),
        rows=lambda file, form: _write_rows(file, found, form, raw=result.raw),
    )
    return console.exit_status


def _of_flows(
    found: pl.DataFrame, others: Sequence[UntoldFlow], numbers: list[int] | None
) -> tuple[pl.DataFrame, Sequence[UntoldFlow]]:
    """Return what is wanted; raise for a flow without data."""
    if not numbers:
        return found, others
    known = {*found["flow"], *(one.flow for one in others)}
    missing = sorted(set(numbers) - known)
    if missing:
        raise UsageError(f"no flow {missing[0]} has data", hint="`tfrctrace flows` numbers all flows")
    return found.filter(found["flow"].is_in(numbers)), [one for one in others if one.flow in numbers]


def _write_json(
    file: TextIO, found: Iterable[FlowCauses], untold: Sequence[UntoldFlow], warnings: Sequence[Problem]
) -> None:
    from tfrctrace import __version__
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.files.table_files import write_why_json

    write_why_json(file, found, untold, warnings, schema_version=SCHEMA_VERSION, version=__version__)


def _write_rows(file: BinaryIO, found: pl.DataFrame, form: Literal["csv", "parquet"], *, raw: bool) -> None:
    from tfrctrace.reports.files.table_files import write_table
    from tfrctrace.reports.printers.why import why_frame

    frame = why_frame(found)
    write_table(file, form, [frame], frame.clear(), raw=raw)
