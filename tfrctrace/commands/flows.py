"""`tfrctrace flows`: the table of flows."""

from __future__ import annotations

from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Traces, rows_option
from tfrctrace.commands.options.grouped_help import output_option
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.printers.terminal import terminal_width

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO, TextIO

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.parsers.reading import PassResult, StackedTable

Flow = list[dict[str, Any]]
"""The rows of the directions of one flow."""

DEFAULT_ROWS: Final = 25

_last: Final[list[PassResult]] = []
"""Keeps the last result alive until the process exits: freeing many flows one by one takes 5% of the time."""

SortKey = Literal["flow", "bytes", "packets", "goodput", "retransmissions", "rtt"]


def flows(
    traces: Traces,
    *,
    result: OutputOptions,
    sort: Annotated[
        SortKey | None,
        output_option(
            "--sort",
            show_default="bytes",
            help="Order of the text table, largest first; `flow`: by first packet.",
        ),
    ] = None,
    rows: Annotated[int | None, rows_option("flows in the text table", DEFAULT_ROWS)] = None,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """List flows with volume, rate, RTT and losses.

    The text table shows the most used columns; the other formats have all of them, one row per flow and
    direction.
    """
    chosen = result.chosen
    if chosen != "table" and (sort is not None or rows is not None):
        raise UsageError(
            f"`--sort` and `--rows` apply to the text table only, but the format is {chosen}",
            hint=f"leave them out: {chosen} lists every flow in order of its first packet",
        )
    zone = reading.zone
    result.check(traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(
        traces,
        console,
        anonymizer=anonymity.anonymizer(console),
        meanwhile=_load_table if chosen == "table" else None,
    )
    flow_pass = trace.read("flows", "hops") if trace.is_network else trace.read("flows")
    hops = flow_pass.table("hops") if trace.is_network else None
    _last[:] = [flow_pass]
    result.write(
        table=lambda file: _write_text(
            file, flow_pass, sort or "bytes", DEFAULT_ROWS if rows is None else rows, hops, zone=zone
        ),
        json=lambda file: _write_json(file, flow_pass, trace.warnings, hops),
        rows=lambda file, form: _write_rows(file, flow_pass, form, raw=result.raw),
    )
    return console.exit_status


def _load_table() -> None:
    """Import the modules that print the table while the core is reading."""
    import tfrctrace.reports.output
    import tfrctrace.reports.printers.flows  # noqa: F401


def _write_text(
    file: TextIO,
    reading: PassResult,
    sort: SortKey,
    rows: int,
    hops: StackedTable | None,
    *,
    zone: TimeZone | None,
) -> None:
    from tfrctrace.reports.printers.flows import write_flows

    write_flows(
        file,
        _select_flows(reading.table("flows"), sort, rows or None),
        reading.sources,
        total=reading.flow_count,
        order="in order of first packet" if sort == "flow" else f"by {sort}, largest first",
        width=terminal_width(file),
        zone=zone,
    )
    if hops is not None:
        from tfrctrace.metrics.sets.hop_totals import hop_rows
        from tfrctrace.reports.printers.hops import hop_lines

        file.writelines(f"{line}\n" for line in ("", *hop_lines(hop_rows(hops.rows()))))


def _write_json(
    file: TextIO, reading: PassResult, problems: list[Problem], hops: StackedTable | None
) -> None:
    from tfrctrace import __version__
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.files.table_files import write_flows_json

    write_flows_json(
        file,
        reading.table("flows").json(),
        reading.sources,
        problems,
        () if hops is None else hops.json(),
        schema_version=SCHEMA_VERSION,
        version=__version__,
    )


def _write_rows(file: BinaryIO, reading: PassResult, form: Literal["csv", "parquet"], *, raw: bool) -> None:
    from tfrctrace.parsers._native import empty_table
    from tfrctrace.parsers.schema import FLOWS
    from tfrctrace.reports.files.table_files import write_csv, write_table

    table = reading.table("flows")
    if form == "csv":
        write_csv(file, (column.name for column in FLOWS), table.csv(raw=raw))
    else:
        write_table(file, form, table.parts(), empty_table("flows"))


def _select_flows(table: StackedTable, sort: SortKey, most: int | None) -> list[Flow]:
    """Return the first `most` flows in the order of `sort`; equal ones in order of first packet."""
    if sort == "flow":
        return [list(rows) for _, rows in islice(groupby(table.rows(), key=itemgetter("flow")), most)]
    column, total = _KEYS[sort]
    return list(table.largest_flows(column, most, total=total))


_KEYS: Final[Mapping[SortKey, tuple[str, bool]]] = {
    "bytes": ("wire_bytes", True),
    "packets": ("packets", True),
    "goodput": ("goodput_bps", False),
    "retransmissions": ("retransmitted_segments", True),
    "rtt": ("rtt_p50_ms", False),
}
"""The column of an order, and whether it is summed over both directions."""
