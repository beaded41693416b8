"""Uploads and downloads, by the labels of flows or the place of the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

UpDown = Literal["up", "down"]

LABELS: Final[Mapping[str, UpDown]] = {
    "up": "up",
    "upload": "up",
    "uplink": "up",
    "down": "down",
    "download": "down",
    "downlink": "down",
}
"""Labels of either, in any case."""

BELIEVED: Final = 0.75
"""Confidence of a vantage from which counts that are not visible there are null."""

VANTAGES: Final[Mapping[str, UpDown]] = {"sender": "up", "receiver": "down"}
"""In a capture at a host, sent is up and received is down."""


def up_down_groups(flows: pl.DataFrame) -> dict[int, UpDown]:
    """Return which `flows` (columns `flow`, `group`, `source` and, if known, `vantage`) go up and which down.

    If any flow has such a label, labels decide. Else the vantage does, in captures at a host that sent some
    flows and received others: one with a single kind may be at a server. Other flows are left out.
    """
    by_label: dict[int, UpDown] = {}
    for flow, group in flows.select("flow", "group").iter_rows():
        if up_down := LABELS.get(str(group).lower()):
            by_label[flow] = up_down
    if by_label or "vantage" not in flows.columns:
        return by_label
    by_vantage: dict[str, dict[int, UpDown]] = {}
    for flow, source, vantage in flows.select("flow", "source", "vantage").iter_rows():
        if up_down := VANTAGES.get(vantage):
            by_vantage.setdefault(source, {})[flow] = up_down
    at_hosts = (directions for directions in by_vantage.values() if len(set(directions.values())) > 1)
    return {flow: up_down for directions in at_hosts for flow, up_down in directions.items()}
