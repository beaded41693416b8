"""The commands and their options as their functions declare them."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.commands.options.grouped_help import heading

if TYPE_CHECKING:
    from typer.models import CommandInfo, ParameterInfo

EXIT_STATUS = {
    0: "done",
    1: "done, a check failed",
    2: "wrong usage",
    3: "an input could not be read; each is named on standard error, the rest was analysed",
    70: "a bug of tfrctrace",
    71: "the machine refused memory, threads or open files",
    130: "interrupted",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or option of a command, as its function declares it."""

    names: tuple[str, ...]
    """Spellings of an option; empty for an argument."""
    value: str
    """What stands for the value: a metavar or the choices; empty for a flag."""
    help: str
    default: str
    heading: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command, as Typer knows it."""

    name: str
    help: str
    example: str
    parameters: tuple[Parameter, ...]

    @property
    def options(self) -> list[Parameter]:
        """Parameters with a name."""
        return [parameter for parameter in self.parameters if parameter.names]

    @property
    def arguments(self) -> list[Parameter]:
        """Parameters without."""
        return [parameter for parameter in self.parameters if not parameter.names]


def commands() -> list[Command]:
    """Return the commands, in the order of `tfrctrace --help`."""
    from tfrctrace.cli import program

    return [_command(info) for info in program().registered_commands]


def _command(info: CommandInfo) -> Command:
    function = info.callback
    assert function is not None
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    return Command(
        name=info.name or function.__name__,
        help=inspect.getdoc(function) or "",
        example=(info.epilog or "").removeprefix("Example: "),
        parameters=tuple(
            _parameter(hints[parameter.name], parameter.default)
            for parameter in parameters
            if not typing.get_args(hints[parameter.name])[1].hidden
        ),
    )


def _parameter(hint: object, default: object) -> Parameter:
    kind, declared = typing.get_args(hint)
    # In `Annotated[..., Option("--output", "-o")]` Typer keeps the first spelling where defaults used to be.
    spellings = (declared.default, *(declared.param_decls or ()))
    names = tuple(name for name in spellings if isinstance(name, str) and name.startswith("-"))
    return Parameter(
        names, _value(kind, declared), declared.help or "", _default(declared, default), heading(declared)
    )


def _default(declared: ParameterInfo, default: object) -> str:
    if isinstance(declared.show_default, str):
        return declared.show_default
    if default is inspect.Parameter.empty:
        return "required"
    return "" if default is None or default is False else f"`{default}`"


def _value(kind: object, declared: ParameterInfo) -> str:
    if kind is bool:
        return ""
    choices = [choice for part in (kind, *typing.get_args(kind)) for choice in _choices(part)]
    return " ".join(f"`{choice}`" for choice in choices) or str(declared.metavar)


def _choices(kind: object) -> tuple[str, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
