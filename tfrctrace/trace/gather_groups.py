"""The groups of a trace, over all inputs, and with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.base.grouping import Grouping
    from tfrctrace.metrics.groups import Groups
    from tfrctrace.metrics.loaded_delay import LinkLoad, LoadedDelay
    from tfrctrace.trace.passes import TableName
    from tfrctrace.trace.tables import Tables


def gather_groups(
    trace: Tables, grouping: Grouping, labels: Sequence[str] = (), *, causes: bool = False
) -> Groups:
    """Return the groups of all inputs of a trace, with `causes` also times by cause.

    `labels` are rules for groups by label.
    """
    from tfrctrace.metrics.groups import Groups, sum_groups

    check_labels(grouping, labels)
    reading = trace.read_groups(grouping, *_tables(causes=causes))
    groups = Groups(grouping, *(reading.table(name).small_frame() for name in ("groups", "group_buckets")))
    if grouping.kind.made_of == "flow":
        return groups.renamed(_names_of_flows(trace, grouping.by, labels))
    if grouping.inventory is not None:
        return _of_sites(groups, grouping.inventory)
    # several inputs may have the same host
    return sum_groups([groups]) if reading.trace_count > 1 else groups


def gather_loaded_delays(
    trace: Tables, grouping: Grouping, labels: Sequence[str] = (), capacity: str | None = None
) -> tuple[LinkLoad, list[LoadedDelay]]:
    """Return when the link of a trace was loaded, and the delays of groups then and while it was idle."""
    from dataclasses import replace

    from tfrctrace.base.bitrates import parse_capacity_bps
    from tfrctrace.metrics.loaded_delay import delays_under_load, link_load

    capacity_bps = None if capacity is None else parse_capacity_bps(capacity)
    is_link = grouping.by == "link"
    groups = gather_groups(trace, grouping, labels, causes=is_link)
    link = groups if is_link else gather_groups(trace, replace(grouping, by="link"), causes=True)
    load = link_load(link, capacity_bps)
    return load, delays_under_load(groups, load)


def leading_rows(
    trace: Tables,
    grouping: Grouping,
    labels: Sequence[str],
    order: tuple[tuple[str, ...], pl.Expr | None],
    most: int | None,
    *,
    causes: bool = False,
) -> tuple[list[dict[str, Any]], int]:
    """Return the `most` rows with the largest values of an expression of columns, and how many there are.

    Unknown values come last; without an expression the rows are in the order of the table. Only what is
    needed is read of a million rows.
    """
    columns, key = order
    reading = trace.read_groups(grouping, *_tables(causes=causes))
    is_summed = grouping.kind.made_of is not None or reading.trace_count > 1
    table = reading.table("groups")
    frame = gather_groups(trace, grouping, labels, causes=causes).rows if is_summed else table.frame(columns)
    places = frame.with_row_index("place")
    if key is not None:
        places = places.sort(key, descending=True, nulls_last=True, maintain_order=True)
    if most is not None:
        places = places.head(most)
    if is_summed:
        return places.drop("place").to_dicts(), len(frame)
    return list(table.rows_at(places["place"])), len(frame)


def _tables(*, causes: bool) -> tuple[TableName, ...]:
    """Return the tables that a pass over groups collects beside them."""
    return ("causes",) if causes else ()


def check_labels(grouping: Grouping, labels: Sequence[str]) -> None:
    """Raise `UsageError` for rules that are not used, or wrong."""
    from tfrctrace.trace.labels import parse_rule

    if labels and grouping.by != "label":
        raise UsageError("labels are given, but flows are not grouped by them", hint="group by `label`")
    for rule in labels:
        parse_rule(rule)


def _of_sites(groups: Groups, inventory: str) -> Groups:
    """Return groups of hosts as those of the sites of an inventory, with the rates that were promised."""
    import polars as pl

    from tfrctrace.base.inventory import read_inventory

    known = read_inventory(inventory)
    hosts = groups.rows.select("group", "direction").unique()
    names = hosts.with_columns(name=pl.col("group").map_elements(known.name_of, pl.String, skip_nulls=False))
    return groups.renamed(names).promised(known.promised_bps)


def _names_of_flows(trace: Tables, by: str, labels: Sequence[str]) -> pl.DataFrame:
    """Return the group of each direction of each flow."""
    import polars as pl

    columns, name = _naming(by)
    if by == "label":
        flows = trace.labelled_flows(labels)
    else:
        flows = trace.table("flows").frame(("flow", "direction", *columns))
    return flows.select(group=pl.col("flow").cast(pl.String), direction="direction", name=name)


def _naming(by: str) -> tuple[tuple[str, ...], pl.Expr]:
    """Return the columns of flows that name groups of a kind, and the name that they make."""
    import polars as pl

    match by:
        case "interface":
            return ("interface", "source"), pl.coalesce("interface", "source")
        case "name":
            # names of hosts are compared without regard to case (RFC 4343)
            return ("server_name",), pl.col("server_name").str.to_lowercase().fill_null("no name")
        case "vlan":
            return ("vlans",), pl.col("vlans").fill_null("untagged")
        case "tunnel":
            number = pl.coalesce(pl.col("vni", "teid", "gre_key").cast(pl.String), "mpls_labels")
            name = pl.concat_str("tunnel", number, separator=" ", ignore_nulls=True)
            known = pl.when(pl.col("tunnel").is_not_null()).then(name).otherwise(pl.lit("no tunnel"))
            return ("tunnel", "vni", "teid", "gre_key", "mpls_labels"), known
        case "outer":
            ends = [each("outer_src", "outer_dst") for each in (pl.min_horizontal, pl.max_horizontal)]
            return ("outer_src", "outer_dst"), pl.concat_str(*ends, separator=" and ").fill_null("no tunnel")
        case _:
            return (), pl.coalesce("label", "transport")
