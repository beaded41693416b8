"""How long a request may wait, against the answers that were drawn, sorted by hand."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import polars as pl
import pytest

from tfrctrace.base.grouping import parse_grouping
from tfrctrace.metrics.audit.waiting_limit import with_patience
from tfrctrace.metrics.groups import Groups

Row = dict[str, Any]
S = 10**9
STEP_NS = 300 * S


def server(group: str, answers_s: list[float], silent: int) -> tuple[list[Row], list[Row]]:
    """Return the rows and buckets of a server: ten answers an interval, and so many without any."""
    rows, buckets = [], []
    for place in range(0, len(answers_s), 10):
        own = answers_s[place : place + 10]
        key = {"group": group, "direction": "received", "start_ns": place // 10 * STEP_NS}
        unanswered = silent + sum(one >= 10 for one in own)
        rows.append({**key, "requests": silent + len(own), "requests_unanswered": unanswered})
        buckets += [
            {
                **key,
                "measure": "response",
                "from_ns": round(one * S * 0.996),
                "to_ns": round(one * S * 1.004),
                "samples": 1,
            }
            for one in own
        ]
    return rows, buckets


@pytest.mark.parametrize(("median_s", "silent"), [(0.05, 1), (4.0, 1), (15.0, 2), (40.0, 0)])
def test_an_answer_within_five_times_the_usual_is_not_late(median_s: float, silent: int) -> None:
    random = Random(round(median_s * 100))
    answers_s = [random.lognormvariate(math.log(median_s), 0.3) for _ in range(400)]
    answers_s[100:104] = [9.0 * median_s, 60.0 * median_s, 11.0, 2_000.0]
    usual_s = sorted(answers_s)[math.ceil(0.95 * len(answers_s)) - 1]
    limit_s = max(10.0, 5 * usual_s)
    tables = [server("192.0.2.1", answers_s, silent), server("192.0.2.2", [0.1] * 390 + [30.0] * 10, 0)]
    rows, buckets = (
        pl.DataFrame([one for table in part for one in table]) for part in zip(*tables, strict=True)
    )
    found = with_patience(Groups(parse_grouping("host", "5min"), rows, buckets)).rows
    assert found.columns == rows.columns
    of_server = found.filter(group="192.0.2.1")["requests_unanswered"].to_list()
    for place, unanswered in enumerate(of_server):
        own = answers_s[10 * place : 10 * place + 10]
        assert unanswered == silent + sum(one >= limit_s for one in own)
    # of a fast one, what took 30 s hung
    assert found.filter(group="192.0.2.2")["requests_unanswered"].sum() == 10
