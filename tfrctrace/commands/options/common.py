"""Options that several commands have, in one form and with one help text, and what must be true of places."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.reports.output import STANDARD_OUTPUT, check_output
from tfrctrace.trace.trace import MAX_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
        "layout of TFRC as FILE.toml or by name (cmb, tinycontrol), or a scapy class as module:Class.",
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


def check_output_place(output: str, traces: list[str]) -> None:
    """Raise if the result cannot be written to `output`, or would take the place of a capture."""
    check_output(output)
    for trace in traces:
        if os.path.exists(output) and os.path.exists(trace) and os.path.samefile(output, trace):
            raise UsageError(
                f"`{output}` is read, so it cannot be written", hint="choose another name for `-o`"
            )


def check_output_places(outputs: Iterable[str | None], traces: list[str]) -> None:
    """Raise as `check_output_place` does for each result, and if two of them go to the same place."""
    taken: set[str] = set()
    for output in filter(None, outputs):
        check_output_place(output, traces)
        place = output if output == STANDARD_OUTPUT else os.path.realpath(output)
        if place in taken and place != os.devnull:
            raise UsageError(f"two results cannot go to `{output}`", hint="choose another name for one")
        taken.add(place)


def flatten_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return `command` with every option of its own, where it takes bundles of them.

    A bundle is a dataclass whose fields are options, as several commands have them. Typer knows functions
    with one parameter for each option, and asks their signature.
    """
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            bundles[parameter.name] = kind
            parameters += _options_of(kind)
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def run(**given: object) -> int:
        for name, bundle in bundles.items():
            given[name] = bundle(**{one.name: given.pop(one.name) for one in dataclasses.fields(bundle)})
        return command(**given)

    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options_of(bundle: type[Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    for one in dataclasses.fields(bundle):
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name]
        )
