"""Imports go one way: parsers, metrics, reports, and the tool on top of them."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from import_circles import circle_of

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


def import_statements(tree):
    """Return all statements that import something, wherever they stand."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def everywhere(path):
    return import_statements(parsed(path))


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
    """Return which group imports which; `groups` gives the group of each module.

    Imports inside functions and for types alone count as well: to understand a module one reads them, too.
    """
    found = defaultdict(set)
    for path in ALL_MODULES:
        importer = groups[module_name(path)]
        for name in imported_names(everywhere(path)):
            if name in groups and groups[name] != importer:
                found[importer].add(groups[name])
    return found


def room_of(name):
    """Return the room of a module, a row of the tables in `docs/architecture.md`."""
    below, *rest = name.split(".")[1:-1] or [""]
    return ".".join([below, *rest[:1]] if below in MAY_IMPORT else [below])


def shared_names(names):
    """Return the modules that have their last name in common with another one of their room."""
    by_name = defaultdict(list)
    for name in names:
        by_name[room_of(name), name.split(".")[-1]].append(name)
    return [alike for alike in by_name.values() if len(alike) > 1]


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
    assert "tfrctrace.api" in imports["tfrctrace.opening"]
    assert circle_of(imports) is None


def test_imports_in_functions_and_for_types_are_seen():
    code = "if TYPE_CHECKING:\n    import a.b\ndef f():\n    from c import d\n"
    assert set(imported_names(import_statements(ast.parse(code)))) == {"a.b", "c", "c.d"}


def test_a_circle_is_found():
    assert circle_of({"trace": {"base"}, "study": {"trace"}}) is None
    assert circle_of({"trace": {"gate"}, "gate": {"study"}, "study": {"trace"}})


def test_modules_of_one_room_have_different_names():
    assert not shared_names(map(module_name, ALL_MODULES))


def test_a_shared_name_is_found():
    apart = [
        "tfrctrace.reports.sections.replay",
        "tfrctrace.reports.printers.replay",
        "tfrctrace.replay.replay",
    ]
    assert not shared_names(apart)
    alike = ["tfrctrace.replay.tcp.timer", "tfrctrace.replay.timer"]
    assert shared_names(alike) == [alike]


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
