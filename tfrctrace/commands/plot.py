"""`tfrctrace plot`: one figure of a report as an image file."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.closed_loop_options import Bottleneck, Sweep
from tfrctrace.commands.options.common import Force, Traces, check_output_place
from tfrctrace.commands.options.grouped_help import output_option
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.figures.kinds import PlotKind
from tfrctrace.reports.figures.publication import PaperStyle, Width, plot_form


def plot(
    traces: Traces,
    *,
    kind: Annotated[
        PlotKind,
        typer.Option("--kind", "-k", help="Figure to draw; docs/reports.md says what each kind needs."),
    ],
    output: Annotated[
        str, output_option("--output", "-o", metavar="FILE", help="An .svg, .pdf, .png or .html file.")
    ],
    force: Force = False,
    flow: Annotated[
        int | None,
        typer.Option(
            "--flow", min=1, metavar="N", help="Draw this flow only, numbered as in `tfrctrace flows`."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="TIME",
            show_default="fitted to the duration",
            help="Width of the windows of throughput, rtt, fairness, delay or pdr, e.g. 500ms.",
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAMES",
            show_default="tfrc for replay, newreno for closed-loop",
            help="Algorithms of `--kind replay`, `cwnd` and `closed-loop`, separated by commas.",
        ),
    ] = None,
    bottleneck: Bottleneck = None,
    sweep: Sweep = None,
    style: Annotated[
        PaperStyle, typer.Option("--style", help="Column and text sizes: IEEE, ACM, or larger for slides.")
    ] = "ieee",
    width: Annotated[
        Width, typer.Option("--width", help="Width of the figure: one or two columns.")
    ] = "single",
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Draw one figure as SVG, PDF or PNG, or a page to zoom.

    The figure is as wide as a column of a paper, with embedded fonts, colours for colour-blind readers and
    dashes that differ in greyscale. The same trace gives the same bytes. If a kind has several figures, the
    first is drawn and the others are listed; an .html file has all, as in the report.
    """
    form = plot_form(output)
    check_output_place(output, traces, force=force)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))
    with console.printing_warnings():
        drawing = trace.plot(
            kind,
            output,
            flow=flow,
            window=window,
            style=style,
            width=width,
            algorithms=[] if algorithm is None else algorithm.split(","),
            bottleneck=bottleneck or (),
            sweep=sweep,
        )
        drawn, *others = drawing.figures
    console.note(f"figure written to `{output}`: {drawn.title}")
    for line in drawing.left_out:
        console.note(line)
    if others and form != "html":
        titles = "; ".join(figure.title for figure in others)
        console.note(f"other figures of this kind: {titles} (`--flow` draws another flow, an .html file all)")
    return console.exit_status
