"""A user's values for the bottleneck, in place of inferred or unknown ones, and sweeps over such values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from tfrctrace.base.bitrates import parse_bitrate_bps
from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.results.closed_loop import SWEPT
from tfrctrace.replay.closed_loop.disciplines import DISCIPLINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfrctrace.replay.closed_loop.path import DisciplineName

MOST_SWEPT: Final = 100
"""Values of a sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BottleneckOverrides:
    """The bottleneck in the units of `Bottleneck`; None keeps the inferred value."""

    capacity_bps: float | None = None
    base_rtt_ms: float | None = None
    buffer_bytes: float | None = None
    random_loss: float | None = None
    receive_window_bytes: float | None = None
    others: float | Literal["react"] = 1.0
    """Share of the other flows' rate that is kept, 0 for none; `react`: those that are named react."""
    discipline: DisciplineName = "tail_drop"
    has_ecn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Values of one property of the bottleneck, each of which is modelled."""

    name: str
    """As in `parse_overrides`."""
    values: tuple[float, ...]
    are_multiples: bool
    """Of what the trace shows, in place of the unit of `Bottleneck`."""

    @property
    def field(self) -> str:
        """Return the name of the property in `Bottleneck` and `BottleneckOverrides`."""
        return _FIELDS[self.name][0]


def parse_sweep(text: str) -> Sweep:
    """Parse texts such as `buffer=10000,20000,40000` and `capacity=0.5x,1x,2x`."""
    name, _, listed = text.partition("=")
    if name not in SWEPT:
        raise UsageError(f"no sweep over `{name}`", hint=f"known: {', '.join(SWEPT)}")
    texts = [one.strip() for one in listed.split(",")]
    are_multiples = all(one.endswith("x") for one in texts)
    if not are_multiples and any(one.endswith("x") for one in texts):
        raise UsageError(
            f"`{text}` has multiples beside values", hint="write all with x or none, e.g. `buffer=0.5x,1x,2x`"
        )
    parse = _multiple if are_multiples else _FIELDS[name][1]
    values = tuple(sorted({parse(one.removesuffix("x")) for one in texts}))
    if not 2 <= len(values) <= MOST_SWEPT:
        raise UsageError(
            f"a sweep has 2 to {MOST_SWEPT} different values, and `{text}` has {len(values)}",
            hint="`--bottleneck` gives a single one",
        )
    return Sweep(name=name, values=values, are_multiples=are_multiples)


def parse_overrides(texts: Iterable[str]) -> BottleneckOverrides:
    """Parse texts such as `capacity=3M`, `base_rtt=40ms`, `buffer=20000` and `loss=0.01`."""
    given = BottleneckOverrides()
    for text in texts:
        name, _, value = text.partition("=")
        if name not in _FIELDS:
            raise UsageError(f"a bottleneck has no `{name}`", hint=f"known: {', '.join(_FIELDS)}")
        field, parse = _FIELDS[name]
        given = replace(given, **{field: parse(value)})
    return given


def _capacity_bps(text: str) -> float:
    rate_bps = parse_bitrate_bps(text)
    if rate_bps <= 0:
        raise UsageError("the capacity of a bottleneck must be above 0", hint="for example `capacity=3M`")
    return rate_bps


def _discipline(text: str) -> DisciplineName:
    if text not in DISCIPLINES:
        raise UsageError(f"`{text}` is no queue", hint=f"known: {', '.join(DISCIPLINES)}")
    return cast("DisciplineName", text)


def _multiple(text: str) -> float:
    multiple = _number(text, "a multiple", 1e6)
    if multiple == 0:
        raise UsageError("a multiple must be above 0", hint="for example `buffer=0.5x,1x,2x`")
    return multiple


def _yes_or_no(text: str) -> bool:
    return bool(_number(text, "0 or 1", 1.0))


def _ms(text: str) -> float:
    return parse_duration_ns(text) / 1e6


def _bytes(text: str) -> float:
    return _number(text, "a number of bytes", 1e15)


def _share(text: str) -> float:
    return _number(text, "a share", 1.0)


def _others(text: str) -> float | str:
    return text if text == "react" else _share(text)


def _number(text: str, what: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise UsageError(f"`{text}` is not {what}", hint=f"write a number from 0 to {most:g}")
    return value


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "capacity": ("capacity_bps", _capacity_bps),
    "base_rtt": ("base_rtt_ms", _ms),
    "buffer": ("buffer_bytes", _bytes),
    "loss": ("random_loss", _share),
    "window": ("receive_window_bytes", _bytes),
    "others": ("others", _others),
    "queue": ("discipline", _discipline),
    "ecn": ("has_ecn", _yes_or_no),
}
