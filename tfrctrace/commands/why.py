"""`tfrctrace why`: why flows were no faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Traces, rows_option
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.printers.terminal import terminal_width

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO, Literal, TextIO

    from tfrctrace.api import Trace
    from tfrctrace.metrics.results.why import FlowCauses

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
    rows: Annotated[int | None, rows_option("directions that are described", DEFAULT_ROWS)] = None,
    result: OutputOptions,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Say what kept TCP flows from being faster.

    The text describes the slowest flows among those with a hundredth of all payload, or the named ones; the
    other formats have all flows, with the share of their time by cause.
    """
    chosen = result.chosen
    if chosen != "table" and rows is not None:
        raise UsageError(
            f"`--rows` applies to the text only, but the format is {chosen}",
            hint=f"leave it out: {chosen} lists every direction with data",
        )
    result.check(traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))
    found = _of_flows(trace.why(), flow)

    def write_text(file: TextIO) -> None:
        from tfrctrace.reports.printers.why import write_why

        shown = found if flow else _slowest_first(found, DEFAULT_ROWS if rows is None else rows)
        write_why(file, shown, total=len(found), width=terminal_width(file))

    result.write(
        table=write_text,
        json=lambda file: _write_json(file, found, trace),
        rows=lambda file, form: _write_rows(file, found, form, raw=result.raw),
    )
    return console.exit_status


def _of_flows(found: Sequence[FlowCauses], numbers: list[int] | None) -> Sequence[FlowCauses]:
    """Return what is wanted; raise if a flow has none."""
    if not numbers:
        return found
    missing = sorted(set(numbers) - {one.flow for one in found})
    if missing:
        raise UsageError(
            f"flow {missing[0]} is no captured TCP connection with data",
            hint="`tfrctrace flows` numbers all flows",
        )
    return [one for one in found if one.flow in numbers]


def _slowest_first(found: Sequence[FlowCauses], limit: int) -> Sequence[FlowCauses]:
    """Return so many of the slowest that are not small; all flows if it is 0."""
    from tfrctrace.metrics.flow.causes import without_small

    ordered = sorted(found, key=lambda one: one.goodput_bps or 0.0)
    return without_small(ordered)[:limit] if limit else ordered


def _write_json(file: TextIO, found: Sequence[FlowCauses], trace: Trace) -> None:
    from tfrctrace import __version__
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.files.table_files import write_why_json

    write_why_json(file, found, trace.warnings, schema_version=SCHEMA_VERSION, version=__version__)


def _write_rows(
    file: BinaryIO, found: Sequence[FlowCauses], form: Literal["csv", "parquet"], *, raw: bool
) -> None:
    from tfrctrace.reports.files.table_files import write_table
    from tfrctrace.reports.printers.why import why_frame

    frame = why_frame(found)
    write_table(file, form, [frame], frame.clear(), raw=raw)
