"""What a history adds to a check: the entry, the trends of all builds, and their page."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.gate.history import FILE_NAME, append_entry, build_name, make_entry, read_history
from tfrctrace.gate.trend import trends
from tfrctrace.reports.history_page import history_report
from tfrctrace.reports.output import check_folder
from tfrctrace.reports.page.html import write_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.gate.gate_plan import GatePlan
    from tfrctrace.gate.history import History
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.results.trend import Trend

PAGE_NAME: Final = "index.html"

MOST_BUILDS: Final = 2_000
"""Latest builds of a trend: to look for changes takes as long as the square of their number."""


def checked_build(folder: str | None, build: str | None) -> str | None:
    """Return the name of the build. Raises if there can be no history there, before runs are measured."""
    if folder is not None:
        check_folder(folder)
        return build_name(build)
    if build is not None:
        raise UsageError("`--build` needs `--history`", hint="it names the build in the history")
    return None


def keep_history(
    folder: str, build: str, plan: GatePlan, runs: Sequence[CheckedRun], zone: TimeZone | None
) -> tuple[list[Trend], list[Problem]]:
    """Append what was measured and draw the page of all builds. Returns the trends, and what was left out."""
    followed = plan.followed
    entry = make_entry(build, time.time_ns(), runs, [one for one, _ in followed], plan.measured_with)
    append_entry(folder, entry)
    history = read_history(folder, plan.measured_with)
    latest = replace(history, builds=history.builds[-MOST_BUILDS:])
    found = trends(latest, followed, plan.rules)
    write_page(os.path.join(folder, PAGE_NAME), history_report(found, title="History of checks", zone=zone))
    return found, list(_left_out(folder, history))


def _left_out(folder: str, history: History) -> Iterator[Problem]:
    for place in history.broken:
        text = "is not an entry of a history and left out"
        yield input_problem(place, "not_an_entry", text, severity="warning")
    if len(history.builds) > MOST_BUILDS:
        text = f"the trend is that of the latest {MOST_BUILDS:,} of {len(history.builds):,} builds"
        yield input_problem(os.path.join(folder, FILE_NAME), "older_builds", text, severity="note")
    if history.unlike:
        text = f"{history.unlike} checks were measured with other options, and are left out of the trend"
        path = os.path.join(folder, FILE_NAME)
        yield input_problem(path, "measured_otherwise", text, severity="note")
