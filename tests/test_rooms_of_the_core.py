"""Modules of the Rust core import one way, without circles, and know no option of the command line."""

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from import_circles import circle_of

from tfrctrace.base.hints import HINTS

CORE = Path(__file__).resolve().parent.parent / "parsers/native/src"

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
        is_test = "tests" in path.relative_to(CORE).parts or path.stem == "tests"
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

NAMED = re.compile(r"\b((?:crate|super)(?:::\w+)+)")
"""A path in the code, outside of `use`."""


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
    """Give the modules of the core that the code of a file names, but no folder it stands in."""
    here = core_name(path)
    code = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]\nmod tests {")[0])
    uses = [used for tree in USED.findall(code) for used in used_paths(tree)]
    for used in uses + [tuple(named.split("::")) for named in NAMED.findall(USED.sub("", code))]:
        up = sum(part == "super" for part in used)
        is_inside = here.joinpath(used[0]) in core_modules()
        if up or is_inside or used[0] == "crate":
            start = here if is_inside else here.parents[up - 1] if up else CORE
            place = start.joinpath(*used[up + (used[0] == "crate") :])
            place = next((folder for folder in [place, *place.parents] if folder in core_modules()), here)
            if place != here and place not in here.parents and here not in place.parents:
                yield place.relative_to(CORE).as_posix()


def imports_of_core_files():
    """Return which file of the core uses which; a folder's `mod.rs` and the files there do not count."""
    found = defaultdict(set)
    for path in core_files():
        if path.stem not in {"lib", "tests"} and "tests" not in path.relative_to(CORE).parts:
            found[core_name(path).relative_to(CORE).as_posix()] |= set(files_used(path))
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


def test_no_base_name_in_a_room_of_the_core_has_two_subjects():
    names = Counter(
        (core_room(path), path.parent.name if path.stem == "mod" else path.stem)
        for path in core_files()
        if path.parent.name != "tests"
    )
    assert {name for name, n in names.items() if n > 1 and name[1] not in MAY_REPEAT} == set()


def core_hints():
    text = (CORE / "error.rs").read_text(encoding="utf-8")
    return set(re.findall(r'\w+ = "(\w+)"', text.split("pub enum Hint {")[1].split("\n}")[0]))


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
