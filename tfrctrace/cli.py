"""The command line: the commands by name, and the one place that turns an error into words and a status.

Exit status: 0 done; 1 a check failed; 2 wrong usage; 3 an input could not be read (the rest was done);
70 a bug of ours; 130 interrupted.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from tfrctrace import __version__
from tfrctrace.base.errors import InputError, Message, OutputError, TfrctraceError
from tfrctrace.commands.console import (
    DONE,
    INTERNAL_ERROR,
    INTERRUPTED,
    NOT_READ,
    WRONG_USAGE,
    drop_standard_output,
    print_message,
)
from tfrctrace.commands.options.common import flatten_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEBUG_VARIABLE: Final = "TFRCTRACE_DEBUG"
"""If set, an internal error shows where it happened."""

# Root of what Typer raises for wrong arguments. Typer does not name it, and carries click inside itself
# or imports it, depending on its version.
_CLICK_EXCEPTION: Final = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

COMMANDS: Final = {
    "report": "tfrctrace report link.pcapng -o link.html",
    "plot": "tfrctrace plot link.pcapng --kind rtt -o rtt.pdf",
    "flows": "tfrctrace flows --filter 'tcp port 5201' --sort bytes link.pcapng",
    "convert": "tfrctrace convert link.pcapng --what rtt -o rtt.parquet",
    "metrics": "tfrctrace metrics --label 'reno=port 5201' --warmup 5s link.pcapng",
    "experiment": "tfrctrace experiment study.toml -o results",
    "compare": "tfrctrace compare red.tr droptail.tr --metric jain",
    "check": "tfrctrace check --require 'p95(rtt_ms) < 80' link.pcapng",
    "replay": "tfrctrace replay --algorithm tfrc,tfrc-veno --profile ns2 out.tr",
    "capacity": "tfrctrace capacity --station 11 --station 5.5 --downloads 3",
}
"""Every command, in the order of the help, with an example of it. Each is a module of that name."""


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tfrctrace {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and leave.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Post-hoc trace analysis for TCP and TFRC: traces in, flows and reports out."""


_CANNOT_WRITE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
"""Errors of a write; those of named files are `OutputError` already."""


def program(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands."""
    made = typer.Typer(
        name="tfrctrace",
        help="Post-hoc trace analysis for TCP and TFRC: traces in, flows and reports out.",
        epilog=f"Example: {COMMANDS['report']}",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    made.callback()(_options)
    for name in commands:
        module = importlib.import_module(f"tfrctrace.commands.{name}")
        made.command(epilog=f"Example: {COMMANDS[name]}")(flatten_options(getattr(module, name)))
    return made


def _commands_for(arguments: Sequence[str]) -> Iterable[str]:
    """Return the command that is called, none for the version, or all of them where they must be listed.

    Typer looks at every option of every command it has before it looks at the arguments, which took longer
    than a small capture takes to read.
    """
    first = arguments[0] if arguments else ""
    if first == "--version":
        return ()
    return (first,) if first in COMMANDS else COMMANDS


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status; no exception leaves this function."""
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        app = program(_commands_for(arguments))
        status = app(list(arguments) or ["--help"], prog_name="tfrctrace", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as error:
        return _report_failure(error)
    return status if isinstance(status, int) else DONE


def _report_failure(error: BaseException) -> int:
    """Say what went wrong and return the exit status."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if _is_closed_pipe(error):
        drop_standard_output()
        return DONE
    if isinstance(error, OSError) and error.errno in _CANNOT_WRITE and error.filename is None:
        drop_standard_output()
        error = OutputError("standard output", (error.strerror or "").lower())
    if isinstance(error, SystemExit):  # Typer's way to end after completion
        return error.code if isinstance(error.code, int) else DONE
    if isinstance(error, TfrctraceError):
        for message in error.messages():
            print_message(message)
        return NOT_READ if isinstance(error, InputError) else WRONG_USAGE
    if isinstance(error, _CLICK_EXCEPTION):
        return _usage_error(cast("typer.BadParameter", error))
    return _internal_error(error)


def _is_closed_pipe(error: BaseException) -> bool:
    """Return whether the reader of standard output has left; Typer makes a `SystemExit` of that."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


def _usage_error(error: typer.BadParameter) -> int:
    """Say what is wrong with the arguments, which Typer has found out."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tfrctrace"
    text = " ".join(error.format_message().split())
    print_message(
        Message(
            "error", text[:1].lower() + text[1:].rstrip("."), hint=f"`{command} --help` shows what there is"
        )
    )
    return WRONG_USAGE


def _internal_error(error: BaseException) -> int:
    """Say that this is a bug of ours, and where it is if the user wants to know."""
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    words = " ".join(str(error).split())
    print_message(
        Message(
            "error",
            f"internal error: {type(error).__name__}{': ' if words else ''}{words}",
            hint=f"this is a bug; `{DEBUG_VARIABLE}=1` shows where, please report it with that",
        )
    )
    return INTERNAL_ERROR
