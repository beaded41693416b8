"""`--dissect udp:9000=LAYOUT`: where the datagrams of a port have their number and time of sending.

LAYOUT is a layout that the core knows by name, `rtp` (with the rate of its clock as `rtp/48000`), a layout of
`tfrctrace.parsers.layouts` by name or as a file whose name ends with `.toml`, or `module:Class` for a scapy
`Packet` class. Such a class is asked once where its fields lie; datagrams are then read by the core, without
scapy, which this module does not import either: whoever names a class has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.user_code import load_class
from tfrctrace.parsers.layouts import known_layouts, read_known_layout, read_layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfrctrace.parsers._native import Layout, OwnLayout

NUMBER_NAMES: Final = ("seq", "sequence", "seqno", "seq_no", "sequence_number", "packet_number", "number")
"""Names of a field that is taken for the number, unless the class says otherwise."""

NS_OF_UNIT: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

_SPECIFICATION: Final = re.compile(r"udp:(?P<port>\d{1,5})=(?P<layout>[\w.:/-]+|.+\.toml)")
_CLOCK_RATE: Final = re.compile(r"rtp/[1-9]\d{0,8}")
_TIME_NAME: Final = re.compile(r"(?:send_|sent_|tx_)?(?:time|timestamp|ts|sent)_(?P<unit>ns|us|ms|s)")


@dataclass(frozen=True, slots=True)
class _Place:
    """A field in the first bytes of a payload."""

    offset: int
    size: int
    little_endian: bool


def parse_dissect(specification: str) -> tuple[int, Layout]:
    """Return port and layout of `udp:PORT=LAYOUT` for the core."""
    from tfrctrace.parsers._native import probe_layouts

    match = _SPECIFICATION.fullmatch(specification)
    if match is None or not 0 < int(match["port"]) < 65_536:
        raise UsageError(
            f"`{specification}` is not a dissection rule",
            hint="write `udp:PORT=LAYOUT`, e.g. `udp:9000=mymodule:MyHeader`",
        )
    layout = match["layout"]
    if layout.endswith(".toml"):
        return int(match["port"]), read_layout(layout)
    if ":" in layout:
        return int(match["port"]), layout_of(_header_class(layout))
    if layout in known_layouts():
        return int(match["port"]), read_known_layout(layout)
    name, _, rate = layout.partition("/")
    if name not in probe_layouts() or (rate and not _CLOCK_RATE.fullmatch(layout)):
        names = ", ".join([*probe_layouts(), *known_layouts()])
        raise UsageError(
            f"unknown layout `{layout}`",
            hint=f"known: {names}, or name `FILE.toml` or a class as `module:Class`",
        )
    return int(match["port"]), layout


def layout_of(header: type[Any]) -> OwnLayout:
    """Return the places of the datagram number and the send time in `header`, a scapy class.

    The number is the field with one of `NUMBER_NAMES`; the time a field such as `timestamp_us`, whose name
    ends with its unit. Other names are given by an attribute of the class:
    `tfrctrace_fields = {"number": "n", "time": ("stamp", "us")}`.
    """
    places = dict(_places(header))
    named = getattr(header, "tfrctrace_fields", {})
    number = named.get("number") or next((name for name in NUMBER_NAMES if name in places), None)
    if number is None:
        raise UsageError(
            f"`{header.__name__}` has no datagram number among its fields at fixed offsets",
            hint=f"call it {', '.join(NUMBER_NAMES[:3])}, or set `tfrctrace_fields`",
        )
    time = named.get("time") or _time_field(places)
    return _triple(header, places, number), (
        None if time is None else (*_triple(header, places, time[0]), _ns_of(time[1]))
    )


def _time_field(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the field named as a time, and its unit."""
    matches = ((name, _TIME_NAME.fullmatch(name)) for name in names)
    return next(((name, match["unit"]) for name, match in matches if match), None)


def _ns_of(unit: str) -> int:
    if unit not in NS_OF_UNIT:
        raise UsageError(f"`{unit}` is not a unit of time", hint=f"choose one of {', '.join(NS_OF_UNIT)}")
    return NS_OF_UNIT[unit]


def _triple(header: type[Any], places: dict[str, _Place], name: str) -> tuple[int, int, bool]:
    place = places.get(name)
    if place is None:
        raise UsageError(f"`{header.__name__}` has no whole-byte field `{name}` at a fixed offset")
    return place.offset, place.size, place.little_endian


def _places(header: type[Any]) -> Iterator[tuple[str, _Place]]:
    """Yield the fields up to the first of variable length, with their places."""
    offset = 0.0
    for field in header.fields_desc:
        # conditional fields wrap another one; texts, lists and packets in packets say how they end
        if any(hasattr(field, varying) for varying in ("fld", "remain", "length_from", "count_from")):
            return
        size = field.sz
        if offset.is_integer() and float(size).is_integer() and 1 <= size <= 8:
            yield field.name, _Place(int(offset), int(size), field.fmt.startswith("<"))
        offset += size


def _header_class(path: str) -> type[Any]:
    """Return the scapy packet class that `module:Class` names."""
    header: type[Any] = load_class(path)
    if not isinstance(getattr(header, "fields_desc", None), list):
        raise UsageError(f"`{path}` is not a scapy packet class: it has no `fields_desc`")
    return header
