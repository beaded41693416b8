"""Count what the structure of the code is judged by: `python evaluation/house.py [CHECKOUT...]`.

One column for each checkout (the current folder without one), so that before and after stand side by side.
Rooms are the folders that `docs/architecture.md` names; imports inside functions and for types alone count.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

PRODUCT: Final = ("parsers", "metrics", "reports", "tfrctrace")
"""Folders of what is installed; tests, documentation, benchmarks and evaluations stand elsewhere."""
NO_PRODUCT: Final = {"fuzz", "testing", "tests", "target", "examples"}
"""Folders and files in them that only test."""
EXEMPTIONS: Final = ("SAME_SUBJECT", "HALF_CONNECTION", "DEBT")
"""Constants in the tests of the rooms that list what those overlook."""
SIX: Final = 6
"""Arguments of a function, without `self`, that are too many."""

RUST_FUNCTION: Final = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:const |unsafe )*fn (\w+)", re.MULTILINE)
RUST_USE: Final = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
LITERALS: Final = re.compile(r'//[^\n]*|b?"(?:[^"\\]|\\.)*"|b?\'(?:[^\'\\]|\\.[^\']*)\'', re.DOTALL)


@dataclass(frozen=True)
class Function:
    """A function and its size; `arguments` without `self`."""

    name: str
    lines: int
    arguments: int


@dataclass(frozen=True)
class Checkout:
    """One state of the repository."""

    root: Path

    @cached_property
    def python(self) -> dict[str, ast.Module]:
        """Return the modules of the product by their full names."""
        return {
            _module_name(path.relative_to(self.root)): ast.parse(path.read_text(encoding="utf-8"))
            for path in self.files("*.py")
        }

    @cached_property
    def rust(self) -> dict[Path, str]:
        """Return the sources of the core by their paths below `src`, without inline tests."""
        core = self.root / "parsers/native/src"
        return {
            path.relative_to(core): without_tests(path) for path in self.files("*.rs") if core in path.parents
        }

    @cached_property
    def code(self) -> dict[Path, str]:
        """Return the same sources with blanks in the place of comments and literals."""
        return {path: LITERALS.sub(_blanked, source) for path, source in self.rust.items()}

    @cached_property
    def rust_functions(self) -> list[Function]:
        """Return all functions of the core."""
        return [found for source in self.code.values() for found in _rust_functions(source)]

    def files(self, pattern: str) -> list[Path]:
        """Return files of the product, none of them twice by way of a link."""
        found = (path for folder in PRODUCT for path in (self.root / folder).rglob(pattern))
        return sorted(path for path in found if not _is_left_out(path.relative_to(self.root)))

    def lines_in_reports(self, pattern: str) -> list[str]:
        """Return what a pattern finds in `reports/`."""
        files = sorted((self.root / "reports").rglob("*.py"))
        return [found for path in files for found in re.findall(pattern, path.read_text(encoding="utf-8"))]


def _is_left_out(path: Path) -> bool:
    links = path.parts[:2] in {("tfrctrace", room) for room in PRODUCT}
    return links or path.stem == "tests" or bool(NO_PRODUCT & set(path.parts))


def _blanked(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def without_tests(path: Path) -> str:
    """Return a Rust source without its inline module of tests."""
    return re.split(r"^#\[cfg\(test\)\]\nmod \w+ \{", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[0]


# Python: who imports whom


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    full = parts if parts[0] == "tfrctrace" else ("tfrctrace", *parts)
    return ".".join(full[:-1] if full[-1] == "__init__" else full)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of_modules(checkout: Checkout) -> dict[str, set[str]]:
    """Return which module of the tool imports which; the package itself only lists what others may use."""
    known = checkout.python.keys() - {"tfrctrace"}
    return {
        name: {_module_of(imported, known) for imported in _imported(checkout.python[name])} - {"", name}
        for name in known
    }


def _module_of(name: str, known: Collection[str]) -> str:
    """Return the module that a name is or stands in; empty if it is none of ours."""
    return next((module for module in (name, name.rpartition(".")[0]) if module in known), "")


def rooms_that_import_each_other(checkout: Checkout) -> list[str]:
    """Return the pairs of rooms that import each other."""
    between = set()
    for name, imported in imports_of_modules(checkout).items():
        between |= {(_room(name), _room(other)) for other in imported}
    return sorted(f"{a}/{b}" for a, b in between if a < b and (b, a) in between)


def _room(module: str) -> str:
    return module.split(".")[1]


# Rust: who uses whom


def imports_of_core_files(checkout: Checkout) -> dict[str, set[str]]:
    """Return which file of the core uses which; a folder's `mod.rs` and the files there do not count."""
    modules = {_core_module(path) for path in checkout.rust} - {Path("lib")}
    found = defaultdict(set)
    for path, source in checkout.code.items():
        here = _core_module(path)
        for place in _used_places(here, source, modules):
            if place != here and place not in here.parents and here not in place.parents:
                found[str(here)].add(str(place))
    return found


def _core_module(path: Path) -> Path:
    return path.parent if path.stem == "mod" else path.with_suffix("")


def _used_places(here: Path, source: str, modules: set[Path]) -> Iterator[Path]:
    for tree in RUST_USE.findall(source):
        for used in _used_paths(tree, ()):
            up = sum(part == "super" for part in used)
            if not up and used[0] != "crate":
                continue
            start = [here, *here.parents][up] if up else Path()
            place = start.joinpath(*used[up or 1 :])
            yield next((folder for folder in [place, *place.parents] if folder in modules), here)


def _used_paths(tree: str, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Give the paths of a `use`: `a::{b, c::d}` as `a::b` and `a::c::d`."""
    depth, start = 0, 0
    for at, letter in enumerate(f"{tree},"):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            head, brace, inner = tree[start:at].strip().partition("{")
            path = (*prefix, *(part.strip() for part in head.split("::") if part.strip()))
            start = at + 1
            if brace:
                yield from _used_paths(inner.rstrip().removesuffix("}"), path)
            elif path:
                yield path


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that reach each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        waiting.append(name)
        for other in sorted(imports.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in waiting:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = waiting[waiting.index(name) :]
            del waiting[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(imports):
        if name not in index:
            visit(name)
    return sorted(found, key=len, reverse=True)


# Sizes


def _closing(source: str, start: int, pair: str) -> int:
    """Return where the bracket at `start` is closed."""
    depth = 0
    for at in range(start, len(source)):
        depth += (source[at] == pair[0]) - (source[at] == pair[1])
        if depth == 0:
            return at
    return len(source)


def _rust_functions(source: str) -> Iterator[Function]:
    for found in RUST_FUNCTION.finditer(source):
        opened = source.find("(", found.end())
        if source[found.end() : found.end() + 1] == "<":
            opened = source.find("(", _closing(source.replace("->", "  "), found.end(), "<>"))
        closed = _closing(source, opened, "()")
        ends = re.compile(r"[;{]").search(source, closed)
        if ends is None or ends[0] == ";":
            continue
        last = _closing(source, ends.start(), "{}")
        arguments = source[opened + 1 : closed]
        lines = source.count("\n", found.start(), last) + 1
        yield Function(found[1], lines, _count_arguments(arguments))


def _count_arguments(text: str) -> int:
    """Return the number of arguments between a function's brackets, without `self`."""
    flat = text.replace("->", "  ")
    while flat != (flat := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]", " ", flat)):
        pass
    given = [one for one in flat.split(",") if one.strip()]
    return sum(not re.fullmatch(r"\s*&?\s*(?:'\w+ )?(?:mut )?self\s*", one) for one in given)


def python_functions(checkout: Checkout) -> Iterator[Function]:
    """Give all functions of the tool, without their documentation."""
    for tree in checkout.python.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                start = body[0].lineno if body else node.lineno
                yield Function(node.name, (node.end_lineno or start) - start + 2, len(node.args.args))


def fields_of(checkout: Checkout, name: str) -> int:
    """Return the number of fields of a struct of the core, the largest of this name; 0 if there is none."""
    counts = [0]
    for source in checkout.code.values():
        if found := re.search(rf"^(?:pub(?:\([^)]*\))? )?struct {name}\b[^;{{]*\{{", source, re.MULTILINE):
            body = source[found.end() : _closing(source, found.end() - 1, "{}")]
            counts.append(len(re.findall(r"^    (?:pub(?:\([^)]*\))? )?\w+:", body, re.MULTILINE)))
    return max(counts)


def implementations(checkout: Checkout, name: str) -> dict[Path, int]:
    """Return the files that add methods to a struct, with the number of these."""
    counts: dict[Path, int] = defaultdict(int)
    for path, source in checkout.code.items():
        for found in re.finditer(rf"^impl(?:<[^>]*>)? {name}\b[^;{{]*\{{", source, re.MULTILINE):
            body = source[found.end() : _closing(source, found.end() - 1, "{}")]
            counts[path] += len(RUST_FUNCTION.findall(body))
    return counts


def exemptions(checkout: Checkout) -> int:
    """Return what the tests of the rooms overlook: entries of lists, and imports that they do not see."""
    count = 0
    for path in (checkout.root / "tests").glob("test_rooms*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in EXEMPTIONS:
                count += len(getattr(node.value, "keys", getattr(node.value, "elts", ())))
            elif isinstance(node, ast.FunctionDef) and node.name == "imports_between":
                count += "at_import_time" in ast.unparse(node)
    return count


def product_lines(checkout: Checkout) -> int:
    """Return the lines of Rust and Python that are not tests."""
    python = sum(path.read_text(encoding="utf-8").count("\n") for path in checkout.files("*.py"))
    return python + sum(source.count("\n") for source in checkout.rust.values())


def _and_names(values: list[str]) -> str:
    return f"{len(values)} ({', '.join(values)})" if values else "0"


def _sizes(groups: list[list[str]]) -> str:
    return f"{len(groups)} (of {', '.join(str(len(group)) for group in groups)})" if groups else "0"


def _longest(functions: Iterable[Function]) -> str:
    longest = max(functions, key=lambda function: function.lines)
    return f"{longest.lines} ({longest.name})"


def measured(checkout: Checkout) -> dict[str, str]:
    """Return the counts of one checkout by what they are."""
    analysis, flow = implementations(checkout, "Analysis"), implementations(checkout, "Flow")
    without_type = r"(?m)^.*(?:Mapping\[str, Any\]|dict\[str, Any\]|\bFacts\b).*$"
    return {
        "pairs of rooms that import each other": _and_names(rooms_that_import_each_other(checkout)),
        "circles of files, Python": _sizes(circles(imports_of_modules(checkout))),
        "circles of files, Rust": _sizes(circles(imports_of_core_files(checkout))),
        "lines with `Mapping[str, Any]` and the like in reports/": str(
            len(checkout.lines_in_reports(without_type))
        ),
        '`["key"]` look-ups in reports/': str(len(checkout.lines_in_reports(r'\["\w+"\]'))),
        "fields of `Analysis`": str(fields_of(checkout, "Analysis")),
        "files with `impl Analysis`": str(len(analysis)),
        "fields of `HalfConnection`": str(fields_of(checkout, "HalfConnection")),
        "methods of `Flow` in one file": str(max(flow.values(), default=0)),
        "functions of six arguments or more, Rust": str(
            sum(one.arguments >= SIX for one in checkout.rust_functions)
        ),
        "lines of the longest function, Rust": _longest(checkout.rust_functions),
        "lines of the longest function, Python": _longest(python_functions(checkout)),
        "exemptions in the tests of the rooms": str(exemptions(checkout)),
        "product lines": f"{product_lines(checkout):,}",
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path()], metavar="CHECKOUT")
    folders: list[Path] = parser.parse_args().checkouts
    columns = [measured(Checkout(folder.resolve())) for folder in folders]
    print("| measure |", " | ".join(str(folder) for folder in folders), "|")
    print("|---|", "|".join("--:" for _ in folders), "|", sep="")
    for measure in columns[0]:
        print(f"| {measure} |", " | ".join(column[measure] for column in columns), "|")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
