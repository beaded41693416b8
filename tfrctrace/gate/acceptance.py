"""A deliberate change: comparisons that failed are taken into the baseline, and the difference is said."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tfrctrace.gate.requirement import parse_comparison

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.gate.baseline import Baseline
    from tfrctrace.gate.requirement import BaselineComparison
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.results.verdict import Verdict

ACCEPTED = "accepted into the baseline"


def accepted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts with those on a baseline passed that failed or warned, and have a value."""
    return [
        replace(verdict, effect="pass", reason=f"{ACCEPTED}: {verdict.reason}")
        if is_acceptable(verdict)
        else verdict
        for verdict in verdicts
    ]


def is_acceptable(verdict: Verdict) -> bool:
    """Return whether a verdict is on a baseline that the runs can replace."""
    return verdict.kind == "baseline" and verdict.effect != "pass" and verdict.value is not None


def rewritten(
    baseline: Baseline, comparisons: Sequence[BaselineComparison], runs: Sequence[CheckedRun]
) -> str:
    """Return the text of the baseline with the values of `comparisons` in `runs`; all else stays."""
    with open(baseline.path, "rb") as file:
        document = json.load(file)
    rows = {parse_comparison(row["quantity"]).quantity.name: row for row in document["quantities"]}
    for comparison in comparisons:
        quantity = comparison.quantity
        values = [value for run in runs for value in run.values_of(quantity).values]
        row = rows.get(quantity.name)
        if row is None:
            document["quantities"].append(
                {"quantity": quantity.name, "unit": quantity.unit, "values": values}
            )
        else:
            row["values"] = values
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
