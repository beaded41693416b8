"""A study file for the runs below a folder, whose names tell their parameters: a beginning to be edited."""

from __future__ import annotations

import glob
import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.parsers.sources import find_inputs
from tfrctrace.study.definition import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUFFIX: Final = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]*)+$")
_SEPARATORS: Final = re.compile(r"([-_/])")
_NUMBERED: Final = re.compile(r"([A-Za-z]+)([0-9]+(?:\.[0-9]+)?)")
_REPETITION: Final = "run"

_TAIL: Final = """
[measure]
window = "1s"
# warmup = "10s"            # left out at the start of each flow
# capacity = "10M"          # of the link, for `link_utilisation`

# [labels]                  # of flows; unlabelled ones go by their transport
# video = "port 5004"

[[quantity]]
name = "rate"
metric = "rate_bps"

[[quantity]]
name = "rtt"
column = "rtt_mean_ms"

[[quantity]]
name = "fairness"
metric = "jain"
"""


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs whose names are built alike: a shell pattern, a pattern, and the parameters of it."""

    files: str
    pattern: str
    parameters: tuple[str, ...]
    repetition: str | None


def new_study(folder: str) -> str:
    """Return the text of a study file, to be put in `folder`, whose runs are the traces below it.

    Raises `InputError` if there is none, and `UsageError` for names that no pattern can have.
    """
    names = [os.path.relpath(name, folder).replace(os.sep, "/") for name in find_inputs([folder]).names]
    if not names:
        raise InputError([input_problem(folder, "no_runs", "has no trace")])
    for name in names:
        if "{" in name or "}" in name:
            raise UsageError(f"`{name}` has a brace, which is that of a parameter", hint="rename the file")
    alike: dict[tuple[str, ...], list[list[str]]] = {}
    for name in names:
        suffix = found[0] if (found := _SUFFIX.search(name)) else ""
        parts = _SEPARATORS.split(name.removesuffix(suffix))
        alike.setdefault((*parts[1::2], suffix), []).append(parts[::2])
    # a run that fits several patterns is of the first: those of most parts go before
    kinds = sorted(alike.items(), key=lambda item: -len(item[0]))
    groups = [_runs(key[:-1], key[-1], rows) for key, rows in kinds]
    if len({group.repetition for group in groups}) > 1:
        # it must be called alike in all of them
        groups = [_without_repetition(group) for group in groups]
    parameters = list(dict.fromkeys(name for group in groups for name in group.parameters))
    repetition = groups[0].repetition
    scenario = [name for name in parameters if name != repetition]
    return "".join(_lines(os.path.basename(os.path.abspath(folder)), groups, scenario))


def _runs(separators: Sequence[str], suffix: str, rows: Sequence[Sequence[str]]) -> _Runs:
    """Return the pattern of names with these parts, of which those that differ are parameters."""
    columns = list(zip(*rows, strict=True))
    varying = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    texts, wild = [column[0] for column in columns], [glob.escape(column[0]) for column in columns]
    names: list[str] = []
    for place in varying:
        found = [_NUMBERED.fullmatch(value) for value in columns[place]]
        prefixes = {one[1] for one in found if one}
        prefix = prefixes.pop() if all(found) and len(prefixes) == 1 else ""
        is_folder = "/" in separators[place:]
        name = _new_name(prefix.lower() or ("folder" if is_folder else "part"), names)
        names.append(name)
        texts[place], wild[place] = f"{prefix}{{{name}}}", f"{prefix}*"
    repetition = None
    if varying and all(value.isdecimal() for value in _digits(columns[varying[-1]])):
        others = Counter(tuple(row[place] for place in varying[:-1]) for row in rows)
        if max(others.values()) > 1:
            repetition = _new_name(_REPETITION, names[:-1])
            texts[varying[-1]] = texts[varying[-1]].replace(f"{{{names[-1]}}}", f"{{{repetition}}}")
            names[-1] = repetition
    joined = [*separators, suffix]
    pattern, files = (
        "".join(part for pair in zip(parts, joined, strict=True) for part in pair) for parts in (texts, wild)
    )
    return _Runs(files, pattern, tuple(names), repetition)


def _digits(column: Sequence[str]) -> Iterator[str]:
    for value in column:
        found = _NUMBERED.fullmatch(value)
        yield found[2] if found else value


def _new_name(wanted: str, taken: Sequence[str]) -> str:
    if wanted not in taken and wanted not in RESERVED:
        return wanted
    return next(name for n in range(2, len(taken) + 3) if (name := f"{wanted}{n}") not in taken)


def _without_repetition(group: _Runs) -> _Runs:
    return _Runs(group.files, group.pattern, group.parameters, None)


def _lines(title: str, groups: Sequence[_Runs], scenario: Sequence[str]) -> Iterator[str]:
    yield f"title = {_text(title)}\n"
    for group in groups:
        yield f"\n[[runs]]\nfiles = {_text(group.files)}\n"
        if group.parameters:
            yield f"pattern = {_text(group.pattern)}\n"
        if group.repetition is not None:
            yield f"repetition = {_text(group.repetition)}\n"
    yield _TAIL
    yield f'\n[[table]]\nname = "flows"\nrows = {_texts([*scenario, "group"])}\ncolumns = ["rate", "rtt"]\n'
    yield f'\n[[table]]\nname = "fairness"\nrows = {_texts(scenario)}\ncolumns = ["fairness"]\n'
    if scenario:
        yield f'\n[[figure]]\nname = "rates"\nkind = "bars"\nx = {_text(scenario[0])}\ny = "rate"\n'
        yield 'series = "group"\n'
        yield f'\n[[compare]]\nquantity = "rate"\nbetween = {_text(scenario[0])}\nholm = true\n'


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"
