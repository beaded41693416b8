"""Options under headings: which one an option belongs to, and the help that is printed by them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Iterable


reading_option: Final = partial(typer.Option, rich_help_panel="Reading")
measuring_option: Final = partial(typer.Option, rich_help_panel="Measuring")
output_option: Final = partial(typer.Option, rich_help_panel="Output")
other_option: Final = partial(typer.Option, rich_help_panel="Other")

_SHARED: Final = ("Reading", "Measuring", "Output", "Other")
"""Headings that most commands have, after those of their own."""

_LEFT_COLUMN: Final = 28


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

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  click's, in or beside Typer
        """Write the arguments, then the options by heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_option = parameter.param_type_name == "option"
                sections.setdefault(heading(parameter) if is_option else "Arguments", []).append(record)
        for name in in_order(sections):
            rows = sections[name]
            widest = min(_LEFT_COLUMN, max(len(left) for left, _ in rows))
            with formatter.section(name):
                formatter.write_dl(rows, col_max=_LEFT_COLUMN, col_spacing=_LEFT_COLUMN + 2 - widest)
