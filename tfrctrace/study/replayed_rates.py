"""Rate algorithms replayed on the flows of each run: which, and what each would have allowed on average."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast, get_args

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import listed, one_of, refuse_unknown, table_of, texts
from tfrctrace.replay.algorithms import MTFRC
from tfrctrace.replay.open_loop import select_algorithms
from tfrctrace.replay.tfrc import Profile
from tfrctrace.study.definition import ReplayPlan
from tfrctrace.study.file.names import unknown
from tfrctrace.study.results.cells import is_same
from tfrctrace.wlan.cell import CellSettings, Preset
from tfrctrace.wlan.population import Description

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.api import Trace
    from tfrctrace.base.toml import Table
    from tfrctrace.study.definition import Value
    from tfrctrace.wlan.scenario import Scenario

_PARAMETER: Final = re.compile(r"\{([^{}]*)\}")


def parse_replay_plan(table: Table, parameters: Sequence[str]) -> ReplayPlan:
    """Parse `[measure.replay]`; `parameters` are those of the runs.

    Raises `UsageError` for what cannot be.
    """
    refuse_unknown(
        table, {"algorithms", "profile", "stations", "downloads", "preset", "where"}, "`[measure.replay]`"
    )
    found = ReplayPlan(
        algorithms=texts(table.get("algorithms", ["tfrc"]), "algorithms"),
        profile=cast("Profile", one_of(table.get("profile", "rfc5348"), get_args(Profile), "profile")),
        stations=texts(table.get("stations", []), "stations"),
        downloads=str(table.get("downloads", 0)),
        preset=cast("Preset", one_of(table["preset"], get_args(Preset), "preset"))
        if "preset" in table
        else None,
        where={
            name: tuple(listed(value, name)) if isinstance(value, list) else (value,)
            for name, value in table_of(table.get("where", {}), "`where` of `[measure.replay]`").items()
        },
    )
    select_algorithms(found.algorithms, found.profile, []).refuse_windows()
    if (MTFRC in found.algorithms) != bool(found.stations):
        raise UsageError(
            "`stations` say who shares the medium of `mtfrc`, and of nothing else",
            hint='write `stations = ["4x11"]`, or `["{n}x11"]` with a parameter of the runs',
        )
    named = {name for text in (*found.stations, found.downloads) for name in _PARAMETER.findall(text)}
    for name in (*found.where, *sorted(named)):
        if name not in parameters:
            raise unknown("`[measure.replay]`: parameter", name, parameters)
    return found


def plan_for_run(plan: ReplayPlan | None, parameters: Mapping[str, Value]) -> ReplayPlan | None:
    """Return the same with the values of a run in place of its parameters; None where it is not meant."""
    if plan is None or not all(
        any(is_same(parameters.get(name), value) for value in values) for name, values in plan.where.items()
    ):
        return None

    def filled(words: str) -> str:
        return _PARAMETER.sub(lambda found: str(parameters[found[1]]), words)

    return replace(plan, stations=tuple(map(filled, plan.stations)), downloads=filled(plan.downloads))


def mean_rates(trace: Trace, plan: ReplayPlan) -> dict[int, dict[str, float | None]]:
    """Return the mean of X in bit/s that each algorithm allowed each flow that could be replayed."""
    from tfrctrace.metrics.results.open_loop import OpenLoopRun
    from tfrctrace.replay.open_loop_results import open_loop_items

    means: dict[int, dict[str, float | None]] = {}
    loop = trace.open_loop(*plan.algorithms, profile=plan.profile, network=_network(plan))
    for found in open_loop_items(loop, series=False):
        if isinstance(found, OpenLoopRun):
            means.setdefault(found.flow, {})[found.algorithm] = found.x_mean_bps
    return means


def _network(plan: ReplayPlan) -> Scenario | None:
    from tfrctrace.replay.medium import medium_from_options

    if not plan.stations:
        return None
    if not plan.downloads.isdecimal():
        raise UsageError(f"`downloads` is a number of flows, not `{plan.downloads}`")
    description = Description(stations=plan.stations, downloads=int(plan.downloads))
    return medium_from_options(description, CellSettings(preset=plan.preset))
