"""Options that several commands share, and checks of where results may be written."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_type_hints

import typer

from tfrctrace.base.errors import UsageError, printable
from tfrctrace.commands.options.grouped_help import (
    measuring_option,
    other_option,
    output_option,
    reading_option,
)
from tfrctrace.parsers.reading_settings import MAX_SAMPLES
from tfrctrace.reports.output import STANDARD_OUTPUT, check_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tfrctrace.base.grouping import GroupKind

_TRACES = typer.Argument(
    metavar="TRACE",
    help="Captures, simulator traces, tcpdump text or logs, also compressed; directories of them; "
    "- for standard input; or tcp://HOST:PORT for PCAP over IP.",
    show_default=False,
)
Traces = Annotated[list[str], _TRACES]
OptionalTraces = Annotated[list[str] | None, _TRACES]
MaxSamples = Annotated[
    int | None,
    reading_option(
        "--max-samples",
        min=1,
        metavar="N",
        show_default=f"{MAX_SAMPLES:,}",
        help="Keep at most N samples of each kind per trace.",
    ),
]
Strict = Annotated[
    bool, reading_option("--strict", help="Treat warnings about inputs as errors (exit status 3).")
]
Quiet = Annotated[bool, other_option("--quiet", "-q", help="Print errors only.")]

Jobs = Annotated[
    int | None,
    other_option(
        "--jobs", "-j", min=1, metavar="N", show_default="one per core", help="Measure N runs in parallel."
    ),
]


def check_order(sort: str | None, known: Sequence[str]) -> None:
    """Raise `UsageError` if `sort` is none of the `known` orders."""
    from tfrctrace.base.nearest import proposal_or_all

    if sort is not None and sort not in known:
        raise UsageError(f"`{sort}` is no order", hint=proposal_or_all(sort, known, "sort by"))


Causes = Annotated[
    bool,
    measuring_option(
        "--causes",
        help="Sum up the time of TCP flows by what held them back, which takes memory for each packet; "
        "captures that grow are read from their begin again.",
    ),
]

ExecutorName = Annotated[
    str | None,
    other_option(
        "--executor",
        metavar="NAME",
        show_default="processes of this machine",
        help="Where runs are measured: dask:ADDRESS of a scheduler, or MODULE:CALLABLE of what returns a "
        "concurrent.futures.Executor.",
    ),
]
RunCache = Annotated[
    str | None,
    other_option(
        "--cache",
        metavar="DIR",
        show_default="$XDG_CACHE_HOME/tfrctrace",
        help="Directory of cached measurements; `none` disables the cache.",
    ),
]
Timezone = Annotated[
    str,
    output_option(
        "--timezone",
        metavar="ZONE",
        help="Time zone of dates and times of day: UTC, local, or a name such as Europe/Berlin.",
    ),
]

RawText = Annotated[
    bool,
    output_option(
        "--raw", help="Keep text in CSV unchanged, also what a spreadsheet or a terminal would obey."
    ),
]
OutputFile = Annotated[
    str, output_option("--output", "-o", metavar="FILE", help="Output file; - is standard output.")
]


_MOST: Final = 2**32 - 1
"""Largest whole number of an option: flows and other things that are counted have no more."""


Force = Annotated[bool, output_option("--force", help="Overwrite the output file even if it is a trace.")]


def grouping_help(kinds: Iterable[GroupKind]) -> str:
    """Return the help of an option that takes one of these kinds."""
    *others, last = (kind.words for kind in kinds)
    return f"Group by {', '.join(others)} or {last}."


def rows_option(what: str, default: int) -> Any:  # noqa: ANN401  Typer's
    """Return the option that bounds a table for people, None by default."""
    words = f"Number of {what}; 0 for all."
    return output_option("--rows", "-n", min=0, metavar="N", show_default=str(default), help=words)


def check_suffix(output: str, given: str | None, form_of: Mapping[str, str]) -> None:
    """Raise if the name of a result says that it has another format than the one given, if any.

    `form_of` has the formats by suffix.
    """
    named = form_of.get(os.path.splitext(output)[1].lower())
    if given is not None and named is not None and named != given:
        raise UsageError(
            f"`{output}` is named as {named}, but `--format` is {given}", hint="leave out one of the two"
        )


def check_output_place(output: str, traces: list[str], *, force: bool = False) -> None:
    """Raise if the result cannot be written to `output`, or would overwrite an input or another trace.

    A result can be made again, a trace cannot: on a terminal the user is asked, else `force` is needed.
    """
    check_output(output)
    for trace in traces:
        if os.path.exists(output) and os.path.exists(trace) and os.path.samefile(output, trace):
            raise UsageError(
                f"`{output}` is an input and cannot be overwritten", hint="choose another name for `-o`"
            )
    if not force and _holds_a_trace(output) and not _is_confirmed(output):
        raise UsageError(
            f"`{output}` is a trace and is not overwritten",
            hint="choose another name for `-o`, or add `--force`",
        )


def _holds_a_trace(path: str) -> bool:
    """Return whether a file has packets or samples; a table of packets is a result of ours."""
    from tfrctrace.parsers._native import capture_extent, is_trace

    try:
        if not (os.path.isfile(path) and is_trace(path)):
            return False
        summary, _, _ = capture_extent(path)
    except OSError:
        return False
    return summary["format"] != "packets" and summary["start_ns"] is not None


def _is_confirmed(path: str) -> bool:
    """Ask on a terminal whether to overwrite a file."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(printable(f"`{path}` is a trace. Overwrite it?"), err=True)


def check_output_places(outputs: Iterable[str | None], traces: list[str], *, force: bool = False) -> None:
    """Check each result as `check_output_place` does, and raise if two of them have the same place."""
    places: set[str] = set()
    for output in filter(None, outputs):
        check_output_place(output, traces, force=force)
        place = output if output == STANDARD_OUTPUT else os.path.realpath(output)
        if place in places and place != os.devnull:
            raise UsageError(
                f"two results cannot be written to `{output}`", hint="choose another name for one of them"
            )
        places.add(place)


@dataclasses.dataclass(frozen=True, slots=True)
class Hidden:
    """Options of a bundle that a command does not take, as a note on its parameter."""

    names: tuple[str, ...]


def flatten_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return `command` with one parameter per option in place of bundles, as Typer needs it.

    A bundle is a dataclass whose fields are options that several commands share. Those that `Hidden` names
    have no place in the help of this command, which refuses them.
    """
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind, *notes = get_args(parameter.annotation) or (parameter.annotation,)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            bundles[parameter.name] = kind
            hidden = [name for note in notes if isinstance(note, Hidden) for name in note.names]
            parameters += _options_of(kind, hidden)
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def run(**values: object) -> int:
        _check_numbers(values)
        for name, bundle in bundles.items():
            values[name] = bundle(**{field.name: values.pop(field.name) for field in _fields_of(bundle)})
        return command(**values)

    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _check_numbers(values: Mapping[str, object]) -> None:
    """Raise for a whole number that no count reaches: the core and libraries take those of a machine."""
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int) and abs(one) > _MOST:
                raise UsageError(f"`--{name.replace('_', '-')}` is at most {_MOST}, not {one}")


def _fields_of(bundle: type[Any]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(bundle) if field.init]


def _options_of(bundle: type[Any], hidden: Sequence[str]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    for field in _fields_of(bundle):
        annotation = hints[field.name]
        if field.name in hidden:
            kind, option = get_args(annotation)
            option = copy.copy(option)
            option.hidden = True
            annotation = Annotated[kind, option]
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation
        )


def check_raw(form: str, *, raw: bool) -> None:
    """Raise if `--raw` has no effect on the format."""
    if raw and form != "csv":
        raise UsageError(f"`--raw` applies to CSV only, but the format is {form}")
