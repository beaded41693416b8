"""Options for the format and place of a result."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, TypeVar

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.options.common import (
    Force,
    OutputFile,
    RawText,
    check_output_place,
    check_raw,
    check_suffix,
)
from tfrctrace.commands.options.grouped_help import output_option
from tfrctrace.reports.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO, TextIO

ResultForm = Literal["table", "json", "csv", "parquet"]
GroupForm = Literal[ResultForm, "openmetrics", "otlp", "ndjson"]
Form = TypeVar("Form", bound=str)

_FORM_OF_SUFFIX: Final[Mapping[str, ResultForm]] = {
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_SPREADSHEETS: Final = frozenset({".xls", ".xlsx", ".ods"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOptions(Generic[Form]):
    """Format and place of a result."""

    form: Form | None = None
    output: OutputFile = "-"
    force: Force = False
    raw: RawText = False

    @property
    def chosen(self) -> str:
        """The requested format, else that of the file's suffix, else the table."""
        return self.form or _FORM_OF_SUFFIX.get(os.path.splitext(self.output)[1].lower(), "table")

    def check(self, traces: list[str]) -> None:
        """Raise if the result cannot be written there, before the traces are read."""
        check_suffix(self.output, self.form, _FORM_OF_SUFFIX)
        suffix = os.path.splitext(self.output)[1].lower()
        if self.form is None and suffix in _SPREADSHEETS:
            raise UsageError(f"no result is written as `{suffix}`", hint="spreadsheets open `.csv`")
        check_output_place(self.output, traces, force=self.force)
        check_raw(self.chosen, raw=self.raw)
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
        """Write the result with the function for the chosen format."""
        from tfrctrace.reports.output import open_output, open_text_output

        form = self.chosen
        if form in {"csv", "parquet"}:
            with open_output(self.output) as binary:
                rows(binary, "csv" if form == "csv" else "parquet")
            return
        with open_text_output(self.output) as file:
            (table if form == "table" else json)(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions(ResultOptions[ResultForm]):
    """A text table, JSON, or rows as CSV or Parquet."""

    form: Annotated[
        ResultForm | None,
        output_option("--format", help="Output format; default: from the suffix of -o, else a table."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutputOptions(ResultOptions[GroupForm]):
    """The same with the forms that monitoring systems and pipelines read."""

    form: Annotated[
        GroupForm | None,
        output_option(
            "--format",
            help="Output format; default: from the suffix of -o, else a table. openmetrics and otlp are for "
            "monitoring systems, ndjson is a line of JSON for each row.",
        ),
    ] = None

    def write_text(self, writers: Mapping[str, Callable[[TextIO], None]]) -> bool:
        """Write the result with the function for the chosen form; false if none of these is."""
        from tfrctrace.reports.output import open_text_output

        if self.chosen not in writers:
            return False
        with open_text_output(self.output) as file:
            writers[self.chosen](file)
        return True
