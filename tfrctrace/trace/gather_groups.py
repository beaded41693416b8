"""The groups of a trace, over all inputs, and with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.base.grouping import Grouping
    from tfrctrace.metrics.groups import Groups
    from tfrctrace.trace.trace import Trace


def gather_groups(trace: Trace, grouping: Grouping, labels: Sequence[str] = ()) -> Groups:
    """Return the groups of all inputs of a trace; `labels` are rules for groups by label."""
    from tfrctrace.metrics.groups import Groups, sum_groups

    check_labels(grouping, labels)
    reading = trace.read_groups(grouping)
    groups = Groups(grouping, reading.table("groups").frame(), reading.table("group_buckets").frame())
    if grouping.by == "label":
        return groups.renamed(_labels_of(trace, labels))
    # several inputs may have the same host
    return sum_groups([groups]) if reading.trace_count > 1 else groups


def rows_of_groups(
    trace: Trace, grouping: Grouping, labels: Sequence[str], columns: Sequence[str]
) -> pl.DataFrame:
    """Return some columns of the rows that `gather_groups` gives."""
    reading = trace.read_groups(grouping)
    if grouping.by == "label" or reading.trace_count > 1:
        return gather_groups(trace, grouping, labels).rows.select(columns)
    return reading.table("groups").frame(columns)


def check_labels(grouping: Grouping, labels: Sequence[str]) -> None:
    """Raise `UsageError` for rules that are not used, or wrong."""
    from tfrctrace.trace.labels import parse_rule

    if labels and grouping.by != "label":
        raise UsageError("labels are given, but flows are not grouped by them", hint="group by `label`")
    for rule in labels:
        parse_rule(rule)


def _labels_of(trace: Trace, labels: Sequence[str]) -> pl.DataFrame:
    """Return the label of each direction of each flow."""
    import polars as pl

    flows = trace.labelled_flows(labels)
    return flows.select(
        group=pl.col("flow").cast(pl.String),
        direction="direction",
        name=pl.coalesce("label", "transport"),
    )
