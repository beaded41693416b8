"""`tfrctrace capacity`: what each station of an 802.11 network can send, with every term of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import DONE
from tfrctrace.wlan.cell import CellSettings, Preset
from tfrctrace.wlan.contention import JamMode
from tfrctrace.wlan.phy import Band, Standard, Width
from tfrctrace.wlan.rates import Preamble

if TYPE_CHECKING:
    from tfrctrace.wlan.cell import Cell
    from tfrctrace.wlan.population import Population
    from tfrctrace.wlan.scenario import Step

CapacityFormat = Literal["table", "json"]


def capacity(
    *,
    station: Annotated[
        list[str] | None,
        typer.Option(
            "--station",
            "-s",
            metavar="RATE",
            help="A station that always has a frame to send (an upload): Mb/s as 5.5, or mcs7 of 802.11n; "
            "4x11 for four.",
        ),
    ] = None,
    sparing: Annotated[
        list[str] | None,
        typer.Option(
            "--sparing",
            metavar="RATE:LOAD",
            help="A station that sends only LOAD bit/s of whole frames: 5.5:200k.",
        ),
    ] = None,
    ap_rate: Annotated[
        str | None,
        typer.Option(
            "--ap-rate",
            metavar="RATE",
            show_default="the fastest station's",
            help="Rate of the access point.",
        ),
    ] = None,
    ap_frames: Annotated[
        list[str] | None,
        typer.Option(
            "--ap-frames",
            metavar="RATE:PER_S:BYTES",
            help="Other frames of the access point, such as feedback; bytes with MAC and FCS: 11:20:76.",
        ),
    ] = None,
    downloads: Annotated[
        int,
        typer.Option(
            "--downloads",
            "-d",
            min=0,
            metavar="D",
            help="Downloads through a greedy access point: X_fair.",
        ),
    ] = 0,
    greedy_ap: Annotated[
        bool, typer.Option("--greedy-ap", help="The access point always has a frame to send.")
    ] = False,
    no_ap: Annotated[bool, typer.Option("--no-ap", help="No access point contends.")] = False,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="FILE", help="Who is there, and when, from a TOML file."),
    ] = None,
    tfrc_rate: Annotated[
        str | None,
        typer.Option(
            "--tfrc-rate", metavar="RATE", help="What TFRC allows, as 1.5M bit/s of payload: shows X_send."
        ),
    ] = None,
    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset",
            show_default="standard",
            help="Constants of the standard, or of the MTFRC paper: its numbers (as 1.14 Mb/s) need `paper`.",
        ),
    ] = None,
    phy: Annotated[
        Standard | None, typer.Option("--phy", show_default="b", help="Standard: 802.11b, a, g or n.")
    ] = None,
    payload: Annotated[
        int | None,
        typer.Option("--payload", metavar="BYTES", show_default="1024", help="Payload of a full frame: S_t."),
    ] = None,
    overhead: Annotated[
        int | None,
        typer.Option(
            "--overhead",
            metavar="BITS",
            show_default="IPv4, UDP, LLC and MAC",
            help="All headers of a frame with FCS: S - S_t.",
        ),
    ] = None,
    preamble: Annotated[
        Preamble | None, typer.Option("--preamble", show_default="long", help="Preamble of 802.11b frames.")
    ] = None,
    band: Annotated[Band | None, typer.Option("--band", show_default="5", help="GHz of 802.11n.")] = None,
    width: Annotated[Width | None, typer.Option("--width", show_default="20", help="MHz of 802.11n.")] = None,
    short_gi: Annotated[bool, typer.Option("--short-gi", help="Short guard interval of 802.11n.")] = False,
    cw_min: Annotated[
        int | None,
        typer.Option(
            "--cw-min", metavar="N", show_default="31 of 802.11b, else 15", help="Contention window CWmin."
        ),
    ] = None,
    ack_rate: Annotated[
        str | None,
        typer.Option(
            "--ack-rate", metavar="RATE", show_default="highest basic rate", help="One rate for all ACKs."
        ),
    ] = None,
    basic_rate: Annotated[
        list[str] | None,
        typer.Option(
            "--basic-rate",
            metavar="RATE",
            show_default="1 and 2; 6, 12 and 24",
            help="A basic rate, at which ACKs are sent; once for each.",
        ),
    ] = None,
    cts_to_self: Annotated[
        str | None,
        typer.Option("--cts-to-self", metavar="RATE", help="802.11g: a CTS at RATE before OFDM frames."),
    ] = None,
    jam: Annotated[
        JamMode | None,
        typer.Option("--jam", show_default="pairwise", help="How the mean time of a collision is taken."),
    ] = None,
    jam_backoff: Annotated[
        bool, typer.Option("--jam-backoff", help="Count t_cont as part of a collision.")
    ] = False,
    form: Annotated[CapacityFormat, typer.Option("--format", help="Form of the output.")] = "table",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
) -> int:
    """Tell what each station of an 802.11 network can send: X_m, X_t and X_fair of MTFRC, term by term.

    No trace is read. The paper's own numbers come with `--preset paper`; docs/capacity.md explains model and
    presets.
    """
    from tfrctrace.base.bitrates import parse_bitrate_bps
    from tfrctrace.wlan.cell import make_cell
    from tfrctrace.wlan.population import Description
    from tfrctrace.wlan.scenario import read_scenario

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
    if scenario is None:
        cell = make_cell(settings)
        document = _model(cell, described.population(cell.phy), x_tfrc_bps)
    elif described.is_empty:
        read = read_scenario(scenario, settings)
        cell = read.cell
        document = {"steps": [_step(cell, step, x_tfrc_bps) for step in read.steps]}
    else:
        raise UsageError("with `--scenario` the file says who is there, and options cannot say it too")
    _write(cell, document, form, output)
    return DONE


def _step(cell: Cell, step: Step, x_tfrc_bps: float | None) -> dict[str, Any]:
    try:
        terms = _model(cell, step.population, x_tfrc_bps)
    except UsageError as error:
        raise UsageError(f"from {step.from_s:g} s on: {error}", hint=error.hint) from error
    return {"from_s": step.from_s, "until_s": step.until_s, **terms}


def _model(cell: Cell, population: Population, x_tfrc_bps: float | None) -> dict[str, Any]:
    from tfrctrace.wlan.capacity import capacity as capacity_of
    from tfrctrace.wlan.terms import capacity_terms

    found = capacity_of(cell, population)
    if not found.is_feasible:
        raise UsageError(
            f"the access point's own frames take {found.u:.4g} of the time, which leaves nothing (U >= 1)",
            hint="fewer, shorter or faster frames are feasible",
        )
    return capacity_terms(cell, found, x_tfrc_bps)


def _write(cell: Cell, document: dict[str, Any], form: CapacityFormat, output: str) -> None:
    from tfrctrace import __version__
    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.printers.capacity import write_capacity_json, write_capacity_text
    from tfrctrace.wlan.terms import network_terms

    with open_text_output(output) as file:
        if form == "json":
            write_capacity_json(file, network_terms(cell), document, version=__version__)
        else:
            write_capacity_text(file, network_terms(cell), document)
