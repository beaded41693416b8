"""Options that several commands have, in one form and with one help text, and what must be true of places."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tfrctrace.base.bounds import MAX_SAMPLES
from tfrctrace.base.errors import UsageError
from tfrctrace.reports.output import STANDARD_OUTPUT, check_output

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
MaxSamples = Annotated[
    int | None,
    typer.Option(
        "--max-samples",
        min=1,
        metavar="N",
        show_default=str(MAX_SAMPLES),
        help="Keep at most N samples of each kind per trace.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Treat every warning about an input as an error (exit status 3).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]

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
