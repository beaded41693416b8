"""`tfrctrace plot`: one figure of a report as a file for a paper or a talk."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Traces, check_output_place
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.figures.kinds import PlotKind
from tfrctrace.reports.figures.publication import PaperStyle, Width, image_form


def plot(
    traces: Traces,
    *,
    kind: Annotated[
        PlotKind,
        typer.Option("--kind", "-k", help="What is drawn; docs/reports.md says what each kind needs."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="An .svg, .pdf or .png file.")
    ],
    flow: Annotated[
        int | None,
        typer.Option(
            "--flow", min=1, metavar="N", help="Draw this flow alone, as `tfrctrace flows` numbers it."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="TIME",
            show_default="as fits",
            help="What each point of throughput, rtt, fairness, delay or pdr sums up, as 500ms.",
        ),
    ] = None,
    style: Annotated[
        PaperStyle, typer.Option("--style", help="Sizes of columns and text: IEEE's, ACM's, or larger ones.")
    ] = "ieee",
    width: Annotated[Width, typer.Option("--width", help="As wide as one or as two columns.")] = "single",
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Draw one figure of a report as SVG, PDF or PNG, as wide as a column of a paper.

    Fonts are embedded, colours can be told apart by everybody and dashes in grey; the same trace gives the
    same bytes. Where there are several figures of a kind, the first is drawn, and the others are named.
    """
    image_form(output)
    check_output_place(output, traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))
    drawn, *others = trace.plot(kind, output, flow=flow, window=window, style=style, width=width).figures
    console.note(f"figure written to `{output}`: {drawn.title}")
    if others:
        titles = "; ".join(one.title for one in others)
        console.note(f"there is also: {titles} (`--flow`, or one trace alone, chooses)")
    return console.exit_status
