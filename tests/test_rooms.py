"""Imports go one way: parsers, metrics, reports, and the tool on top of them."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FLOOR = {"tfrctrace.errors", "tfrctrace.durations", "tfrctrace.patience", "tfrctrace.tomlfile"}
"""What every room stands on."""

MAY_IMPORT = {
    "parsers": {"parsers"},
    "metrics": {"parsers", "metrics"},
    "reports": {"parsers", "metrics", "reports"},
}
"""Rooms that a room knows; `metrics` and `reports` know the names of columns (`parsers.schema`)."""

ONLY_TYPES_AND_NAMES = {"tfrctrace.parsers.schema", "tfrctrace.parsers._native"}
"""What rooms after the parsers may know of them."""

HEAVY = {"matplotlib", "numpy", "pandas", "polars", "pyarrow", "rich"}
"""Imported only inside the functions that use them, so that `--help` and small tables are quick."""


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


def test_there_are_modules_to_look_at():
    assert {room for room, _ in ROOM_MODULES} == set(MAY_IMPORT)
    assert len(ALL_MODULES) > len(ROOM_MODULES) > 0


def test_a_room_imports_only_rooms_before_it():
    wrong = [
        f"{place(path)} imports {name}"
        for room, path in ROOM_MODULES
        for name in imported_names(everywhere(path))
        if name.split(".")[0] == "tfrctrace"
        and not is_one_of(name, FLOOR)
        and not is_one_of(name, {f"tfrctrace.{known}" for known in MAY_IMPORT[room]})
    ]
    assert not wrong


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
