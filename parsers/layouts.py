"""Layouts of TFRC over UDP: TOML files with the header fields of data and reports.

The file is read and checked here; the core gets plain numbers and parses the datagrams. Layouts of public
programs are in `known_layouts` and can be named without their suffix.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import Table, number, one_of, read_toml, refuse_unknown, table_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.parsers._native import FieldPlace, MarkPlace, QuantityPlace, TfrcLayout, TimePlace

KNOWN: Final = Path(__file__).with_name("known_layouts")
"""Directory of the layouts of public programs."""

MOST_BYTES: Final = 64 << 10
"""Maximum size of a layout file."""

PAYLOAD_BYTES: Final = 32
"""Fields lie in the first bytes of a payload, which are all that the core keeps of it."""

SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""Units of time in seconds."""

BYTES_PER_SECOND: Final = {
    "B/s": 1.0,
    "kB/s": 1e3,
    "MB/s": 1e6,
    "bit/s": 0.125,
    "kbit/s": 125.0,
    "Mbit/s": 125e3,
}
"""Units of rates in bytes per second."""

FULL: Final = "full"
"""Unit of a loss event rate whose largest value means 1."""

NS_PER_S: Final = 1_000_000_000
_PLACE: Final = {"offset", "width", "order"}
_ORDERS: Final = ("big", "little")
_WAYS: Final = ("to_port", "from_port")
_DATA: Final = {"direction", "when", "sequence", "send_time", "rtt"}
_FEEDBACK: Final = {
    "direction",
    "when",
    "time_echo",
    "elapsed",
    "receive_rate",
    "loss_event_rate",
    "sequence",
}


def known_layouts() -> list[str]:
    """Return the names of the layouts of public programs."""
    return sorted(path.stem for path in KNOWN.glob("*.toml"))


def read_known_layout(name: str) -> TfrcLayout:
    """Return a layout of `known_layouts`."""
    return read_layout(str(KNOWN / f"{name}.toml"))


def read_layout(path: str) -> TfrcLayout:
    """Return the layout in the file `path`; a `UsageError` names the invalid key."""
    try:
        return layout_of_table(read_toml(path, MOST_BYTES))
    except UsageError as error:
        raise UsageError(f"layout `{path}`: {error}", hint=error.hint) from error


def layout_of_table(table: Table) -> TfrcLayout:
    """Return the layout in the content of a file."""
    refuse_unknown(table, {"order", "data", "feedback"}, "the file")
    order = one_of(table.get("order", "big"), _ORDERS, "order")
    if "data" not in table:
        raise UsageError("`[data]` is missing", hint="it describes the header of data packets")
    data = _Kind("data", table["data"], _DATA, order)
    feedback = _Kind("feedback", table["feedback"], _FEEDBACK, order) if "feedback" in table else None
    layout: TfrcLayout = {
        "data": {
            "to_port": _way(data, feedback),
            "mark": data.mark,
            "sequence": data.needed("sequence"),
            "send_time": data.time("send_time"),
            "rtt": data.quantity("rtt", SECONDS),
        },
        "feedback": None,
    }
    if feedback is not None:
        layout["feedback"] = {
            "to_port": _way(feedback, data),
            "mark": feedback.mark,
            "time_echo": feedback.place("time_echo"),
            "elapsed": feedback.quantity("elapsed", SECONDS),
            "receive_rate": feedback.quantity("receive_rate", BYTES_PER_SECOND),
            "loss_event_rate": feedback.loss_event_rate(),
            "sequence": feedback.place("sequence"),
        }
    _check_together(layout)
    return layout


class _Kind:
    """One kind of datagram: the tables of its fields, and the bytes in use."""

    def __init__(self, name: str, given: object, known: set[str], order: str) -> None:
        self.name = name
        self._order = order
        self._table = table_of(given, f"`{name}`")
        refuse_unknown(self._table, known, f"`{name}`")
        self._taken: dict[str, range] = {}

    @property
    def to_port(self) -> bool | None:
        """Whether its datagrams go to the port; None if not given."""
        if "direction" not in self._table:
            return None
        return one_of(self._table["direction"], _WAYS, f"{self.name}.direction") == "to_port"

    @property
    def mark(self) -> MarkPlace | None:
        """Bits by which it is known: field, mask, value."""
        if "when" not in self._table:
            return None
        called = f"{self.name}.when"
        table = self._field("when", {"is", "mask"})
        place = self._place(table, called)
        full = (1 << 8 * place[1]) - 1
        if "is" not in table:
            raise UsageError(
                f"`{called}.is` is missing", hint="give the value that the bytes of `when` must have"
            )
        value = _bits(table["is"], full, f"{called}.is")
        mask = _bits(table.get("mask", full), full, f"{called}.mask")
        if mask == 0 or value & ~mask:
            raise UsageError(f"`{called}.is` can never match: it has bits that `{called}.mask` lacks")
        return place, mask, value

    def needed(self, name: str) -> FieldPlace:
        """Return the place of a required field."""
        place = self.place(name)
        if place is None:
            raise UsageError(
                f"`{self.name}.{name}` is missing", hint=f"write `{name} = {{ offset = 0, width = 4 }}`"
            )
        return place

    def place(self, name: str) -> FieldPlace | None:
        """Return the place of a field without a unit."""
        if name not in self._table:
            return None
        return self._claimed(name, self._field(name, set()))

    def time(self, name: str) -> TimePlace | None:
        """Return the place of a time in ticks, and the ns per tick."""
        if name not in self._table:
            return None
        table = self._field(name, {"unit"})
        called = f"{self.name}.{name}.unit"
        ns = _unit(table, SECONDS, called) * NS_PER_S
        if not (round(ns) and abs(ns - round(ns)) < 1e-6 * ns and ns < 1 << 32):
            raise UsageError(f"`{called}` must be a whole number of nanoseconds up to 4 s, not {ns:g} ns")
        return self._claimed(name, table), round(ns)

    def quantity(self, name: str, units: Mapping[str, float]) -> QuantityPlace | None:
        """Return the place of a quantity, its encoding, and its unit for the core."""
        if name not in self._table:
            return None
        table = self._field(name, {"form", "unit"})
        form = one_of(table.get("form", "integer"), ("integer", "float"), f"{self.name}.{name}.form")
        place = self._claimed(name, table)
        self._check_float(name, place, form)
        return place, form, _unit(table, units, f"{self.name}.{name}.unit")

    def loss_event_rate(self) -> QuantityPlace | None:
        """Return the place of p, which may be inverted and needs a unit only as an integer."""
        name = "loss_event_rate"
        if name not in self._table:
            return None
        table = self._field(name, {"form", "unit"})
        called = f"{self.name}.{name}"
        form = one_of(table.get("form", "integer"), ("integer", "float", "inverse"), f"{called}.form")
        place = self._claimed(name, table)
        self._check_float(name, place, form)
        if form != "integer" and "unit" not in table:
            return place, form, 1.0
        largest = (1 << 8 * place[1]) - 1
        return place, form, _unit(table, {FULL: 1 / largest}, f"{called}.unit")

    def _check_float(self, name: str, place: FieldPlace, form: str) -> None:
        if form == "float" and place[1] not in {4, 8}:
            raise UsageError(f"`{self.name}.{name}.width` is {place[1]}, but a float has 4 or 8 bytes")

    def _field(self, name: str, further: set[str]) -> Table:
        called = f"`{self.name}.{name}`"
        table = table_of(self._table[name], called)
        refuse_unknown(table, _PLACE | further, called)
        return table

    def _claimed(self, name: str, table: Table) -> FieldPlace:
        """Return the place of a field, which must not overlap another."""
        place = self._place(table, f"{self.name}.{name}")
        bytes_ = range(place[0], place[0] + place[1])
        for other, taken in self._taken.items():
            if bytes_.start < taken.stop and taken.start < bytes_.stop:
                raise UsageError(f"`{self.name}.{name}` and `{self.name}.{other}` share bytes")
        self._taken[name] = bytes_
        return place

    def _place(self, table: Table, called: str) -> FieldPlace:
        for key in ("offset", "width"):
            if key not in table:
                raise UsageError(f"`{called}.{key}` is missing")
        offset, width = (whole(table[key], f"{called}.{key}") for key in ("offset", "width"))
        if not 1 <= width <= 8:
            raise UsageError(f"`{called}.width` must be 1 to 8 bytes, not {width}")
        if offset + width > PAYLOAD_BYTES:
            raise UsageError(
                f"`{called}` ends at byte {offset + width}, but only the first {PAYLOAD_BYTES} are read"
            )
        order = one_of(table.get("order", self._order), _ORDERS, f"{called}.order")
        return offset, width, order == "little"


def _way(kind: _Kind, other: _Kind | None) -> bool | None:
    """Return whether a kind goes to the port; if not given, the opposite of the other kind."""
    if kind.to_port is None and other is not None and other.to_port is not None:
        return not other.to_port
    return kind.to_port


def _bits(value: object, full: int, called: str) -> int:
    """Return a number of at most as many bits; floats are not exact enough for it."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= full:
        raise UsageError(f"`{called}` must be a whole number from 0 to {full}, not `{value}`")
    return value


def _unit(table: Table, units: Mapping[str, float], called: str) -> float:
    """Return a unit by its name, or as a multiple of the unit that is 1."""
    known = ", ".join(units)
    if "unit" not in table:
        raise UsageError(f"`{called}` is missing", hint=f"give a number or one of {known}")
    given = table["unit"]
    if isinstance(given, str):
        return units[one_of(given, units, called)]
    unit = number(given, called)
    if unit <= 0:
        raise UsageError(f"`{called}` is 0", hint=f"give a number above 0 or one of {known}")
    return unit


def _check_together(layout: TfrcLayout) -> None:
    """Raise for contradictions between the two kinds."""
    data, feedback = layout["data"], layout["feedback"]
    if feedback is None:
        return
    if (data["to_port"], data["mark"]) == (feedback["to_port"], feedback["mark"]) or (
        data["to_port"] is None and data["mark"] is None
    ):
        raise UsageError(
            "data and feedback cannot be distinguished",
            hint='write `direction = "to_port"` in `[data]`, or `when` for a byte that differs',
        )
    if feedback["time_echo"] is not None and data["send_time"] is None:
        raise UsageError("`feedback.time_echo` needs a `data.send_time` to echo")
    if feedback["receive_rate"] is None and feedback["loss_event_rate"] is None:
        raise UsageError("`feedback` has neither `receive_rate` nor `loss_event_rate`")
    if feedback["sequence"] is not None and feedback["sequence"][1] != data["sequence"][1]:
        raise UsageError("`feedback.sequence` must be as wide as `data.sequence`")
