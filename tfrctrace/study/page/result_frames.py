"""Tests, claims and the figures of a paper as frames, a row each, and the last two as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tfrctrace.study.page.criteria_tables import criteria_frame
from tfrctrace.study.results.paper_rows import (
    ours_text,
    paper_rows,
    reason_text,
    scenario_text,
    stated_text,
)

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.study.results.check_claims import ClaimVerdict
    from tfrctrace.study.run_study import StudyResults


def tests_frame(results: StudyResults) -> pl.DataFrame:
    """Return a row for each test between groups or scenarios."""
    import polars as pl

    rows = [
        {
            "quantity": test.quantity,
            "where": scenario_text(test.scenario),
            "between": test.between,
            "levels": ", ".join(map(str, test.levels)),
            "runs": ", ".join(map(str, test.runs)),
            "difference": test.difference,
            "low": test.low,
            "high": test.high,
            "unit": test.unit,
            "effect": test.effect,
            "test": test.test,
            "statistic": test.statistic,
            "degrees": test.degrees,
            "p_value": test.p_value,
            "p_holm": test.p_holm,
            "reason": test.reason,
        }
        for test in results.tests
    ]
    numbers = ("difference", "low", "high", "effect", "statistic", "degrees", "p_value", "p_holm")
    return pl.DataFrame(
        rows,
        schema_overrides={**dict.fromkeys(numbers, pl.Float64), "reason": pl.String},
        infer_schema_length=None,
    )


def claims_frame(results: StudyResults) -> pl.DataFrame:
    """Return a row for each claim: the finding, how sure it is, and the values that decide."""
    import polars as pl

    rows = [_claim_facts(verdict) for verdict in results.verdicts]
    texts = ("claim", "says", "figures", "stated", "finding", "test", "runs", "values", "reason")
    numbers = ("confidence", "p_holds", "p_contrary")
    flags = ("means_as_claimed", "required", "as_expected")
    return pl.DataFrame(
        rows,
        schema={
            name: pl.Float64 if name in numbers else pl.Boolean if name in flags else pl.String
            for name in (*texts[:5], "confidence", *flags, *texts[5:7], *numbers[1:], *texts[7:])
        },
    )


def _claim_facts(verdict: ClaimVerdict) -> dict[str, object]:
    expectation, checks = verdict.expectation, verdict.checks
    p_values = [(check.p_holds, check.p_contrary) for check in checks if check.p_holds is not None]
    return {
        "claim": expectation.claim.text,
        "says": expectation.says,
        "figures": ", ".join(expectation.figures),
        "stated": stated_text(verdict),
        "finding": verdict.finding,
        "confidence": verdict.confidence,
        "means_as_claimed": verdict.is_in_order,
        "required": expectation.is_required,
        "as_expected": verdict.is_as_expected,
        "test": ", ".join(dict.fromkeys(check.test for check in checks if check.test)),
        "runs": ", ".join(dict.fromkeys("/".join(map(str, check.runs)) for check in checks if check.runs)),
        # of the scenario that is nearest to the other finding
        "p_holds": max((p for p, _ in p_values if p is not None), default=None),
        "p_contrary": min((p for _, p in p_values if p is not None), default=None),
        "values": ours_text(verdict),
        "reason": reason_text(verdict),
    }


def paper_frame(results: StudyResults) -> pl.DataFrame | None:
    """Return a row for each figure of the paper and claim about it; None if the study names none."""
    import polars as pl

    rows = [asdict(row) for row in paper_rows(results)]
    if not rows:
        return None
    types = {"confidence": pl.Float64, "agrees": pl.Boolean}
    return pl.DataFrame(rows, schema={name: types.get(name, pl.String) for name in rows[0]})


def study_json(results: StudyResults) -> str:
    """Return the figures of the paper and all claims, with what the study is about, as JSON."""
    paper = paper_frame(results)
    document = {
        "title": results.study.title,
        "paper": results.study.paper or None,
        "confidence": results.study.confidence,
        "runs": len(results.runs),
        "failed_runs": sum(record is None for record in results.records),
        "figures": [] if paper is None else paper.to_dicts(),
        "claims": claims_frame(results).to_dicts(),
    }
    if (criteria := criteria_frame(results)) is not None:
        document["criteria"] = criteria.to_dicts()
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
