"""Objectives in a report: the same verdicts as those of `trace.objectives`, drawn and listed."""

from collections import Counter
from pathlib import Path

import pytest

import tfrctrace

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"


@pytest.fixture(scope="module")
def judged():
    trace = tfrctrace.open(str(SAMPLES / "mixed.pcap.zst"))
    limits = str(SAMPLES / "objectives.toml")
    return trace.objectives(limits), trace.report_parts(objectives=limits)


def test_the_report_begins_with_the_verdicts(judged):
    results, report = judged
    words = ["".join(getattr(word, "text", word) for word in part) for part in report.sections[0].headline]
    for place, result in enumerate(
        sorted(results, key=lambda one: one.total.meets(one.objective.target) is not False)
    ):
        met = result.total.meets(result.objective.target)
        verdict = "has no data" if met is None else "met" if met else "missed"
        assert words[place].startswith(f"{result.objective.name} {verdict}: ")


def test_every_judged_interval_is_drawn_with_its_verdict(judged):
    results, report = judged
    overview = report.sections[0].overview
    maps = {one.label: one for one in overview.heat_maps if one.is_verdict}
    for result in results:
        drawn = maps[result.objective.name].rows[0].values
        worst = {}
        for start_ns, verdict in result.intervals.select("start_ns", "verdict").iter_rows():
            if verdict != "no_data":
                gravity = ("met", "violated", "severe").index(verdict)
                worst[start_ns] = max(worst.get(start_ns, 0), gravity)
        # each interval of an objective is a second, which is several of the picture or one
        per_interval = max(round(1 / overview.width_s), 1)
        counts = Counter(value for value in drawn if value is not None)
        for gravity, number in Counter(worst.values()).items():
            # the first and the last interval of the picture may begin and end within one
            assert number * per_interval - counts[gravity] in range(2 * per_interval + 1)


def test_stretches_and_groups_are_listed(judged):
    results, report = judged
    (section,) = (one for one in report.sections if one.key == "objectives")
    rows = {table.key: table.rows for table in section.tables}
    for number, result in enumerate(results, start=1):
        if result.stretches.height:
            assert len(rows[f"objective-{number}-stretches"]) == min(result.stretches.height, 200)
        if result.groups.height > 1:
            assert len(rows[f"objective-{number}-groups"]) == result.groups.height
