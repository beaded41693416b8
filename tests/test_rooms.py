"""Imports go one way: parsers, metrics, reports, and the tool on top of them."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tfrctrace.base.hints import HINTS

ROOT = Path(__file__).resolve().parent.parent

FLOOR = "tfrctrace.base"
"""Room that every other one may import."""

MAY_IMPORT = {
    "parsers": {"parsers"},
    "metrics": {"parsers", "metrics"},
    "reports": {"parsers", "metrics", "reports"},
}
"""Rooms that a room knows; `metrics` and `reports` know the names of columns (`parsers.schema`)."""

ONLY_TYPES_AND_NAMES = {f"tfrctrace.parsers.{name}" for name in ("schema", "csv_text", "_native")}
"""What rooms after the parsers may know of them."""

HEAVY = {"matplotlib", "numpy", "pandas", "polars", "pyarrow", "rich"}
"""Imported only inside the functions that use them, so that `--help` and small tables are quick."""

MOST_LOOSE_FILES = 20
"""Files in one folder, without its subfolders."""

NO_CODE = {"native", "data", "__pycache__"}
"""Folders whose files are not counted: the crate, and captures."""

SAME_SUBJECT = {
    "burstiness": "metric, section of a report",
    "capacity": "command, model, printer",
    "delivery": "metric, section of a report",
    "fairness": "metric, section of a report",
    "flows": "command, columns, printer",
    "metrics": "command, printer",
    "mtfrc": "bounds of the MAC, replay with them",
    "replay": "command, columns, printer, section of a report",
    "tfrc": "columns, options, replay, section of a report",
}
"""Names that several files share because they are about the same thing."""


def modules(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "native" not in path.parts)


ROOM_MODULES = [(room, path) for room in MAY_IMPORT for path in modules(room)]
ALL_MODULES = [path for folder in (*MAY_IMPORT, "tfrctrace") for path in modules(folder)]


def imported_names(nodes):
    """Give every imported module, `from x import y` as `x.y` too."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are by full name"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def everywhere(path):
    """Return all statements that import something."""
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom)]


def at_import_time(path):
    """Give the statements that run on import: not those in functions or under TYPE_CHECKING."""
    waiting = list(parsed(path).body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def is_one_of(name, modules):
    """Say whether a name is one of the modules, or in one of them."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def place(path):
    return str(path.relative_to(ROOT))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    full = parts if parts[0] == "tfrctrace" else ("tfrctrace", *parts)
    return ".".join(full[:-1] if full[-1] == "__init__" else full)


def imports_between(groups):
    """Return which group imports which when it is imported; `groups` gives the group of each module."""
    found = defaultdict(set)
    for path in ALL_MODULES:
        importer = groups[module_name(path)]
        for name in imported_names(at_import_time(path)):
            if name in groups and groups[name] != importer:
                found[importer].add(groups[name])
    return found


def circle_of(imports):
    """Return a circle of imports as text, or None."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return None


def crowded_folders(root):
    """Give folders with more loose files than one can take in at a glance."""
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        if folder.is_symlink() or NO_CODE & set(folder.relative_to(root.parent).parts):
            continue
        files = [path for path in folder.iterdir() if path.is_file() and path.suffix not in {".so", ".pyc"}]
        if len(files) > MOST_LOOSE_FILES:
            yield f"{folder} has {len(files)} files"


def shared_names(paths):
    """Return the files of each name that several of them have."""
    by_name = defaultdict(list)
    for path in paths:
        by_name[path.stem].append(path)
    return {name: files for name, files in by_name.items() if len(files) > 1 and not name.startswith("__")}


def test_there_are_modules_to_look_at():
    assert {room for room, _ in ROOM_MODULES} == set(MAY_IMPORT)
    assert len(ALL_MODULES) > len(ROOM_MODULES) > 0


def test_a_room_imports_only_rooms_before_it():
    wrong = [
        f"{place(path)} imports {name}"
        for room, path in ROOM_MODULES
        for name in imported_names(everywhere(path))
        if name.split(".")[0] == "tfrctrace"
        and not is_one_of(name, {FLOOR})
        and not is_one_of(name, {f"tfrctrace.{known}" for known in MAY_IMPORT[room]})
    ]
    assert not wrong


def test_the_ground_floor_imports_nothing_of_the_project_but_itself():
    wrong = [
        f"{place(path)} imports {name}"
        for path in modules("tfrctrace/base")
        for name in imported_names(everywhere(path))
        if name.split(".")[0] == "tfrctrace" and not is_one_of(name, {FLOOR})
    ]
    assert not wrong


def test_rooms_of_the_tool_do_not_import_each_other_in_a_circle():
    names = [module_name(path) for path in ALL_MODULES]
    rooms = {name: ".".join(name.split(".")[:2]) for name in names if name != "tfrctrace"}
    imports = imports_between(rooms | {"tfrctrace": "the package itself"})
    assert FLOOR in imports["tfrctrace.commands"]
    assert circle_of(imports) is None


def test_modules_do_not_import_each_other_in_a_circle():
    imports = imports_between({name: name for name in map(module_name, ALL_MODULES)})
    # what a module stands in is imported before it, by Python itself
    assert circle_of(imports) is None


def test_a_circle_is_found():
    assert circle_of({"trace": {"base"}, "study": {"trace"}}) is None
    assert circle_of({"trace": {"gate"}, "gate": {"study"}, "study": {"trace"}})


@pytest.mark.parametrize("room", [*MAY_IMPORT, "tfrctrace", "tests"])
def test_a_folder_has_no_more_loose_files_than_one_can_take_in(room):
    assert not list(crowded_folders(ROOT / room))


def test_a_crowded_folder_is_found(tmp_path):
    folder = tmp_path / "room" / "inner"
    folder.mkdir(parents=True)
    for number in range(MOST_LOOSE_FILES):
        (folder / f"{number}.py").touch()
    assert not list(crowded_folders(tmp_path / "room"))
    (folder / "style.css").touch()
    assert len(list(crowded_folders(tmp_path / "room"))) == 1


def test_files_of_different_subjects_have_different_names():
    shared = shared_names(ALL_MODULES)
    assert set(shared) == set(SAME_SUBJECT)


def test_a_shared_name_is_found():
    paths = [Path("a/summary.py"), Path("b/summary.py"), Path("a/__init__.py"), Path("b/__init__.py")]
    assert list(shared_names(paths)) == ["summary"]


def test_rooms_after_the_parsers_know_only_their_columns():
    wrong = [
        f"{place(path)} imports {name}"
        for room, path in ROOM_MODULES
        for name in imported_names(everywhere(path))
        if room != "parsers"
        and name.startswith("tfrctrace.parsers")
        and not is_one_of(name, ONLY_TYPES_AND_NAMES)
    ]
    assert not wrong


def test_heavy_imports_stay_inside_functions():
    wrong = [
        f"{place(path)} imports {name} at its top"
        for path in ALL_MODULES
        for name in imported_names(at_import_time(path))
        if is_one_of(name, HEAVY)
    ]
    assert not wrong


PARSERS_OF_TEXT = {"partition", "rpartition", "split", "rsplit", "splitlines", "removeprefix", "removesuffix"}
PARSERS_OF_TEXT |= {"startswith", "endswith", "find", "index", "search", "match", "fullmatch", "findall"}


def is_message(node):
    """Say whether an expression is `[...]["message"]`."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == "message"
    )


def parsed_messages(tree):
    """Give the lines where a text is taken apart that was made for a person."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in PARSERS_OF_TEXT and any(map(is_message, [node.func.value, *node.args])):
                yield node.lineno
        elif isinstance(node, ast.Compare | ast.Subscript):
            compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.value]
            if any(map(is_message, compared)):
                yield node.lineno


def test_no_fact_is_parsed_out_of_a_message():
    wrong = [f"{place(path)} line {line}" for path in ALL_MODULES for line in parsed_messages(parsed(path))]
    assert not wrong


@pytest.mark.parametrize(
    "code",
    [
        'a, _, b = problem["message"].partition(" fits ")',
        're.match("fits", problem["message"])',
        'x = problem["message"][:5]',
        'if "fits" in problem["message"]: pass',
    ],
)
def test_a_parsed_message_is_found(code):
    assert list(parsed_messages(ast.parse(code))) == [1]


def test_nothing_installed_imports_scapy():
    # scapy is GPL-2.0, the package is not
    wrong = [
        place(path)
        for path in ALL_MODULES
        if any(is_one_of(name, {"scapy"}) for name in imported_names(everywhere(path)))
    ]
    assert not wrong


CORE = ROOT / "parsers/native/src"

MAY_REPEAT = {"receiver", "sender", "tests", "vantage"}
"""Words of the field, which name the same subject in parallel folders of the core."""


@cache
def core_files():
    return sorted(CORE.rglob("*.rs"))


def core_room(path):
    return path.relative_to(CORE).parts[0].removesuffix(".rs")


def rooms_named(path):
    """Give the top-level modules of the core that a file names outside of tests and comments."""
    source = path.read_text()
    inline_tests = source.find("#[cfg(test)]\nmod tests {")
    code = re.sub(r"//.*", "", source if inline_tests < 0 else source[:inline_tests])
    nested = re.findall(r"\bcrate::\{(.*?)\};", code, re.DOTALL)
    inside = path.relative_to(CORE).parts
    depth = len(inside) - (path.stem == "mod")
    root = rf"\b(?:crate::|(?:super::){{{depth}}})"
    return set(re.findall(rf"{root}(\w+)", code)) | {name for tree in nested for name in first_names(tree)}


def first_names(tree):
    return re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", tree))


def rooms_of_the_core():
    """Return the top-level modules of the core with those that each of them imports."""
    known = {}
    for path in core_files():
        is_test = "tests" in path.parts or path.stem == "tests"
        if not is_test and core_room(path) not in {"lib", "testing"}:
            room = core_room(path)
            known.setdefault(room, set()).update(rooms_named(path) - {room, "testing"})
    return known


def test_the_core_has_no_circle_of_rooms():
    left = rooms_of_the_core()
    assert {"packet", "wire", "flow", "input"} <= set(left)
    while ready := {room for room, needed in left.items() if not needed & set(left)}:
        left = {room: needed for room, needed in left.items() if room not in ready}
    assert not left


USED = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)

HALF_CONNECTION = (
    "flow/tcp/half_connection",
    "flow/tcp/classify",
    "flow/tcp/recovery",
    "flow/tcp/rtt",
    "flow/tcp/wire_mss",
)
"""Files with methods of `HalfConnection`, which count as one."""


def used_paths(tree, prefix=()):
    """Give the paths of a `use`: `a::{b, c::d}` as `a::b` and `a::c::d`."""
    depth, start = 0, 0
    for at, letter in enumerate(f"{tree},"):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            head, brace, inner = tree[start:at].strip().partition("{")
            path = (*prefix, *(part for part in head.split("::") if part))
            start = at + 1
            if brace:
                yield from used_paths(inner.rstrip().removesuffix("}"), path)
            elif path:
                yield path


def core_name(path):
    """Return the path of a Rust module below `src`, without `mod.rs`."""
    return path.parent if path.stem == "mod" else path.with_suffix("")


@cache
def core_modules():
    return {core_name(file) for file in core_files()} - {CORE / "lib"}


def files_used(path):
    """Give the modules of the core that the `use` lines of a file name, but no folder it stands in."""
    here = core_name(path)
    for tree in USED.findall(path.read_text().split("#[cfg(test)]")[0]):
        for used in used_paths(tree):
            up = sum(part == "super" for part in used)
            if up or used[0] == "crate":
                start = here.parents[up - 1] if up else CORE
                place = start.joinpath(*used[up or 1 :])
                place = next((folder for folder in [place, *place.parents] if folder in core_modules()), here)
                if place != here and place not in here.parents and here not in place.parents:
                    yield place.relative_to(CORE).as_posix()


def type_or_file(name):
    return "HalfConnection" if name.startswith(HALF_CONNECTION) else name


def imports_of_core_files():
    """Return which file of the core uses which; a folder's `mod.rs` and the files there do not count."""
    found = defaultdict(set)
    for path in core_files():
        if path.stem not in {"lib", "tests"} and "tests" not in path.parts:
            name = type_or_file(core_name(path).relative_to(CORE).as_posix())
            found[name] |= {type_or_file(used) for used in files_used(path)} - {name}
    return found


def test_the_core_has_no_circle_of_files():
    imports = imports_of_core_files()
    assert "wire/rtp" in imports["wire/udp"]
    assert "tfrc/equation" in imports["tfrc/profile"]
    assert circle_of(imports) is None


def test_paths_of_a_use_are_found():
    paths = list(used_paths("super::a::{b, c::{d, e}}"))
    assert paths == [("super", "a", "b"), ("super", "a", "c", "d"), ("super", "a", "c", "e")]


def test_decoding_imports_only_packets():
    assert rooms_of_the_core()["wire"] <= {"packet", "error"}


def test_no_folder_of_the_core_is_a_pile():
    folders = Counter(path.parent for path in core_files())
    assert {str(folder.relative_to(CORE)): n for folder, n in folders.items() if n > 20} == {}


def test_no_base_name_in_a_room_of_the_core_has_two_subjects():
    names = Counter(
        (core_room(path), path.parent.name if path.stem == "mod" else path.stem)
        for path in core_files()
        if path.parent.name != "tests"
    )
    assert {name for name, n in names.items() if n > 1 and name[1] not in MAY_REPEAT} == set()


def core_hints():
    text = (CORE / "error.rs").read_text(encoding="utf-8")
    return set(re.findall(r'Self::\w+ => "(\w+)"', text.split("impl Hint {")[1].split("\n}")[0]))


def test_every_hint_of_the_core_has_words():
    assert core_hints() == set(HINTS) != set()


def test_the_core_knows_no_option_of_the_command_line():
    named = {
        f"{path.relative_to(CORE)}: {string}"
        for path in core_files()
        for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', strings_outside_comments(path))
        if re.search(r"--[a-z]", string)
    }
    assert named == set()


def strings_outside_comments(path):
    """Return the Rust source without its comment lines; strings may span lines by `\\`."""
    lines = path.read_text(encoding="utf-8").split("\n")
    code = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
    return re.sub(r"\\\n\s*", "", code).replace("'\"'", "''")
