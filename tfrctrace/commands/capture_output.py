"""Packets as they were recorded, in a capture of their own: `tfrctrace convert -o flow.pcapng`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.commands.console import Console
from tfrctrace.reports.output import STANDARD_OUTPUT, check_output, open_output, open_text_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.api import Trace
    from tfrctrace.commands.options.anonymity_options import AnonymityOptions
    from tfrctrace.commands.options.capture_options import CaptureOptions
    from tfrctrace.commands.options.reading_options import ReadingOptions
    from tfrctrace.parsers.copying import CopiedPackets

_COLOURS: Final = ".colorfilters"
"""Suffix of the rules beside a capture with comments."""

_SEVERAL: Final = "name a file that ends in `.pcapng`, which has packets of several kinds"


def refuse_table_options(what: str, given: Mapping[str, object], reading: ReadingOptions) -> None:
    """Raise `UsageError` for what applies to tables only."""
    if what != "packets":
        raise UsageError(f"a capture has packets, and `--what {what}` is a table", hint="leave out `--what`")
    unfit = [name for name, value in given.items() if value]
    unfit += [name for name, value in (("--pair", reading.pair), ("--layer", reading.layer)) if value]
    if unfit:
        raise UsageError(f"`{unfit[0]}` does not apply to a capture that is written")


def write_capture(
    traces: list[str],
    output: str,
    form: tuple[str, str],
    *,
    options: CaptureOptions,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Write the packets that are wanted, and return the exit status."""
    from tfrctrace.trace.chosen_packets import chooser

    choice = options.choice
    if options.comments and form[0] != "pcapng":
        raise UsageError("a pcap file has no place for comments", hint="name a file that ends in `.pcapng`")
    if output == STANDARD_OUTPUT and sys.stdout.isatty():
        raise UsageError(
            f"{form[0]} is binary and cannot be printed on a terminal", hint="name a file with `-o`"
        )
    colours = None if output == STANDARD_OUTPUT or not options.comments else output + _COLOURS
    if colours:
        check_output(colours)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))
    choose = chooser(trace, choice)
    copied = trace.copied_packets(form, choose, _verdict(trace) if options.comments else None)
    _write(copied, output, console, hint=_SEVERAL if form[0] == "pcap" else None)
    console.print_problems(copied.problems)
    _tell_counts(copied, console)
    if colours:
        from tfrctrace.reports.files.colour_rules import colour_rules

        with open_text_output(colours) as file:
            file.writelines(colour_rules())
    if output != STANDARD_OUTPUT:
        console.note(f"{copied.written} packets written to `{output}`")
    return console.exit_status


def _write(copied: CopiedPackets, output: str, console: Console, *, hint: str | None) -> None:
    with open_output(output) as file:
        try:
            for piece in console.watch_items(copied):
                file.write(piece)
        except ValueError as error:
            raise UsageError(str(error), hint=hint) from error
        if copied.read_nothing:
            raise InputError(copied.problems)
        if copied.is_chosen and not copied.written:
            raise UsageError(
                "no packet is of the chosen flow, class and cause",
                hint="`tfrctrace flows` numbers all flows, `convert --what losses` has all classes",
            )


def _tell_counts(copied: CopiedPackets, console: Console) -> None:
    """Say which packets are missing, or lack a comment."""
    from tfrctrace.reports.units import counted

    for reason, packets in copied.dropped.items():
        message = f"{counted(packets, 'packet')} left out: {reason} cannot be rewritten without addresses"
        console.print_problems([input_problem("addresses", "left_out", message, severity="warning")])
    if copied.without_comment:
        console.note(
            f"{counted(copied.without_comment, 'packet')} in blocks that have no place for a comment"
        )


def _verdict(trace: Trace) -> str:
    """Return what held the largest flows back, a line for each."""
    from tfrctrace.metrics.flow.causes import CausesOfRows, rows_by
    from tfrctrace.reports.why_words import sentences

    rows = trace.why_rows()
    found, largest = CausesOfRows(rows), CausesOfRows(rows_by(rows, "bytes", 10))
    lines = [f"flow {flow.flow} {flow.direction}: {' '.join(sentences(flow, found))}" for flow in largest]
    return "\n".join(
        ["What held the largest flows back, by tfrctrace:", *lines] if lines else ["no flow with data"]
    )
