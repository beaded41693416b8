"""Runs of a gate in the cache that studies have, too: what was taken of a run, found again by its content."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tfrctrace.gate.values import QuantityValues, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.gate.quantity import Quantity


def gate_key(
    names: Sequence[str], quantities: Sequence[Quantity], measured_with: Mapping[str, Any]
) -> str | None:
    """Return the key of a run of these inputs; None if one of them cannot be read, or only once."""
    from tfrctrace.parsers.dissect import parse_dissect
    from tfrctrace.study.cache import digest_of

    # to look at what a pipe gives would take it away
    if not all(os.path.isfile(name) or os.path.isdir(name) for name in names):
        return None
    what = {
        "gate": sorted({one.text for one in quantities}),
        "names": list(names),
        "measured_with": dict(measured_with),
        # what is called by the same name may have changed
        "layouts": [parse_dissect(layout) for layout in measured_with["dissect"] or ()],
    }
    try:
        return digest_of(what, names)
    except OSError:
        return None  # reading it will say why


def run_to_record(run: Run, problems: Sequence[Problem]) -> dict[str, Any]:
    """Return what is kept of a run, and of what was wrong with it."""
    taken = {text: asdict(one) for text, one in run.taken.items()}
    return {"name": run.name, "taken": taken, "problems": list(problems)}


def run_from_record(record: Mapping[str, Any]) -> tuple[Run, list[Problem]]:
    """Return the run that was kept as `record`, and what was wrong with it."""
    taken = {
        text: QuantityValues(tuple(one["values"]), one["known"], one["of"], one["reason"])
        for text, one in record["taken"].items()
    }
    return Run(record["name"], taken), list(record["problems"])
