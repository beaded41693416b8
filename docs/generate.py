"""Write what is made from the code: `columns.md`, `cli.md`, `all-metrics.md`, `flows.schema.json`,
`results.schema.json`, and the output in the README.

`python docs/generate.py` writes them; with `--check` it only compares and ends with 1 if one is stale.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfrctrace.commands.options.grouped_help import heading, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.models import CommandInfo, ParameterInfo

    from tfrctrace.parsers.schema import Column

ROOT = Path(__file__).resolve().parent.parent

COMMANDS = {
    "flows": "`trace.flows`, `tfrctrace flows`",
    "packets": "`trace.packets()`, `tfrctrace convert --what packets`",
    "groups": "`trace.groups().rows`, `tfrctrace groups` ([groups](groups.md))",
    "group_buckets": "`trace.groups().buckets`, `tfrctrace groups --buckets` ([groups](groups.md))",
    "tcp": "`trace.tcp`, `tfrctrace convert --what tcp`. [tcptrace](tcptrace.md) says which of its fields is "
    "which column",
    "replay": "`trace.replay()`, `tfrctrace replay` ([rate algorithms](replay.md))",
    "closed_loop": "`trace.closed_loop()`, `tfrctrace replay --loop closed` ([models](models.md))",
    "hops": "`trace.hops`, `tfrctrace convert --what hops` ([networks](pair.md#more-than-two-captures))",
    "transits": "`trace.transits`, `tfrctrace convert --what transits` ([two captures](pair.md))",
}
"""How a table is written, if not as most are."""

COLUMNS_HEAD = """\
# Columns

Made by `docs/generate.py` from the declarations in `parsers/native/src/tables/` and `parsers/schema.py`.
Frames, JSON, CSV, Parquet and Arrow have the same names. In CSV a text that a spreadsheet would run as a
formula begins with an apostrophe, and control characters are escaped; `--raw` keeps text as it is, as the
other formats do.

Rows of flows are tidy: one row for each flow and direction. Times are whole nanoseconds, counts are whole
numbers, rates are bits per second, shares go from 0 to 1. Null means that the value cannot be known from this
trace, and `notes` says why; zero means measured zero. {download}`flows.schema.json` describes the form of
`tfrctrace flows --format json`.
"""

CLI_HEAD = """\
# Commands

Made from the commands themselves by `docs/generate.py`; `tfrctrace COMMAND --help` says the same.

Results go to standard output or the file named with `-o`, everything else to standard error. A terminal is
shown colour unless `NO_COLOR` is set, and a progress bar unless `--quiet` is given. `python -m tfrctrace` is
the same program. `tfrctrace --install-completion` makes the shell complete commands and options.

| exit status | means |
|---|---|
| 0 | done |
| 1 | done, a check failed |
| 2 | wrong usage |
| 3 | an input could not be read; each is named on standard error, the rest was analysed |
| 70 | a bug of tfrctrace |
| 71 | the machine refused memory, threads or open files |
| 130 | interrupted |
"""

METRICS_HEAD = """\
# All metrics

Made by `docs/generate.py` from `metrics/catalogue.py`. [Metrics](metrics.md) explains windows, competing sets
and options. A metric is one number per subject: a flow in the windows that its set has in common, a whole
flow, a set of competing flows, or a group of equally labelled ones.

| name | unit | subject | meaning | n counts | null when | source | function in `tfrctrace.metrics` |
|---|---|---|---|---|---|---|---|
"""


def columns_page() -> str:
    """Return the page of all columns of all tables."""
    from tfrctrace.parsers.schema import TABLES as COLUMNS

    return COLUMNS_HEAD + "".join(_table_section(name, COLUMNS[name]) for name in COLUMNS)


def _table_section(name: str, columns: tuple[Column, ...]) -> str:
    from tfrctrace.parsers.schema import ROWS

    rows = [
        f"| `{column.name}` | {column.type} | {column.unit} "
        f"| {_cell(column.meaning)} | {_cell(column.null_when)} |\n"
        for column in columns
    ]
    head = "| column | type | unit | meaning | null when |\n|---|---|---|---|---|\n"
    written = COMMANDS.get(name, f"`trace.{name}`, `tfrctrace convert --what {name}`")
    return f"\n## {name}\n\nOne row for {ROWS[name]}: {written}.\n\n{head}{''.join(rows)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


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
        parameters=tuple(_parameter(hints[parameter.name], parameter.default) for parameter in parameters),
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


def cli_page() -> str:
    """Return the page of all commands and their options."""
    return CLI_HEAD + "".join(_command_section(command) for command in commands())


def _command_section(command: Command) -> str:
    usage = " ".join(["tfrctrace", command.name, "[OPTIONS]", *(part.value for part in command.arguments)])
    arguments = "".join(f"- `{part.value}`: {part.help}\n" for part in command.arguments)
    headings = in_order(option.heading for option in command.options)
    return (
        f"\n## {command.name}\n\n{_paragraphs(command.help)}\n\n```\n{usage}\n```\n\n{arguments}\n"
        + "".join(_options_table(command, name) for name in headings)
        + f"Example:\n\n```\n{command.example}\n```\n"
    )


def _options_table(command: Command, name: str) -> str:
    rows = "".join(
        f"| {', '.join(f'`{spelling}`' for spelling in option.names)} {_cell(option.value)} "
        f"| {_cell(option.help)} | {option.default} |\n"
        for option in command.options
        if option.heading == name
    )
    return f"{name}:\n\n| option | meaning | default |\n|---|---|---|\n{rows}\n"


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def flows_schema() -> str:
    """Return the JSON schema of `tfrctrace flows --format json`."""
    from tfrctrace.reports.files.json_schema import flows_document

    return json.dumps(flows_document(), indent=1, ensure_ascii=False) + "\n"


def results_schema() -> str:
    """Return the JSON schema of saved results."""
    from tfrctrace.reports.files.json_schema import results_document

    return json.dumps(results_document(), indent=1, ensure_ascii=False) + "\n"


def readme() -> str:
    """Return the README with the output of its first command as it is now."""
    text = (ROOT / "README.md").read_text()
    shown = re.search(r"```console\n\$ (tfrctrace flows [^\n]*)\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    command = [sys.executable, "-m", *shown[1].split()]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return text[: shown.start(2)] + printed + text[shown.end(2) :]


SUBJECTS = {
    "flow": "flow",
    "set": "set",
    "group": "group",
    "pair": "pair of groups",
    "life": "whole flow",
}


def metrics_page() -> str:
    """Return the page of all metrics."""
    from tfrctrace.metrics.catalogue import CATALOGUE

    rows = [
        f"| `{one.name}` | {one.unit} | {SUBJECTS[one.subject]} | {one.meaning} | {one.counts} "
        f"| {one.null_when} | {one.source} | {f'`{one.function}`' if one.function else ''} |\n"
        for one in CATALOGUE
    ]
    return METRICS_HEAD + "".join(rows)


PAGES = {
    "docs/columns.md": columns_page,
    "docs/cli.md": cli_page,
    "docs/flows.schema.json": flows_schema,
    "docs/results.schema.json": results_schema,
    "docs/all-metrics.md": metrics_page,
    "README.md": readme,
}


def stale_pages() -> Iterator[str]:
    """Give the names of the pages that are not what the code would write now."""
    for name, make in PAGES.items():
        path = ROOT / name
        if not path.exists() or path.read_text() != make():
            yield name


def main() -> int:
    """Write the pages, or check them."""
    if sys.argv[1:] == ["--check"]:
        stale = list(stale_pages())
        for name in stale:
            print(f"{name} is stale: run `make docs` and commit it", file=sys.stderr)
        return int(bool(stale))
    if sys.argv[1:]:
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    for name, make in PAGES.items():
        (ROOT / name).write_text(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
