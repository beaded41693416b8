"""`tfrctrace replay`: what rate algorithms would have allowed, beside what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfrctrace import __version__
from tfrctrace.base.bounds import MAX_DECOMPRESSED_BYTES, MAX_FLOWS, MAX_SAMPLES
from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.common import MaxSamples, Quiet, Strict, Traces
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import (
    Dissect,
    Filter,
    Format,
    Layer,
    MaxDecompressed,
    MaxFlows,
    ReadingOptions,
    Vantage,
)
from tfrctrace.replay.tfrc import Profile
from tfrctrace.trace.trace import LEAST_PACKETS
from tfrctrace.wlan.cell import CellSettings, Preset
from tfrctrace.wlan.phy import Standard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops
    from tfrctrace.replay.open_loop import OpenLoopReplay
    from tfrctrace.trace.trace import Trace
    from tfrctrace.wlan.scenario import Scenario

Loop = Literal["open", "closed"]


def replay(
    traces: Traces,
    *,
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAMES",
            help="tfrc, tfrc-sp, ccid4, tfrc-veno, mtfrc, newreno, sack, vegas, veno, modified-veno, "
            "westwood, cubic or mymodule:MyControl, with commas between.",
        ),
    ] = "tfrc",
    loop: Annotated[
        Loop,
        typer.Option(
            "--loop",
            help="open: the trace's reports drive the algorithm. closed: the algorithm drives a model of the "
            "bottleneck that the trace shows; docs/models.md.",
        ),
    ] = "open",
    bottleneck: Annotated[
        list[str] | None,
        typer.Option(
            "--bottleneck",
            metavar="NAME=VALUE",
            help="closed: what the trace does not show, or what would be if: capacity=3M, base_rtt=40ms, "
            "buffer=20000 (bytes), loss=0.01 (chance), window=64000 (receiver's), others=0 (without them).",
        ),
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="closed: the algorithms share the bottleneck.")
    ] = False,
    profile: Annotated[Profile, typer.Option("--profile", help="Whose TFRC it is.")] = "rfc5348",
    tfrc: Annotated[
        list[str] | None,
        typer.Option(
            "--tfrc",
            metavar="NAME=VALUE",
            help="A parameter of all kinds of TFRC that is not the default, as q=0.8, or of ns-2's agents, "
            "as df=0.9; docs/replay.md lists them.",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="ALGORITHM.NAME=VALUE",
            help="A parameter of one algorithm, as vegas.alpha=1, tfrc.n=16, tfrc-veno.gamma=mix or "
            "mymodule:MyControl.gain=2; docs/replay.md and docs/models.md list them.",
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option("--rtt", metavar="TIME", help="Round-trip time of flows that do not tell their own."),
    ] = None,
    segment_size: Annotated[
        int | None,
        typer.Option(
            "--segment-size", min=1, metavar="BYTES", show_default="each flow's", help="Segment size s."
        ),
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option("--sensitivity", help="Replay also with half and with twice of every round-trip time."),
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Make the reports of a receiver also where the trace has them.")
    ] = False,
    least_packets: Annotated[
        int,
        typer.Option(
            "--least-packets", min=1, metavar="N", help="Leave out flows with fewer than N data packets."
        ),
    ] = LEAST_PACKETS,
    flow: Annotated[
        list[int] | None, typer.Option("--flow", min=1, metavar="N", help="Only this flow; once for each.")
    ] = None,
    station: Annotated[
        list[str] | None,
        typer.Option(
            "--station", metavar="RATE", help="mtfrc: a greedy station by its rate, as 11, or 4x11 for four."
        ),
    ] = None,
    sparing: Annotated[
        list[str] | None,
        typer.Option(
            "--sparing",
            metavar="RATE:LOAD",
            help="mtfrc: beside `--station`, one that sends only LOAD bit/s of whole frames: 5.5:200k.",
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="FILE", help="mtfrc: who is there, and when, from a TOML file."),
    ] = None,
    stations_seen: Annotated[
        bool,
        typer.Option(
            "--stations-seen",
            help="mtfrc: the stations and rates of the trace's own 802.11 frames, or of ns-2's MAC lines.",
        ),
    ] = False,
    downloads: Annotated[
        int, typer.Option("--downloads", min=0, metavar="D", help="mtfrc: flows from the access point.")
    ] = 0,
    preset: Annotated[
        Preset | None,
        typer.Option("--preset", show_default="standard", help="mtfrc: constants of the MAC model."),
    ] = None,
    phy: Annotated[
        Standard | None,
        typer.Option("--phy", show_default="b, or as seen", help="mtfrc: standard 802.11b, a, g or n."),
    ] = None,
    result: OutputOptions,
    filter: Filter = None,
    input_format: Format = None,
    layer: Layer = None,
    vantage: Vantage = "auto",
    dissect: Dissect = None,
    max_flows: MaxFlows = MAX_FLOWS,
    max_samples: MaxSamples = None,
    max_decompressed_bytes: MaxDecompressed = MAX_DECOMPRESSED_BYTES,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Run rate algorithms offline on the flows of traces: what each would have allowed, beside what was sent.

    The reports of a TFRC receiver drive them, or those that the losses and round-trip times of another flow
    amount to. The table sums up; json, csv and parquet have every step with its reason. What such a replay
    can and cannot tell is said in docs/replay.md.
    """
    from tfrctrace.parsers.tfrc import parse_parameter
    from tfrctrace.replay.closed_loop.overrides import parse_overrides
    from tfrctrace.replay.open_loop import select_algorithms
    from tfrctrace.replay.parameters import parse_settings

    names = [name.strip() for name in algorithm.split(",") if name.strip()]
    told = [parse_parameter(text) for text in tfrc or ()]
    # a name instead of a number is about the trace: whose rules its own ends obey
    parameters = [(name, value) for name, value in told if not isinstance(value, str)]
    settings = parse_settings(setting or ())
    select_algorithms(names, profile, parameters, settings=settings)  # before anybody waits for the reading
    if loop == "closed":
        _refuse(
            "--loop closed",
            {
                "--rtt": rtt,
                "--sensitivity": sensitivity,
                "--simulate": simulate,
                "--station": station,
                "--sparing": sparing,
                "--scenario": scenario,
                "--stations-seen": stations_seen,
                "--downloads": downloads,
                "--preset": preset,
                "--phy": phy,
            },
        )
        parse_overrides(bottleneck or ())
    else:
        _refuse("--loop open", {"--bottleneck": bottleneck, "--together": together})
    result.check(traces)
    console = Console(quiet=quiet, strict=strict)
    reading = ReadingOptions(
        filter=filter,
        input_format=input_format,
        layer=layer,
        vantage=vantage,
        dissect=dissect,
        tfrc=_of_ends(tfrc),
        max_flows=max_flows,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    trace = reading.open(traces, console, max_samples=max_samples or MAX_SAMPLES)
    if loop == "closed":
        loops = trace.closed_loops(
            *names,
            profile=profile,
            tfrc=dict(parameters),
            settings=settings,
            segment_bytes=segment_size,
            flows=flow or None,
            least_packets=least_packets,
            bottleneck=bottleneck or (),
            together=together,
        )
        _write_closed(loops, result)
        return console.exit_status
    replayed = trace.replays(
        *names,
        profile=profile,
        tfrc=dict(parameters),
        settings=settings,
        rtt=rtt,
        segment_bytes=segment_size,
        rtt_scales=(1.0, 0.5, 2.0) if sensitivity else (1.0,),
        flows=flow or None,
        simulate=simulate,
        least_packets=least_packets,
        network=_network(
            trace,
            station=station,
            sparing=sparing,
            scenario=scenario,
            stations_seen=stations_seen,
            downloads=downloads,
            settings=CellSettings(preset=preset, phy=phy),
        ),
    )
    _write(replayed, result)
    return console.exit_status


def _refuse(loop: str, options: Mapping[str, object]) -> None:
    """Raise if one of the options is given, which this kind of loop has no use for."""
    for name, value in options.items():
        if value:
            raise UsageError(f"`{name}` has no effect with `{loop}`", hint="leave one of them out")


def _of_ends(tfrc: list[str] | None) -> list[str]:
    """Return those parameters that say what the ends of the trace's own flows are."""
    from tfrctrace.parsers._native import tfrc_parameters
    from tfrctrace.parsers.tfrc import PROFILE

    known = {PROFILE, *tfrc_parameters()}
    return [text for text in tfrc or () if text.partition("=")[0] in known]


def _network(
    trace: Trace,
    *,
    station: list[str] | None,
    sparing: list[str] | None,
    scenario: str | None,
    stations_seen: bool,
    downloads: int,
    settings: CellSettings,
) -> Scenario | None:
    """Return who shares the medium, said in one of three ways; None if nothing is said."""
    from tfrctrace.replay.medium import medium_frames, medium_from_frames, medium_from_options
    from tfrctrace.wlan.population import Description
    from tfrctrace.wlan.scenario import read_scenario

    ways = [bool(station or sparing), scenario is not None, stations_seen]
    if sum(ways) > 1:
        raise UsageError("`--station`, `--scenario` and `--stations-seen` each say who is there: choose one")
    if station or sparing:
        description = Description(
            stations=tuple(station or ()), sparing=tuple(sparing or ()), downloads=downloads
        )
        return medium_from_options(description, settings)
    if scenario is not None:
        if downloads:
            raise UsageError(
                "with `--scenario` the file has the downloads, and `--downloads` cannot say it too"
            )
        return read_scenario(scenario, settings)
    if stations_seen:
        return medium_from_frames(medium_frames(trace), settings, trace.zero_ns, downloads=downloads)
    if downloads or settings != CellSettings():
        raise UsageError(
            "`--downloads`, `--preset` and `--phy` are about the stations of `mtfrc`, and none is named",
            hint="`--station 11 --station 5.5`, `--scenario FILE` or `--stations-seen` says who is there",
        )
    return None


def _write_closed(loops: ClosedLoops, result: OutputOptions) -> None:
    from tfrctrace.replay.closed_loop.closed_loop_facts import closed_loop_facts
    from tfrctrace.reports.printers.closed_loop import write_closed_loop_text
    from tfrctrace.reports.printers.replay import write_replay_json, write_replay_table

    result.write(
        table=lambda file: write_closed_loop_text(file, closed_loop_facts(loops)),
        json=lambda file: write_replay_json(file, closed_loop_facts(loops), version=__version__),
        rows=lambda file, form: write_replay_table(file, form, loops.frame),
    )


def _write(replayed: OpenLoopReplay, result: OutputOptions) -> None:
    from tfrctrace.replay.open_loop_facts import open_loop_facts
    from tfrctrace.reports.printers.replay import write_replay_json, write_replay_table, write_replay_text

    result.write(
        table=lambda file: write_replay_text(file, open_loop_facts(replayed)),
        json=lambda file: write_replay_json(file, open_loop_facts(replayed), version=__version__),
        rows=lambda file, form: write_replay_table(file, form, replayed.frame),
    )
