"""`tfrctrace capacity`: the capacity of each station of an 802.11 network, with every term of the model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import DONE
from tfrctrace.commands.options.common import Force, OutputFile, check_output_places
from tfrctrace.commands.options.grouped_help import output_option
from tfrctrace.metrics.results.capacity import SweptRate
from tfrctrace.wlan.cell import CellSettings, Preset
from tfrctrace.wlan.contention import JamMode
from tfrctrace.wlan.phy import Band, Standard, Width
from tfrctrace.wlan.rates import Preamble

if TYPE_CHECKING:
    from tfrctrace.metrics.results.capacity import CapacityStep, CapacityTerms
    from tfrctrace.wlan.cell import Cell
    from tfrctrace.wlan.population import Description, Population
    from tfrctrace.wlan.scenario import Step

CapacityFormat = Literal["table", "json"]

station_option: Final = partial(typer.Option, rich_help_panel="Stations")
sweep_option: Final = partial(typer.Option, rich_help_panel="Sweep")
model_option: Final = partial(typer.Option, rich_help_panel="Model")


def capacity(
    *,
    station: Annotated[
        list[str] | None,
        station_option(
            "--station",
            "-s",
            metavar="RATE",
            help="A station that always has a frame to send (an upload), by its rate: Mb/s such as 5.5, or "
            "mcs7 of 802.11n; 4x11 for four.",
        ),
    ] = None,
    sparing: Annotated[
        list[str] | None,
        station_option(
            "--sparing",
            metavar="RATE:LOAD",
            help="A station that sends only LOAD bit/s, counted in whole frames: 5.5:200k.",
        ),
    ] = None,
    ap_rate: Annotated[
        str | None,
        station_option(
            "--ap-rate",
            metavar="RATE",
            show_default="that of the fastest station",
            help="Rate of the access point.",
        ),
    ] = None,
    ap_frames: Annotated[
        list[str] | None,
        station_option(
            "--ap-frames",
            metavar="RATE:PER_S:BYTES",
            help="Other frames of the access point, e.g. feedback: 11:20:76; BYTES include MAC and FCS.",
        ),
    ] = None,
    downloads: Annotated[
        int,
        station_option(
            "--downloads",
            "-d",
            min=0,
            metavar="D",
            help="Number of downloads through an access point that always sends: X_fair.",
        ),
    ] = 0,
    greedy_ap: Annotated[
        bool, station_option("--greedy-ap", help="Assume that the access point always has a frame to send.")
    ] = False,
    no_ap: Annotated[bool, station_option("--no-ap", help="Assume no access point.")] = False,
    scenario: Annotated[
        str | None, station_option("--scenario", metavar="FILE", help="Stations over time, from a TOML file.")
    ] = None,
    sweep: Annotated[
        str | None,
        sweep_option(
            "--sweep",
            metavar="FIRST:LAST[:STEP]",
            help="Numbers of stations, e.g. 4:30: prints the rate of each station of every `--mix`.",
        ),
    ] = None,
    mix: Annotated[
        list[str] | None,
        sweep_option(
            "--mix",
            metavar="RATES",
            help="Stations of a curve, with `Nx` before the rate of those that make up the number: Nx11, or "
            "5.5,Nx11 for one at 5.5 Mb/s; repeatable.",
        ),
    ] = None,
    rate: Annotated[SweptRate, sweep_option("--rate", help="Rate to print and draw.")] = "x_t",
    draw: Annotated[
        str | None, sweep_option("--draw", metavar="FILE", help="Draw the sweep to an SVG, PDF or PNG file.")
    ] = None,
    tfrc_rate: Annotated[
        str | None,
        model_option(
            "--tfrc-rate",
            metavar="RATE",
            help="Rate that TFRC allows, in bit/s of payload, e.g. 1.5M: shows X_send.",
        ),
    ] = None,
    preset: Annotated[
        Preset | None,
        model_option(
            "--preset",
            show_default="standard",
            help="Constants of the standard or of the MTFRC paper; the paper's numbers (as 1.14 Mb/s) "
            "need `paper`.",
        ),
    ] = None,
    phy: Annotated[
        Standard | None, model_option("--phy", show_default="b", help="Physical layer: 802.11b, a, g or n.")
    ] = None,
    payload: Annotated[
        int | None,
        model_option("--payload", metavar="BYTES", show_default="1024", help="Payload of a full frame: S_t."),
    ] = None,
    overhead: Annotated[
        int | None,
        model_option(
            "--overhead",
            metavar="BITS",
            show_default="IPv4, UDP, LLC and MAC",
            help="Headers of a frame, with the FCS: S - S_t.",
        ),
    ] = None,
    preamble: Annotated[
        Preamble | None, model_option("--preamble", show_default="long", help="Preamble of 802.11b frames.")
    ] = None,
    band: Annotated[
        Band | None, model_option("--band", show_default="5", help="Band of 802.11n in GHz.")
    ] = None,
    width: Annotated[
        Width | None, model_option("--width", show_default="20", help="Channel width of 802.11n in MHz.")
    ] = None,
    short_gi: Annotated[
        bool, model_option("--short-gi", help="Use the short guard interval of 802.11n.")
    ] = False,
    cw_min: Annotated[
        int | None,
        model_option(
            "--cw-min", metavar="N", show_default="31 for 802.11b, else 15", help="Contention window CWmin."
        ),
    ] = None,
    ack_rate: Annotated[
        str | None,
        model_option(
            "--ack-rate", metavar="RATE", show_default="highest basic rate", help="Rate of all ACKs."
        ),
    ] = None,
    basic_rate: Annotated[
        list[str] | None,
        model_option(
            "--basic-rate",
            metavar="RATE",
            show_default="1 and 2; 6, 12 and 24",
            help="A basic rate, at which ACKs are sent; repeatable.",
        ),
    ] = None,
    cts_to_self: Annotated[
        str | None,
        model_option(
            "--cts-to-self", metavar="RATE", help="Send a CTS at RATE before OFDM frames (802.11g)."
        ),
    ] = None,
    jam: Annotated[
        JamMode | None,
        model_option(
            "--jam", show_default="pairwise", help="How the mean duration of a collision is computed."
        ),
    ] = None,
    jam_backoff: Annotated[
        bool, model_option("--jam-backoff", help="Count t_cont as part of a collision.")
    ] = False,
    form: Annotated[CapacityFormat, output_option("--format", help="Output format.")] = "table",
    output: OutputFile = "-",
    force: Force = False,
) -> int:
    """Compute the capacity of each station of an 802.11 network.

    Prints X_m, X_t and X_fair of MTFRC with every term of the model, without reading a trace.
    `--sweep` does so over the number of stations, and draws it.
    `--preset paper` reproduces the paper's numbers; docs/capacity.md explains the model and the presets.
    """
    from tfrctrace.base.bitrates import parse_bitrate_bps
    from tfrctrace.wlan.cell import make_cell
    from tfrctrace.wlan.population import Description
    from tfrctrace.wlan.scenario import read_scenario

    check_output_places((output, draw), [] if scenario is None else [scenario], force=force)
    settings = CellSettings(
        preset=preset,
        phy=phy,
        preamble=preamble,
        band=band,
        width=width,
        short_gi=short_gi or None,
        payload_bytes=payload,
        overhead_bits=overhead,
        cw_min=cw_min,
        ack_rate=ack_rate,
        basic_rates=tuple(basic_rate) if basic_rate else None,
        cts_rate=cts_to_self,
        jam=jam,
        jam_backoff=jam_backoff or None,
    )
    described = Description(
        stations=tuple(station or ()),
        sparing=tuple(sparing or ()),
        ap_rate=ap_rate,
        ap_frames=tuple(ap_frames or ()),
        downloads=downloads,
        greedy_ap=greedy_ap,
        no_ap=no_ap,
    )
    x_tfrc_bps = None if tfrc_rate is None else parse_bitrate_bps(tfrc_rate)
    if sweep is not None:
        for name, value in {"--station": station, "--scenario": scenario, "--tfrc-rate": tfrc_rate}.items():
            if value:
                raise UsageError(f"`{name}` cannot be combined with `--sweep`")
        _sweep(make_cell(settings), described, sweep, mix or [], rate, form, output, draw)
        return DONE
    if mix or draw:
        raise UsageError("`--mix` and `--draw` need `--sweep`", hint="e.g. `--sweep 4:30 --mix Nx11`")
    if scenario is None:
        cell = make_cell(settings)
        found: CapacityTerms | tuple[CapacityStep, ...] = _model(
            cell, described.population(cell.phy), x_tfrc_bps
        )
    elif described.is_empty:
        read = read_scenario(scenario, settings)
        cell = read.cell
        found = tuple(_step(cell, step, x_tfrc_bps) for step in read.steps)
    else:
        raise UsageError("`--scenario` cannot be combined with options for stations: the file has them")
    _write(cell, found, form, output)
    return DONE


def _sweep(  # noqa: PLR0917
    cell: Cell,
    described: Description,
    counts: str,
    mixes: list[str],
    rate: SweptRate,
    form: CapacityFormat,
    output: str,
    draw: str | None,
) -> None:
    from tfrctrace import __version__
    from tfrctrace.reports.figures.publication import chart_file, image_form
    from tfrctrace.reports.output import open_output, open_text_output
    from tfrctrace.reports.printers.capacity import write_capacity_json
    from tfrctrace.reports.printers.capacity_sweep import sweep_chart, write_sweep_text
    from tfrctrace.wlan.sweep import parse_counts, parse_mix, sweep_terms
    from tfrctrace.wlan.terms import network_terms

    if not mixes:
        raise UsageError("`--sweep` needs the rates of the stations", hint="name them with `--mix Nx11`")
    image = image_form(draw) if draw is not None else None
    swept = sweep_terms(cell, described, parse_counts(counts), [parse_mix(text) for text in mixes])
    network = network_terms(cell)
    with open_text_output(output) as file:
        if form == "json":
            write_capacity_json(file, network, swept, version=__version__)
        else:
            write_sweep_text(file, network, swept, rate)
    if draw is not None and image is not None:
        with open_output(draw) as drawing:
            drawing.write(chart_file(sweep_chart(swept, rate), image))


def _step(cell: Cell, step: Step, x_tfrc_bps: float | None) -> CapacityStep:
    from tfrctrace.metrics.results.capacity import CapacityStep

    try:
        terms = _model(cell, step.population, x_tfrc_bps)
    except UsageError as error:
        raise UsageError(f"from {step.from_s:g} s: {error}", hint=error.hint) from error
    return CapacityStep(step.from_s, step.until_s, terms)


def _model(cell: Cell, population: Population, x_tfrc_bps: float | None) -> CapacityTerms:
    from tfrctrace.wlan.capacity import capacity as capacity_of
    from tfrctrace.wlan.terms import capacity_terms

    result = capacity_of(cell, population)
    if not result.is_feasible:
        raise UsageError(
            f"the access point's own frames take {result.u:.4g} of the time, which leaves none (U >= 1)",
            hint="use fewer, shorter or faster frames",
        )
    return capacity_terms(cell, result, x_tfrc_bps)


def _write(
    cell: Cell, found: CapacityTerms | tuple[CapacityStep, ...], form: CapacityFormat, output: str
) -> None:
    from tfrctrace import __version__
    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.printers.capacity import write_capacity_json, write_capacity_text
    from tfrctrace.wlan.terms import network_terms

    with open_text_output(output) as file:
        if form == "json":
            write_capacity_json(file, network_terms(cell), found, version=__version__)
        else:
            write_capacity_text(file, network_terms(cell), found)
