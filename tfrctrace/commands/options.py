"""Options that several commands have, in one form and with one help text; and the trace they describe."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace.errors import UsageError
from tfrctrace.reports.output import STANDARD_OUTPUT, check_output
from tfrctrace.trace import MAX_SAMPLES, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfrctrace.console import Console
    from tfrctrace.parsers._native import Layout
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.parsers.filters import CompiledFilter
    from tfrctrace.parsers.pairing import Pair as PairSettings
    from tfrctrace.parsers.reading import Pass
    from tfrctrace.parsers.tfrc import TfrcParameters

_MOST_KEY_BYTES: Final = 65_536
"""Of a file with a key that are read: it may be a device that has no end."""

_TRACES = typer.Argument(
    metavar="TRACE",
    help="Captures, simulator traces, printed packets or logs, also compressed; directories of them; "
    "or - for standard input.",
    show_default=False,
)
Traces = Annotated[list[str], _TRACES]
OptionalTraces = Annotated[list[str] | None, _TRACES]
NodeLayer = Literal["agent", "routing", "ip", "queue", "mac", "phy", "link"]
VantagePoint = Literal["auto", "sender", "receiver", "middle"]

Format = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="NAME",
        help="What the inputs are, where their content does not tell: pcap, ns2, ns3, tcpdump, ...",
    ),
]
Layer = Annotated[
    NodeLayer | None,
    typer.Option(
        "--layer",
        help="Where in a simulator's nodes packets count as sent and received; else the highest there is.",
    ),
]
Vantage = Annotated[
    VantagePoint,
    typer.Option(
        "--vantage",
        help="Where captures were taken, seen from the direction with more payload; auto infers it.",
    ),
]
Dissect = Annotated[
    list[str] | None,
    typer.Option(
        "--dissect",
        metavar="udp:PORT=LAYOUT",
        help="How datagrams of PORT begin: iperf2, iperf3, iperf3-64, ns3, rtp, rtp/CLOCKRATE, a "
        "layout of TFRC as FILE.toml, or a scapy class as module:Class.",
    ),
]
Tfrc = Annotated[
    list[str] | None,
    typer.Option(
        "--tfrc",
        metavar="NAME=VALUE",
        help="How TFRC's ends work: of captures profile=rfc5348, rfc3448 or linux; rtt=50ms for flows that "
        "do not tell it; of ns-2 what the script has changed, as df=0.9 or tcp_tick=0.01.",
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        "-f",
        metavar="EXPRESSION",
        help="Read only packets of captures that match, as in tcpdump.",
    ),
]
Join = Annotated[
    bool, typer.Option("--join", help="Read all captures as one trace that was rotated, not each for itself.")
]
Pair = Annotated[
    bool,
    typer.Option(
        "--pair",
        help="Match two captures of the same packets, near the sender and near the receiver: delay and loss.",
    ),
]
ClockOffset = Annotated[
    str | None,
    typer.Option(
        "--clock-offset",
        metavar="TIME",
        show_default="estimated",
        help="What the clock of the second capture of a pair is ahead, as -2.5s; 0s for one clock.",
    ),
]
MaxFlows = Annotated[
    int, typer.Option("--max-flows", min=1, metavar="N", help="Follow at most N flows in one trace.")
]
MaxSamples = Annotated[
    int | None,
    typer.Option(
        "--max-samples",
        min=1,
        metavar="N",
        show_default=str(MAX_SAMPLES),
        help="Keep at most N samples of one trace, of each kind.",
    ),
]
MaxDecompressed = Annotated[
    int,
    typer.Option(
        "--max-decompressed", min=1, metavar="N", help="Give up a compressed capture after N bytes."
    ),
]

Capacity = Annotated[
    str | None,
    typer.Option(
        "--capacity", metavar="RATE", help="Tell how much of a link of this capacity was used, as 10M."
    ),
]
Weight = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="NAME=NUMBER",
        help="Tell Jain's index by weights of labels, as 'video=2'; others have 1.",
    ),
]

Step = Annotated[
    str | None,
    typer.Option(
        "--step", metavar="TIME", help="Tell how flows responded to what changed TIME after the trace began."
    ),
]

Anonymize = Annotated[
    bool,
    typer.Option(
        "--anonymize",
        help="Tell other addresses and names than the real ones; networks stay together. The key is that of "
        "--anonymize-key or in TFRCTRACE_ANONYMIZE_KEY, else a new one.",
    ),
]
AnonymizeKey = Annotated[
    str | None,
    typer.Option(
        "--anonymize-key",
        metavar="FILE",
        help="Anonymize with the bytes of FILE, 16 at least, as key: the same addresses become the same.",
    ),
]

Strict = Annotated[
    bool, typer.Option("--strict", help="Treat every warning about an input as an error (exit status 3).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]

Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        show_default="one for each core",
        help="Measure N runs at a time.",
    ),
]
RunCache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        show_default="$XDG_CACHE_HOME/tfrctrace",
        help="Where what was measured is kept; `none` keeps nothing.",
    ),
]


def open_trace(
    traces: list[str],
    console: Console,
    *,
    filter: str | None,
    input_format: str | None = None,
    layer: NodeLayer | None = None,
    vantage: VantagePoint = "auto",
    dissect: list[str] | None = None,
    tfrc: list[str] | None = None,
    join: bool,
    pair: bool = False,
    clock_offset: str | None = None,
    max_flows: int,
    max_samples: int = MAX_SAMPLES,
    max_decompressed_bytes: int,
    bin_ns: int | None = None,
    anonymize: bool = False,
    anonymize_key: str | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Trace:
    """Return the trace that the options describe, which tells `console` what happens while it is read.

    `meanwhile` is called once the core is at work: the place to load what is needed afterwards.
    """
    from tfrctrace.parsers.plugins import check_format
    from tfrctrace.parsers.reading import Settings
    from tfrctrace.parsers.sources import find_inputs

    given_vantage = None if vantage == "auto" else vantage
    others = {
        "--join": join,
        "--layer": layer,
        "--vantage": given_vantage,
        "--dissect": dissect,
        "--tfrc": tfrc,
        "--input-format": input_format,
    }
    settings = Settings(
        filter=None if filter is None else _compiled(filter),
        format=None if input_format is None else check_format(input_format),
        layer=layer,
        vantage=given_vantage,
        dissect=_parsed(dissect) if dissect else (),
        tfrc=_parameters(tfrc or []),
        join=join,
        pair=_pair_of(pair, clock_offset, others) if pair or clock_offset is not None else None,
        max_flows=max_flows,
        max_samples=max_samples,
        max_decompressed_bytes=max_decompressed_bytes,
        anonymizer=_anonymizer(anonymize_key, console) if anonymize or anonymize_key is not None else None,
    )
    inputs = find_inputs(traces, join=join)
    if pair:
        _check_pair(inputs.names)

    def watch(running: Pass) -> None:
        if meanwhile:
            meanwhile()
        console.watch(running)

    return Trace(
        inputs,
        settings,
        bin_ns=bin_ns,
        watch=watch,
        on_problems=console.tell,
    )


_KEY_VARIABLE: Final = "TFRCTRACE_ANONYMIZE_KEY"


def _anonymizer(key_file: str | None, console: Console) -> Anonymizer:
    """Return what anonymises with the key of a file, else of the environment, else a new one."""
    from tfrctrace.parsers.anonymity import Anonymizer

    if key_file is not None:
        try:
            with open(key_file, "rb") as file:
                return Anonymizer(file.read(_MOST_KEY_BYTES))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"the key `{key_file}` cannot be read: {reason}") from error
    given = os.environ.get(_KEY_VARIABLE)
    if given is None:
        console.note(
            "addresses are replaced with a key that is not kept; "
            "`--anonymize-key FILE` replaces them by the same each time"
        )
    return Anonymizer(None if given is None else os.fsencode(given))


def _pair_of(pair: bool, clock_offset: str | None, others: Mapping[str, object]) -> PairSettings | None:
    from tfrctrace.durations import parse_offset_ns
    from tfrctrace.parsers.pairing import pair_of

    clock_offset_ns = None if clock_offset is None else parse_offset_ns(clock_offset)
    return pair_of(pair=pair, clock_offset_ns=clock_offset_ns, others=others)


def _check_pair(names: list[str]) -> None:
    from tfrctrace.parsers.pairing import check_pair

    check_pair(names)


def _parsed(dissect: list[str]) -> tuple[tuple[int, Layout], ...]:
    from tfrctrace.parsers.dissect import parse_dissect

    return tuple(map(parse_dissect, dissect))


def _parameters(tfrc: list[str]) -> TfrcParameters:
    from tfrctrace.parsers.tfrc import check_parameters, parse_parameter

    return check_parameters(map(parse_parameter, tfrc))


def check_place(output: str, traces: list[str]) -> None:
    """Raise if the result cannot be written to `output`, or would take the place of a capture."""
    check_output(output)
    for trace in traces:
        if os.path.exists(output) and os.path.exists(trace) and os.path.samefile(output, trace):
            raise UsageError(
                f"`{output}` is read, so it cannot be written", hint="choose another name for `-o`"
            )


def check_places(outputs: Iterable[str | None], traces: list[str]) -> None:
    """Raise as `check_place` does for each of several results, and if two of them go to the same place."""
    taken: set[str] = set()
    for output in filter(None, outputs):
        check_place(output, traces)
        place = output if output == STANDARD_OUTPUT else os.path.realpath(output)
        if place in taken and place != os.devnull:
            raise UsageError(f"two results cannot go to `{output}`", hint="choose another name for one")
        taken.add(place)


def _compiled(expression: str) -> CompiledFilter:
    from tfrctrace.parsers.filters import CompiledFilter

    return CompiledFilter(expression)
