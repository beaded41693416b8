"""What a shell completes in the values of options: names of metrics, columns, groups and labels.

Typer asks these functions when the user presses Tab; what they import must not slow the other commands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import typer  # noqa: TC002  Typer looks at the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable

Suggestions = list[tuple[str, str]]
"""Words with their meaning, which shells show that can."""

_PERCENTILES = ("p50", "p90", "p95", "p99")
_TRANSPORTS = ("tcp", "udp", "dccp", "tfrc", "rtp")


def metric_names(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest metrics, those of groups where `--by` is given."""
    if ctx.params.get("by"):
        from tfrctrace.metrics.group_metrics import JAIN
        from tfrctrace.metrics.group_values import SINGLE_VALUES

        return _starting(((name, "") for name in (JAIN, *SINGLE_VALUES)), incomplete)
    from tfrctrace.metrics.catalogue import CATALOGUE

    return _starting(((metric.name, metric.meaning) for metric in CATALOGUE), incomplete)


def quantities(incomplete: str) -> Suggestions:
    """Suggest the quantity of a limit: `p95(rtt_ms)`, `sum(lost_packets)`, or a metric."""
    from tfrctrace.metrics.catalogue import CATALOGUE
    from tfrctrace.metrics.flow.causes import SHARE_NAMES
    from tfrctrace.runs.quantity import AGGREGATIONS, COLUMNS

    if opened := re.match(r"([a-z0-9]+)\(", incomplete):
        columns = ((f"{opened[0]}{name})", column.meaning) for name, column in COLUMNS.items())
        shares = ((f"{opened[0]}{name})", "share of time") for name in SHARE_NAMES)
        return _starting([*columns, *shares], incomplete)
    aggregations = ((f"{name}(", "of a column") for name in (*AGGREGATIONS, *_PERCENTILES))
    return _starting([*aggregations, *((one.name, one.meaning) for one in CATALOGUE)], incomplete)


def groupings(incomplete: str) -> Suggestions:
    """Suggest what flows are grouped by."""
    from tfrctrace.base.grouping import KINDS

    return _starting(((kind, "") for kind in KINDS), incomplete)


def label_rules(incomplete: str) -> Suggestions:
    """Suggest the condition of a label, once it has its name."""
    from tfrctrace.trace.conditions import CONDITION_NAMES

    name, equals, _ = incomplete.partition("=")
    if not equals:
        return []
    transports = ((f"{name}=transport {each}", "") for each in _TRANSPORTS)
    return _starting([*transports, *((f"{name}={each} ", "") for each in CONDITION_NAMES)], incomplete)


def weighted_labels(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Suggest the labels of the command line, and transports, which label other flows."""
    given = [rule.partition("=")[0] for rule in ctx.params.get("label") or ()]
    return _starting(((f"{name}=", "") for name in dict.fromkeys((*given, *_TRANSPORTS))), incomplete)


def _starting(words: Iterable[tuple[str, str]], start: str) -> Suggestions:
    return [(word, " ".join(meaning.split())) for word, meaning in words if word.startswith(start)]
