"""The command line: its commands, and how errors become messages and exit statuses.

Exit status: 0 success; 1 a check failed; 2 wrong usage; 3 an input could not be read (the rest was done);
70 a bug in tfrctrace; 71 too little memory, threads or open files; 130 interrupted.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from tfrctrace import __version__
from tfrctrace.base.errors import InputError, Message, OutputError, TfrctraceError, UsageError
from tfrctrace.base.nearest import proposal
from tfrctrace.base.shortage import HINTS, shortage
from tfrctrace.commands.console import (
    DONE,
    INTERNAL_ERROR,
    INTERRUPTED,
    NO_RESOURCES,
    NOT_READ,
    WRONG_USAGE,
    drop_standard_output,
    print_message,
)
from tfrctrace.commands.options.common import flatten_options
from tfrctrace.commands.options.grouped_help import GroupedCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEBUG_VARIABLE: Final = "TFRCTRACE_DEBUG"
"""If set, an internal error prints its traceback."""

# Base class of Typer's errors about arguments. Depending on its version, Typer bundles click or imports it.
_CLICK_EXCEPTION: Final = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

COMMANDS: Final = {
    "report": "tfrctrace report link.pcapng -o link.html",
    "plot": "tfrctrace plot link.pcapng --kind rtt -o rtt.pdf",
    "flows": "tfrctrace flows --filter 'tcp port 5201' --sort bytes link.pcapng",
    "why": "tfrctrace why link.pcapng --flow 3",
    "groups": "tfrctrace groups link.pcapng --by host --every 5min --sort rtt",
    "convert": "tfrctrace convert link.pcapng --what rtt -o rtt.parquet",
    "metrics": "tfrctrace metrics --label 'reno=port 5201' --warmup 5s link.pcapng",
    "experiment": "tfrctrace experiment study.toml -o results",
    "compare": "tfrctrace compare red.tr droptail.tr --metric jain",
    "check": "tfrctrace check --require 'p95(rtt_ms) < 80' link.pcapng",
    "batch": "tfrctrace batch captures -o results",
    "audit": "tfrctrace audit captures -o audit",
    "mcp": "tfrctrace mcp captures",
    "merge": "tfrctrace merge results-a results-b -o results",
    "lake": "tfrctrace lake results -o lake",
    "replay": "tfrctrace replay --algorithm tfrc,tfrc-veno --profile ns2 out.tr",
    "capacity": "tfrctrace capacity --station 11 --station 5.5 --downloads 3",
}
"""Every command with an example, in the order of the help. Each is a module of that name."""

_SUMMARY: Final = "Analyse recorded TCP and TFRC traffic: captures in, flows and reports out."


def _show_version(is_requested: bool) -> None:
    if is_requested:
        print(f"tfrctrace {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Accept the options of the program itself."""


_NO_CHOICE: Final = re.compile("'([^']*)' is not one of (.*)")
"""Typer's words for a value that is none of those an option takes."""

_QUOTED: Final = re.compile("'([^']*)'")

_CANNOT_WRITE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
"""Errors of a write; those of named files are `OutputError` already."""


def program(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the Typer program with these commands."""
    app = typer.Typer(
        name="tfrctrace",
        help=_SUMMARY,
        epilog=f"Example: {COMMANDS['report']}",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(help=_SUMMARY)(_options)
    for name in commands:
        module = importlib.import_module(f"tfrctrace.commands.{name}")
        command = app.command(epilog=f"Example: {COMMANDS[name]}", cls=GroupedCommand)
        command(flatten_options(getattr(module, name)))
    return app


def _commands_for(arguments: Sequence[str]) -> Iterable[str]:
    """Return the commands to load: the one that is called, none for `--version`, or all for the help.

    Typer inspects every option of every command before it parses the arguments, which takes longer than
    reading a small capture.
    """
    first = arguments[0] if arguments else ""
    if first == "--version":
        return ()
    return (first,) if first in COMMANDS else COMMANDS


def _check_command(arguments: Sequence[str]) -> None:
    """Raise `UsageError` if a file stands where a command is expected, or a shell after what detects it."""
    first = arguments[0] if arguments else ""
    if first in {"--show-completion", "--install-completion"} and len(arguments) > 1:
        raise UsageError(
            f"`{first}` takes no value: it is for the shell that it is called from",
            hint=f"call `tfrctrace {first}` in {arguments[1]}",
        )
    if first not in COMMANDS and os.path.exists(first):
        raise UsageError(
            f"`{first}` is a file, and no command",
            hint="`tfrctrace flows FILE` lists its flows, `tfrctrace report FILE` makes a page of it",
        )


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status; no exception leaves this function."""
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        _check_command(arguments)
        app = program(_commands_for(arguments))
        status = app(list(arguments) or ["--help"], prog_name="tfrctrace", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as error:
        return _report_failure(error)
    return status if isinstance(status, int) else DONE


def _report_failure(error: BaseException) -> int:
    """Print what went wrong and return the exit status."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if _is_closed_pipe(error):
        drop_standard_output()
        return DONE
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        error = UsageError("the folder that it was started in was removed", hint="change to another folder")
    if isinstance(error, OSError) and error.errno in _CANNOT_WRITE and error.filename is None:
        drop_standard_output()
        error = OutputError("standard output", (error.strerror or "").lower())
    if isinstance(error, SystemExit):  # raised by Typer after shell completion
        return error.code if isinstance(error.code, int) else DONE
    if isinstance(error, TfrctraceError):
        for message in error.messages():
            print_message(message)
        return NOT_READ if isinstance(error, InputError) else WRONG_USAGE
    if isinstance(error, _CLICK_EXCEPTION):
        return _usage_error(cast("typer.BadParameter", error))
    return _unexpected_error(error)


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _is_closed_pipe(error: BaseException) -> bool:
    """Return whether the reader of standard output has closed it; Typer turns that into `SystemExit`."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


def _usage_error(error: typer.BadParameter) -> int:
    """Print what is wrong with the arguments."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tfrctrace"
    text = " ".join(error.format_message().split())
    hint = f"see `{command} --help`"
    if choice := _NO_CHOICE.search(text):
        hint = f"{proposal(choice[1], _QUOTED.findall(choice[2]))} {hint}".strip()
    elif "--why" in text:
        hint = "`tfrctrace why` says why flows were no faster"
    print_message(Message("error", text[:1].lower() + text[1:].rstrip("."), hint=hint))
    return WRONG_USAGE


def _unexpected_error(error: BaseException) -> int:
    """Report a shortage, or a bug in tfrctrace with a traceback if `TFRCTRACE_DEBUG` is set."""
    lacking = shortage(error)
    if lacking is not None:
        print_message(Message("error", lacking, hint=HINTS[lacking]))
        return NO_RESOURCES
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    text = " ".join(str(error).split())
    print_message(
        Message(
            "error",
            f"internal error: {type(error).__name__}{': ' if text else ''}{text}",
            hint=f"this is a bug: please report it with the traceback that `{DEBUG_VARIABLE}=1` prints",
        )
    )
    return INTERNAL_ERROR
