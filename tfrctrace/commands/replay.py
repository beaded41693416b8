"""`tfrctrace replay`: the rates that algorithms would have allowed, compared with what was sent."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace import __version__
from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.closed_loop_options import Bottleneck, Sweep, Together
from tfrctrace.commands.options.common import MaxSamples, Traces
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.metrics.thresholds import LEAST_PACKETS
from tfrctrace.parsers.reading_settings import MAX_SAMPLES
from tfrctrace.replay.algorithms import BUILT_IN, MTFRC
from tfrctrace.replay.tfrc import VARIANTS, Profile
from tfrctrace.reports.printers.terminal import terminal_width
from tfrctrace.wlan.cell import CellSettings, Preset
from tfrctrace.wlan.phy import Standard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO, TextIO

    from tfrctrace.api import Trace
    from tfrctrace.metrics.results.replay import FlowDirection
    from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops
    from tfrctrace.replay.one_step import OneStepReplay
    from tfrctrace.replay.open_loop import OpenLoop
    from tfrctrace.wlan.scenario import Scenario

Loop = Literal["open", "closed"]

stations_option: Final = partial(typer.Option, rich_help_panel="802.11 stations (mtfrc)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReadingOptions(ReadingOptions):
    """How the inputs are read, other than as a pair; `--tfrc` sets parameters of the replay, too."""

    tfrc: Annotated[
        list[str] | None,
        typer.Option(
            "--tfrc",
            metavar="NAME=VALUE",
            help="Set a parameter of every TFRC variant, e.g. q=0.8, or of ns-2's agents, e.g. df=0.9 "
            "(docs/replay.md).",
        ),
    ] = None
    pair: bool = dataclasses.field(default=False, init=False)
    clock_offset: str | None = dataclasses.field(default=None, init=False)


def replay(
    traces: Traces,
    *,
    algorithm: Annotated[
        str,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAMES",
            help=f"Algorithms to replay, separated by commas: {', '.join([*VARIANTS, MTFRC, *BUILT_IN])} or "
            "mymodule:MyControl.",
        ),
    ] = "tfrc",
    loop: Annotated[
        Loop,
        typer.Option(
            "--loop",
            help="open: feed the reports of the trace to the algorithm, or predict each decision of a window "
            "algorithm from what was observed. closed: run the algorithm against a model of the trace's "
            "bottleneck (docs/models.md).",
        ),
    ] = "open",
    bottleneck: Bottleneck = None,
    sweep: Sweep = None,
    together: Together = False,
    profile: Annotated[Profile, typer.Option("--profile", help="TFRC variant to replay.")] = "rfc5348",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="ALGORITHM.NAME=VALUE",
            help="Set a parameter of one algorithm, e.g. vegas.alpha=1, tfrc.n=16, tfrc-veno.gamma=mix or "
            "mymodule:MyControl.gain=2 (docs/replay.md, docs/models.md).",
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option("--rtt", metavar="TIME", help="Round-trip time of flows that have no RTT samples."),
    ] = None,
    segment_size: Annotated[
        int | None,
        typer.Option(
            "--segment-size", min=1, metavar="BYTES", show_default="per flow", help="Segment size s."
        ),
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Replay with half and twice every round-trip time as well.")
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate the receiver's reports even if the trace has them.")
    ] = False,
    least_packets: Annotated[
        int,
        typer.Option(
            "--least-packets", min=1, metavar="N", help="Skip flows with fewer than N data packets."
        ),
    ] = LEAST_PACKETS,
    flow: Annotated[
        list[int] | None,
        typer.Option("--flow", min=1, metavar="N", help="Replay this flow only; repeatable."),
    ] = None,
    station: Annotated[
        list[str] | None,
        stations_option(
            "--station",
            metavar="RATE",
            help="A station that always sends, by its rate: 11, or 4x11 for four.",
        ),
    ] = None,
    sparing: Annotated[
        list[str] | None,
        stations_option(
            "--sparing",
            metavar="RATE:LOAD",
            help="A station that sends only LOAD bit/s, counted in whole frames: 5.5:200k.",
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        stations_option("--scenario", metavar="FILE", help="Stations over time, from a TOML file."),
    ] = None,
    stations_seen: Annotated[
        bool,
        stations_option(
            "--stations-seen",
            help="Take stations and rates from the trace's 802.11 frames or ns-2 MAC lines.",
        ),
    ] = False,
    downloads: Annotated[
        int | None,
        stations_option(
            "--downloads",
            min=0,
            metavar="D",
            show_default="0; those that `--stations-seen` finds",
            help="Number of flows from the access point.",
        ),
    ] = None,
    preset: Annotated[
        Preset | None,
        stations_option("--preset", show_default="standard", help="Constants of the MAC model."),
    ] = None,
    phy: Annotated[
        Standard | None,
        stations_option(
            "--phy", show_default="b, or as captured", help="Physical layer: 802.11b, a, g or n."
        ),
    ] = None,
    result: OutputOptions,
    reading: ReplayReadingOptions,
    max_samples: MaxSamples = None,
    anonymity: AnonymityOptions,
) -> int:
    """Replay rate algorithms such as TFRC on recorded flows.

    Each algorithm is fed the reports of the flow's TFRC receiver, or reports computed from the losses and
    round-trip times of another flow, and its allowed rate is compared with what was sent. Of an algorithm
    with a window each decision is predicted, and compared with that of the flow. The table is a summary;
    json, csv and parquet have every step with its reason. docs/replay.md lists the limits.
    """
    from tfrctrace.parsers.tfrc import parse_parameter
    from tfrctrace.replay.closed_loop.overrides import parse_overrides, parse_sweep
    from tfrctrace.replay.open_loop import select_algorithms
    from tfrctrace.replay.parameters import parse_settings

    names = [name.strip() for name in algorithm.split(",") if name.strip()]
    # a value that is not a number describes the trace: the profile of its own endpoints
    parameters = [
        (name, value)
        for name, value in map(parse_parameter, reading.tfrc or ())
        if not isinstance(value, str)
    ]
    settings = parse_settings(setting or ())
    # raises for invalid values before the traces are read
    windows = [one.name for one in select_algorithms(names, profile, parameters, settings=settings).windows]
    rates = [name for name in names if name not in windows]
    of_reports = {
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
    }
    if loop == "closed":
        _refuse("`--loop closed`", of_reports)
    else:
        _refuse("`--loop open`", {"--bottleneck": bottleneck, "--sweep": sweep, "--together": together})
        if not rates:
            _refuse("window algorithms in an open loop", {**of_reports, "--segment-size": segment_size})
        if rates and windows:
            _refuse_rows_of_both(result)
    parse_overrides(bottleneck or ())
    if sweep is not None:
        parse_sweep(sweep)
    result.check(traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = dataclasses.replace(reading, tfrc=_endpoint_parameters(reading.tfrc)).open(
        traces, console, max_samples=max_samples or MAX_SAMPLES, anonymizer=anonymity.anonymizer(console)
    )
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
            sweep=sweep,
            together=together,
        )
        _write_closed(loops, result)
        return console.exit_status
    network = _network(
        trace,
        station=station,
        sparing=sparing,
        scenario=scenario,
        stations_seen=stations_seen,
        downloads=downloads,
        settings=CellSettings(preset=preset, phy=phy),
    )
    own = {place: value for place, value in settings.items() if place.rpartition(".")[0] in windows}
    steps = _decisions(trace, windows, own, flow, least_packets)
    found = (
        trace.open_loop(
            *rates,
            profile=profile,
            tfrc=dict(parameters),
            settings={place: value for place, value in settings.items() if place not in own},
            rtt=rtt,
            segment_bytes=segment_size,
            rtt_scales=(1.0, 0.5, 2.0) if sensitivity else (1.0,),
            flows=flow or None,
            simulate=simulate,
            least_packets=least_packets,
            network=network,
        )
        if rates
        else None
    )
    _write(found, steps, result, network if stations_seen else None)
    return console.exit_status


def _decisions(
    trace: Trace,
    windows: Sequence[str],
    settings: Mapping[str, float | str],
    flows: Sequence[int] | None,
    least_packets: int,
) -> OneStepReplay | None:
    """Return the predicted decisions of window algorithms, None without any."""
    if not windows:
        return None
    return trace.one_steps(*windows, settings=settings, flows=flows or None, least_packets=least_packets)


def _refuse_rows_of_both(result: OutputOptions) -> None:
    """Raise for rows of algorithms with a window and of others, which have other columns."""
    if result.chosen in {"csv", "parquet"}:
        raise UsageError(
            "algorithms with a window have a table with other columns than the others",
            hint="write one after the other, or choose json",
        )


def _refuse(loop: str, options: Mapping[str, object]) -> None:
    """Raise if an option is given that has no effect with this kind of loop."""
    for name, value in options.items():
        if value:
            raise UsageError(f"`{name}` has no effect with {loop}", hint="leave one of them out")


def _endpoint_parameters(tfrc: list[str] | None) -> list[str]:
    """Return the parameters that describe the endpoints of the trace's own flows."""
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
    downloads: int | None,
    settings: CellSettings,
) -> Scenario | None:
    """Return the stations that share the medium, given in one of three ways; None if not given."""
    from tfrctrace.replay.medium import medium_frames, medium_from_frames, medium_from_options
    from tfrctrace.wlan.population import Description
    from tfrctrace.wlan.scenario import read_scenario

    if sum((bool(station or sparing), scenario is not None, stations_seen)) > 1:
        raise UsageError("`--station`, `--scenario` and `--stations-seen` cannot be combined: choose one")
    if station or sparing:
        description = Description(
            stations=tuple(station or ()), sparing=tuple(sparing or ()), downloads=downloads or 0
        )
        return medium_from_options(description, settings)
    if scenario is not None:
        if downloads:
            raise UsageError("`--downloads` cannot be used with `--scenario`: the file has the downloads")
        return read_scenario(scenario, settings)
    if stations_seen:
        return medium_from_frames(medium_frames(trace), settings, trace.zero_ns, downloads=downloads)
    if downloads or settings != CellSettings():
        raise UsageError(
            "`--downloads`, `--preset` and `--phy` need the stations of `mtfrc`, and none is given",
            hint="name them with `--station 11 --station 5.5`, `--scenario FILE` or `--stations-seen`",
        )
    return None


def _write_closed(loops: ClosedLoops, result: OutputOptions) -> None:
    from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays
    from tfrctrace.reports.files.table_files import write_table
    from tfrctrace.reports.printers.closed_loop import write_closed_loop_text
    from tfrctrace.reports.printers.replay import write_replay_json

    found = closed_loop_replays(loops)
    items = (*found.flows, *found.lacking, *found.replays)
    result.write(
        table=lambda file: write_closed_loop_text(file, found, width=terminal_width(file)),
        json=lambda file: write_replay_json(file, items, found.head, version=__version__),
        rows=lambda file, form: write_table(file, form, [loops.frame], loops.frame, raw=result.raw),
    )


def _write(
    found: OpenLoop | None, steps: OneStepReplay | None, result: OutputOptions, seen: Scenario | None
) -> None:
    """Write the replays of rates, and the predicted decisions of windows below them."""
    from tfrctrace.metrics.results.replay import ReplayHead
    from tfrctrace.replay.open_loop import no_steps
    from tfrctrace.replay.open_loop_results import open_loop_items
    from tfrctrace.replay.seen_stations import seen_stations
    from tfrctrace.reports.files.table_files import write_table
    from tfrctrace.reports.printers.one_step import write_one_step_text
    from tfrctrace.reports.printers.replay import bounded_replays, write_replay_json, write_replay_text

    stations = () if seen is None else seen_stations(seen)
    head = ReplayHead(loop="open", notes=found.notes if found else (), stations_seen=stations)

    def items(*, series: bool) -> Iterator[FlowDirection]:
        if found is not None:
            yield from open_loop_items(found, series=series)
        if steps is not None:
            yield from (*steps.results.flows, *steps.results.lacking, *steps.results.replays)

    def table(file: TextIO) -> None:
        width = terminal_width(file)
        if found is not None:
            write_replay_text(file, bounded_replays(open_loop_items(found, series=False), head), width=width)
        if found is not None and steps is not None:
            file.write("\n")
        if steps is not None:
            write_one_step_text(file, steps.results, width=width)

    def rows(file: BinaryIO, form: Literal["csv", "parquet"]) -> None:
        if found is None and steps is not None:
            write_table(file, form, [steps.frame], steps.frame, raw=result.raw)
        elif found is not None:
            write_table(file, form, found.steps(), no_steps(), raw=result.raw)

    notes = (*head.notes, *(steps.results.head.notes if steps else ()))
    result.write(
        table=table,
        json=lambda file: write_replay_json(
            file, items(series=True), replace(head, notes=notes), version=__version__
        ),
        rows=rows,
    )
