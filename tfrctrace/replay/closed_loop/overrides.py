"""A user's values for the bottleneck, in place of inferred or unknown ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from tfrctrace.base.bitrates import parse_bitrate_bps
from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.replay.closed_loop.disciplines import DISCIPLINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfrctrace.replay.closed_loop.path import DisciplineName


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
