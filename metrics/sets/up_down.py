"""Which flows go up and which down, as far as labels or the place of a capture say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

Way = Literal["up", "down"]

LABELS: Final[Mapping[str, Way]] = {
    "up": "up",
    "upload": "up",
    "uplink": "up",
    "down": "down",
    "download": "down",
    "downlink": "down",
}
"""Labels that say it, in small letters or not."""

VANTAGES: Final[Mapping[str, Way]] = {"sender": "up", "receiver": "down"}
"""What a host sends is up, as it was captured there, and what it receives is down."""


def up_down_groups(flows: pl.DataFrame) -> dict[int, Way]:
    """Return which of `flows` (columns `flow`, `group`, `source` and, if it is known, `vantage`) go where.

    Labels say it, for all flows if for any. Without them a capture does that was taken at a host which sent
    some flows and received others; one that has only one kind may as well be of a server. A flow of which
    nothing says it is left out.
    """
    by_label: dict[int, Way] = {}
    for flow, group in flows.select("flow", "group").iter_rows():
        if way := LABELS.get(str(group).lower()):
            by_label[flow] = way
    if by_label or "vantage" not in flows.columns:
        return by_label
    by_vantage: dict[str, dict[int, Way]] = {}
    for flow, source, vantage in flows.select("flow", "source", "vantage").iter_rows():
        if way := VANTAGES.get(vantage):
            by_vantage.setdefault(source, {})[flow] = way
    of_hosts = (ways for ways in by_vantage.values() if len(set(ways.values())) > 1)
    return {flow: way for ways in of_hosts for flow, way in ways.items()}
