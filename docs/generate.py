"""Write what is made from the code: `columns.md`, `cli.md`, `all-metrics.md`, `*-scenarios.md`,
`flows.schema.json`, `results.schema.json`, `why.schema.json`, `audit.schema.json`, the manual pages, the
output in the README, and what a trace has in `python.md`.

`python docs/generate.py` writes them; with `--check` it only compares and ends with 1 if one is stale.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from command_list import EXIT_STATUS, Command, commands
from manual_pages import manual_page, program_page

from tfrctrace.commands.options.grouped_help import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
the same program. `tfrctrace --install-completion` makes the shell complete commands and options, and
names of metrics, columns, groups and labels.

| exit status | means |
|---|---|
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


def cli_page() -> str:
    """Return the page of all commands and their options."""
    statuses = "".join(f"| {status} | {meaning} |\n" for status, meaning in EXIT_STATUS.items())
    return CLI_HEAD + statuses + "".join(_command_section(command) for command in commands())


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
    from tfrctrace.metrics.results.flows_document import FlowsDocument
    from tfrctrace.metrics.results.schemas import schema_of

    return json.dumps(schema_of(FlowsDocument, "tfrctrace flows"), indent=1, ensure_ascii=False) + "\n"


def results_schema() -> str:
    """Return the JSON schema of saved results."""
    from tfrctrace.metrics.results.saved import SavedResults
    from tfrctrace.metrics.results.schemas import schema_of

    return json.dumps(schema_of(SavedResults, "tfrctrace results"), indent=1, ensure_ascii=False) + "\n"


def why_schema() -> str:
    """Return the JSON schema of `tfrctrace why --format json`."""
    from tfrctrace.metrics.results.schemas import schema_of
    from tfrctrace.metrics.results.why import WhyDocument

    return json.dumps(schema_of(WhyDocument, "tfrctrace why"), indent=1, ensure_ascii=False) + "\n"


def audit_schema() -> str:
    """Return the JSON schema of audits."""
    from tfrctrace.metrics.results.audit import AuditDocument
    from tfrctrace.metrics.results.schemas import schema_of

    return json.dumps(schema_of(AuditDocument, "tfrctrace audit"), indent=1, ensure_ascii=False) + "\n"


def readme() -> str:
    """Return the README with the output of its first command as it is now."""
    text = (ROOT / "README.md").read_text()
    shown = re.search(r"```console\n\$ (tfrctrace flows [^\n]*)\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    command = [sys.executable, "-m", *shown[1].split()]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return text[: shown.start(2)] + printed + text[shown.end(2) :]


def python_page() -> str:
    """Return the page on Python with the table of what a trace has as it is now."""
    from tfrctrace import Trace

    text = (ROOT / "docs" / "python.md").read_text()
    before, rest = text.split(TRACE_TABLE)
    after = rest[rest.index("\n\n") + 1 :]
    names = [name for name in sorted(object.__new__(Trace).__dir__()) if not name.startswith("_")]
    rows = "".join(f"| `{name}` | {_first_sentence(getattr(Trace, name))} |\n" for name in names)
    return before + TRACE_TABLE + rows + after


def _first_sentence(member: object) -> str:
    lines = (member.__doc__ or "").split("\n\n")[0].split()
    return _cell(re.split(r"(?<=[^.])\. ", " ".join(lines))[0].removesuffix("."))


TRACE_TABLE = """\
| `trace.` | |
|---|---|
"""

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


SCENARIOS_HEAD = """\
# Scenarios and criteria of `{study}`

Made by `docs/generate.py` from the study that comes with the program;
[{title}]({study}.md) says what they are for.
"""


def scenarios_page(study: str, title: str) -> str:
    """Return the page of what an installed study measures, and where."""
    from tfrctrace.study.file.study_file import find_study, read_study
    from tfrctrace.study.page import criteria_tables as tables

    judging = read_study(find_study(study)).judging
    assert judging is not None
    parts = [SCENARIOS_HEAD.format(study=study, title=title)]
    parts.append(f"\n## Scenarios\n\n{tables.PLACE_LEGEND}\n\n")
    parts += _rows(tables.PLACE_HEADS, [tables.place_texts(place, judging) for place in judging.places])
    parts.append("\n## Criteria\n\nHow much worse is worse is this study's choice.\n\n")
    parts += _rows(tables.CRITERION_HEADS, map(tables.criterion_texts, judging.criteria))
    return "".join(parts)


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table; commands stand in the column `tc`."""
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    for row in rows:
        cells = (
            f"`{_cell(cell)}`" if head == "tc" else _cell(cell) for head, cell in zip(heads, row, strict=True)
        )
        yield f"| {' | '.join(cells)} |\n"


PAGES: dict[str, Callable[[], str]] = {
    "docs/columns.md": columns_page,
    "docs/cli.md": cli_page,
    "docs/flows.schema.json": flows_schema,
    "docs/results.schema.json": results_schema,
    "docs/why.schema.json": why_schema,
    "docs/audit.schema.json": audit_schema,
    "docs/all-metrics.md": metrics_page,
    "docs/bcp133-scenarios.md": partial(scenarios_page, "bcp133", "a congestion control by RFC 9743"),
    "docs/rfc8867-scenarios.md": partial(scenarios_page, "rfc8867", "a congestion control by RFC 8867"),
    "README.md": readme,
    "docs/python.md": python_page,
    "docs/man/tfrctrace.1": program_page,
    **{f"docs/man/tfrctrace-{one.name}.1": partial(manual_page, one) for one in commands()},
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
        (ROOT / name).parent.mkdir(exist_ok=True)
        (ROOT / name).write_text(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
