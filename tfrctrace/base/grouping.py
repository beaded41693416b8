"""What flows are grouped by, and over which intervals: the arguments of `Trace.groups`, parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.nearest import proposal_or_all

if TYPE_CHECKING:
    from datetime import timedelta

MAX_ROWS: Final = 4_000_000
"""Rows of groups of one trace, about 250 bytes each; packets of further ones are counted as left out."""


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A value of `--by`."""

    name: str
    words: str
    """As the help of `--by` names it."""
    is_end: bool = False
    """Whether its groups are an end of flows, so that they send and receive."""
    made_of: str | None = None
    """The kind that it is summed from, where the core does not know it."""


KINDS: Final = {
    kind.name: kind
    for kind in (
        GroupKind("host", "host", is_end=True),
        GroupKind("prefix", "prefix (prefix/16)", is_end=True),
        GroupKind("site", "site (of --inventory)", is_end=True, made_of="host"),
        GroupKind("port", "port of the server", is_end=True),
        GroupKind("link", "link (input)"),
        GroupKind("interface", "interface", made_of="flow"),
        GroupKind("vlan", "vlan", made_of="flow"),
        GroupKind("tunnel", "tunnel", made_of="flow"),
        GroupKind("outer", "outer (ends of tunnels)", made_of="flow"),
        GroupKind("name", "name of the server", made_of="flow"),
        GroupKind("dscp", "dscp"),
        GroupKind("label", "label (with --label)", made_of="flow"),
        GroupKind("flow", "flow"),
        GroupKind("station", "station", is_end=True),
        GroupKind("bssid", "bssid"),
        GroupKind("channel", "channel of 802.11"),
    )
}
"""What flows and frames are grouped by; `groups/key.rs` has those of the core, and
`trace/gather_groups.py` the names of those made of flows."""

_LENGTHS: Final = (24, 64)
"""Lengths of prefixes of IPv4 and IPv6, unless others are given."""
_LONGEST: Final = (32, 128)


@dataclass(frozen=True, slots=True)
class Grouping:
    """How flows are grouped."""

    by: str
    """One of `KINDS`."""
    prefixes: tuple[int, int] = _LENGTHS
    """Lengths of the prefixes of IPv4 and IPv6."""
    every_ns: int | None = None
    """Width of the intervals, which begin at multiples of it since the epoch; None for one interval."""
    inventory: str | None = None
    """File that names sites, for groups by site."""

    @property
    def text(self) -> str:
        """What is grouped, as users write it."""
        return f"{self.by}/{self.prefixes[0]}/{self.prefixes[1]}" if self.by == "prefix" else self.by

    @property
    def kind(self) -> GroupKind:
        """What is known of its kind."""
        return KINDS[self.by]

    @property
    def for_core(self) -> tuple[str, tuple[int, int], int | None, int]:
        """The argument of the core."""
        return (self.kind.made_of or self.by, self.prefixes, self.every_ns, MAX_ROWS)


def parse_grouping(by: str, every: str | timedelta | None = None, inventory: str | None = None) -> Grouping:
    """Return the grouping that texts such as `host`, `prefix/16` or `prefix/16/48` and `1min` describe."""
    from tfrctrace.base.durations import parse_duration_ns

    kind, *lengths = by.strip().split("/")
    if kind not in KINDS or (lengths and kind != "prefix"):
        raise UsageError(
            f"flows cannot be grouped by `{by}`",
            hint=f"{proposal_or_all(kind, KINDS, 'group by')} or prefix/16",
        )
    if (kind == "site") != (inventory is not None):
        raise UsageError(
            "groups by site need an inventory" if kind == "site" else "an inventory names sites",
            hint="group by `site`, and name the file of networks (docs/groups.md#inventory)",
        )
    every_ns = None if every is None else parse_duration_ns(every, "every")
    return Grouping(kind, _prefixes(by, lengths), every_ns, inventory)


def _prefixes(by: str, lengths: list[str]) -> tuple[int, int]:
    given = [int(length) if length.isascii() and length.isdigit() else -1 for length in lengths]
    v4, v6 = (*given, *_LENGTHS[len(given) :])[:2]
    if len(given) > len(_LENGTHS) or not (0 <= v4 <= _LONGEST[0] and 0 <= v6 <= _LONGEST[1]):
        raise UsageError(
            f"`{by}` has no length of a prefix",
            hint="write that of IPv4, or those of IPv4 and IPv6: `prefix/16` or `prefix/16/48`",
        )
    return v4, v6
