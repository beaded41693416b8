"""Where a result goes, and in which of the forms that several commands have."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.options.common import check_output_place
from tfrctrace.reports.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO, TextIO

ResultForm = Literal["table", "json", "csv", "parquet"]

_FORM_OF_SUFFIX: Final[Mapping[str, ResultForm]] = {
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Form and place of a result: a table for people, JSON, or rows for programs."""

    form: Annotated[
        ResultForm | None,
        typer.Option(
            "--format", help="Form of the output; without it the name after -o tells, else a table."
        ),
    ] = None
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-"

    @property
    def chosen(self) -> ResultForm:
        """The form that was asked for, else that of the file's name, else the table."""
        return self.form or _FORM_OF_SUFFIX.get(os.path.splitext(self.output)[1].lower(), "table")

    def check(self, traces: list[str]) -> None:
        """Raise if it cannot be written there, before anybody waits for the reading."""
        check_output_place(self.output, traces)
        if self.chosen == "parquet" and self.output == STANDARD_OUTPUT and sys.stdout.isatty():
            raise UsageError(
                "parquet is not for a terminal", hint="name a file with `-o`, or choose another form"
            )

    def write(
        self,
        *,
        table: Callable[[TextIO], None],
        json: Callable[[TextIO], None],
        rows: Callable[[BinaryIO, Literal["csv", "parquet"]], None],
    ) -> None:
        """Let the one of three functions write that is for the form."""
        from tfrctrace.reports.output import open_output, open_text_output

        form = self.chosen
        if form == "csv" or form == "parquet":  # noqa: PLR1714  types are narrowed by it
            with open_output(self.output) as binary:
                rows(binary, form)
            return
        with open_text_output(self.output) as file:
            (table if form == "table" else json)(file)
