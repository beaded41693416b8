"""Options under headings: which one an option belongs to, and the help that is printed by them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


reading_option: Final = partial(typer.Option, rich_help_panel="Reading")
measuring_option: Final = partial(typer.Option, rich_help_panel="Measuring")
output_option: Final = partial(typer.Option, rich_help_panel="Output")
other_option: Final = partial(typer.Option, rich_help_panel="Other")

_SHARED: Final = ("Reading", "Measuring", "Output", "Other")
"""Headings that most commands have, after those of their own."""

_LEFT_COLUMN: Final = 28

_WIDEST_CHOICES: Final = 60
"""Width of an option with its choices above which these follow its text instead."""


def heading(option: object) -> str:
    """Return the heading of an option; `--help` is declared by Typer."""
    if getattr(option, "name", None) == "help":
        return "Other"
    return getattr(option, "rich_help_panel", None) or "Options"


def in_order(headings: Iterable[str]) -> list[str]:
    """Return headings without repetitions: a command's own, then those that commands share."""
    unique = dict.fromkeys(headings)
    return [*(name for name in unique if name not in _SHARED), *(name for name in _SHARED if name in unique)]


class GroupedCommand(TyperCommand):
    """A command whose help prints options under headings, all texts in one column."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  click's, in or beside Typer
        """Parse the arguments; of two groupings neither is taken silently."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        if sum(parameter.name == "by" for parameter in given) > 1:
            raise UsageError("`--by` is given twice", hint="call the command once for each grouping")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401  click's, in or beside Typer
        """Return the words after the name: `[OPTIONS] TRACE...`."""
        arguments = [
            parameter for parameter in self.get_params(ctx) if parameter.param_type_name == "argument"
        ]
        words = [
            (argument.required, f"{argument.make_metavar(ctx)}{'' if argument.nargs == 1 else '...'}")
            for argument in arguments
        ]
        return ["[OPTIONS]", *(word if is_required else f"[{word}]" for is_required, word in words)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  click's, in or beside Typer
        """Write the arguments, then the options by heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_option = parameter.param_type_name == "option"
                name = heading(parameter) if is_option else "Arguments"
                sections.setdefault(name, []).append(_readable(*record))
        for name in in_order(sections):
            rows = sections[name]
            widest = min(_LEFT_COLUMN, max(len(left) for left, _ in rows))
            with formatter.section(name):
                formatter.write_dl(rows, col_max=_LEFT_COLUMN, col_spacing=_LEFT_COLUMN + 2 - widest)


def _readable(option: str, text: str) -> tuple[str, str]:
    """Return an option and its text, with many choices in the text, and without click's notation."""
    text = re.sub(r"\[default: \((.*)\)(;|\])", r"[default: \1\2", text)
    text = re.sub(r"x>=([0-9]+)", r"at least \1", text)
    choices = re.search(r"<(.*)>", option)
    if choices is None or len(option) <= _WIDEST_CHOICES:
        return option, text
    words, space, facts = text.partition("  [")
    return (
        f"{option[: choices.start()]}NAME",
        f"{words} One of {choices[1].replace('|', ', ')}.{space}{facts}",
    )
