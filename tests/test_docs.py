"""The documentation is complete, current and true: commands, options, columns, links, and code that runs."""

import glob
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tfrctrace import cli
from tfrctrace.parsers import schema

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *DOCS.glob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "sample_traces").glob("*.md"),
        *(ROOT / "tests").rglob("*.md"),
    ]
)
PAGES_WITH_OUTPUT = [
    DOCS / f"{page}.md"
    for page in (
        "after-an-experiment",
        "auditing-a-link",
        "capacity",
        "check",
        "experiments",
        "groups",
        "in-ci",
        "metrics",
        "tutorial",
        "why-is-it-slow",
    )
]
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def generate(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(DOCS / "generate.py")


def test_generated_pages_are_current(generate: ModuleType) -> None:
    assert list(generate.stale_pages()) == [], "run `make docs`"


def test_a_stale_page_is_noticed(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    for page in ("README.md", "docs/python.md"):  # by hand, with a part that is made
        (tmp_path / page).write_text((ROOT / page).read_text())
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["generate.py"])
    assert generate.main() == 0
    (tmp_path / "docs" / "cli.md").write_text("# Commands\n")
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    assert generate.main() == 1
    assert "docs/cli.md is stale" in capsys.readouterr().err


def test_every_command_is_documented_with_help_and_an_example(generate: ModuleType) -> None:
    page = (DOCS / "cli.md").read_text()
    commands = generate.commands()
    assert {"report", "flows", "convert"} <= {command.name for command in commands}
    for command in commands:
        assert f"\n## {command.name}\n" in page
        assert command.help
        assert command.example.startswith(f"tfrctrace {command.name} ")
        assert command.example in page


def test_every_option_is_documented_with_help(generate: ModuleType) -> None:
    for command in generate.commands():
        section = (DOCS / "cli.md").read_text().split(f"\n## {command.name}\n")[1].split("\n## ")[0]
        assert len(command.options) > 1
        for option in command.options:
            assert option.help, option.names
            assert all(f"`{name}`" in section for name in option.names)


def test_help_of_the_program_names_the_documented_commands_and_options(
    generate: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in generate.commands():
        assert cli.run([command.name, "--help"]) == 0
        help_text = capsys.readouterr().out
        for option in command.options:
            assert any(name in help_text for name in option.names), option.names


@pytest.mark.parametrize("page", sorted((DOCS / "man").iterdir()), ids=lambda page: page.name)
def test_manual_pages_are_clean_and_name_every_option(generate: ModuleType, page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-Tutf8", "-P-cbou", "-ww", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for one in generate.commands():
        if page.stem in {"tfrctrace", f"tfrctrace-{one.name}"}:
            names = (
                [f"tfrctrace-{one.name}(1)"]
                if page.stem == "tfrctrace"
                else sum((o.names for o in one.options), ())
            )
            assert all(name in done.stdout for name in names)


def test_no_summary_of_a_command_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    assert "...\n" not in capsys.readouterr().out.partition("Commands:")[2]


def test_every_column_is_documented() -> None:
    page = (DOCS / "columns.md").read_text()
    for table, columns in schema.TABLES.items():
        section = page.split(f"\n## {table}\n")[1].split("\n## ")[0]
        for column in columns:
            assert f"| `{column.name}` | {column.type} |" in section


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_resolve(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_that_a_map_names_exist(page: str) -> None:
    native = ROOT / "parsers" / "native"
    places = [ROOT, ROOT / "tfrctrace", native.parent, native, native / "src"]
    named = set(re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / page).read_text()))
    assert len(named) > 20
    missing = {name for name in named if not any((place / name).exists() for place in places)}
    assert missing == {name for name in missing if "NAME" in name}


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shell_lines(page: Path) -> list[str]:
    """Commands that a page shows, in blocks of type `console`."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_make_commands_in_the_documentation_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {line.split()[1] for page in PAGES for line in shell_lines(page) if re.match(r"make \w", line)}
    assert {"demo", "test"} <= named
    assert named <= targets


def readme_commands() -> list[list[str]]:
    """Commands of the program that the README shows, those of a block together."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    found = [re.findall(r"^\$ (tfrctrace .*)$", block, flags=re.MULTILINE) for block in blocks]
    return [commands for commands in found if commands]


def test_the_readme_shows_every_command(generate: ModuleType) -> None:
    shown = {line.split()[1] for commands in readme_commands() for line in commands}
    assert {command.name for command in generate.commands()} <= shown


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which the documentation's commands find what they name, and may write."""
    (study,) = re.findall(r"```toml\n(.*?)```", (DOCS / "tutorial.md").read_text(), flags=re.DOTALL)
    (tmp_path / "study.toml").write_text(study)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for path in (ROOT / "sample_traces").glob("*.*"):
        link_into(tmp_path, path)
    # of the studies the one that is shown, with the first runs: `test_studies.py` runs all
    shown = ROOT / "sample_traces" / "studies" / "lillis"
    for path in (shown / "study.toml", *shown.glob("traces/*-1"), *shown.glob("traces/*-1.tr.xz")):
        link_into(tmp_path, path)
    return tmp_path


def link_into(folder: Path, path: Path) -> None:
    """Link a file or folder of the repository at the same place below `folder`."""
    link = folder / path.relative_to(ROOT)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(path)


@pytest.mark.parametrize("commands", readme_commands(), ids=lambda commands: commands[0][:60])
def test_commands_of_the_readme_run(commands: list[str], checkout: Path, run: Callable[..., Any]) -> None:
    for line in commands:
        _, *arguments = shlex.split(line)
        done = run(*arguments)
        assert done.status == 0, done.err
        if arguments[0] == "mcp":
            assert not done.out + done.err  # it was asked nothing
        elif "-o" in arguments:
            assert (checkout / arguments[arguments.index("-o") + 1]).stat().st_size > 0
        else:
            assert done.out


def shown_runs() -> list[tuple[str, str]]:
    """Commands of pages whose blocks show what is printed, with that."""
    blocks = [
        block
        for page in PAGES_WITH_OUTPUT
        for block in re.findall(r"```console\n\$ (tfrctrace .*?)```", page.read_text(), flags=re.DOTALL)
    ]
    assert len(blocks) >= len(PAGES_WITH_OUTPUT)
    return [(line, output) for line, _, output in (block.partition("\n") for block in blocks)]


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(("line", "output"), shown_runs(), ids=lambda part: part[:60])
def test_commands_print_what_the_documentation_shows(line: str, output: str, run: Callable[..., Any]) -> None:
    for command in before(line):
        run(*shell_words(command))
    done = run(*shell_words(line))
    assert done.status in {0, 1}
    assert done.out == output


def before(line: str) -> list[str]:
    """Commands that the page shows before one that needs what they write."""
    lines = [shown for shown, _ in shown_runs()]
    return [shown for shown in lines if "--write-baseline" in shown] if "--baseline" in line else []


def shell_words(line: str) -> list[str]:
    """Return the arguments of the program as a shell would give them."""
    _, *words = shlex.split(line)
    found = [[word] if f"'{word}'" in line else sorted(glob.glob(word)) or [word] for word in words]
    return [name for names in found for name in names]


def test_the_scenario_that_the_documentation_shows_is_the_one_that_ships() -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (DOCS / "capacity.md").read_text(), flags=re.DOTALL)
    assert shown == (ROOT / "sample_traces" / "up-and-down.toml").read_text()


PAGES_WITH_PYTHON = (
    "README.md",
    *(
        f"docs/{page}.md"
        for page in ("python", "capacity", "pair", "metrics", "groups", "tfrc", "experiments")
    ),
)


@pytest.mark.parametrize("page", PAGES_WITH_PYTHON)
def test_python_in_the_documentation_runs(page: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(checkout)
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "__main__"})


NOTEBOOK = json.loads((DOCS / "notebook.ipynb").read_text())


def test_the_notebook_runs_and_shows_what_it_speaks_of(load_script: Callable[[Path], ModuleType]) -> None:
    cells = list(load_script(DOCS / "notebooks.py").run(NOTEBOOK))
    code = [cell for cell in cells if cell.kind == "code"]
    shown = [max(cell.shown, key=lambda kind: kind != "text/plain") for cell in code]
    assert shown == ["text/html", *["image/svg+xml"] * 2, *["text/html"] * 5, "text/plain"]
    by_source = {cell.source.splitlines()[-1]: cell.shown.get("text/html", "") for cell in code}
    assert "holds 13,910 packets in 4 flows" in by_source["trace"]
    assert "9.70 MB" in by_source["trace.styled()"]
    # what a cell prints and shows stands below it
    page = load_script(DOCS / "notebooks.py").page({"cells": [{"cell_type": "code", "source": PRINTS}]})
    assert re.findall(r"(?<=text\n)\w+", page) == ["printed", "3"]


PRINTS = ["print('printed')\n", "1 + 2"]


def test_the_notebook_keeps_no_output() -> None:
    """Outputs are made with the page, so that they are never those of another version."""
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    text = "".join(line for cell in NOTEBOOK["cells"] for line in cell["source"])
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if "://" not in target:
            assert anchor in {"", *anchors(DOCS / path)}


def test_every_requirement_is_pinned() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = settings["build-system"]["requires"] + settings["project"]["dependencies"]
    for extra in settings["project"]["optional-dependencies"].values():
        named += extra
    pinned = set(re.findall(r"^([^=\n#]+)==", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE))
    wanted = {re.split(r"[><=\[ ]", requirement)[0].lower() for requirement in named}
    assert wanted <= pinned
