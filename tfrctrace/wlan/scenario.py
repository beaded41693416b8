"""A scenario file (TOML, see docs/capacity.md): stations of an 802.11 network and their rates over time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args

from tfrctrace.base.bitrates import parse_bitrate_bps
from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.base.toml import flag, listed, number, read_toml, refuse_unknown, table_of, whole
from tfrctrace.wlan.cell import CellSettings, Preset, make_cell
from tfrctrace.wlan.contention import JamMode
from tfrctrace.wlan.phy import Band, Standard, Width
from tfrctrace.wlan.population import MAX_STATIONS, AccessPoint, Frames, Population, Sparing, fastest
from tfrctrace.wlan.rates import Preamble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfrctrace.base.toml import Table
    from tfrctrace.wlan.cell import Cell
    from tfrctrace.wlan.rates import Rate

Value = TypeVar("Value")
MAX_FILE_BYTES: Final = 1_000_000
MAX_STEPS: Final = 10_000
"""Times at which anything changes."""

AWAY: Final = "away"
"""In place of a rate: the station has left."""

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "preset": get_args(Preset),
    "phy": get_args(Standard),
    "preamble": get_args(Preamble),
    "band": get_args(Band),
    "width": get_args(Width),
    "jam": get_args(JamMode),
}
_FLAGS: Final = {"short_gi", "jam_backoff"}
_COUNTS: Final = {"payload_bytes", "overhead_bits", "cw_min"}


@dataclass(frozen=True, slots=True)
class Steps(Generic[Value]):
    """A step function of time: `values[i]` from `times_s[i]` on, None before the first."""

    times_s: tuple[float, ...]
    values: tuple[Value | None, ...]

    def at(self, time_s: float) -> Value | None:
        """Return the value at a time in s."""
        value = None
        for since_s, following in zip(self.times_s, self.values, strict=True):
            if since_s > time_s:
                break
            value = following
        return value


@dataclass(frozen=True, slots=True)
class _Station:
    rate: Steps[Rate]
    load_bps: Steps[float] | None
    count: int


@dataclass(frozen=True, slots=True)
class _AccessPoint:
    rate: Steps[Rate] | None
    """None is the rate of the fastest station."""
    is_saturated: bool
    downloads: int
    frames: tuple[Frames, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """The population from `from_s` to `until_s` in s; None for no end."""

    from_s: float
    until_s: float | None
    population: Population


@dataclass(frozen=True, slots=True)
class Scenario:
    """A network and its populations, in order of time."""

    cell: Cell
    steps: tuple[Step, ...]


def read_scenario(path: str, settings: CellSettings | None = None) -> Scenario:
    """Return the scenario in the file `path`; `settings` override those of the file.

    Raises `InputError` if the file cannot be read or is invalid.
    """
    try:
        content = read_toml(path, MAX_FILE_BYTES)
        own = _settings(content)
        cell = make_cell(settings.or_else(own) if settings else own)
        return Scenario(cell, tuple(_steps(cell, content)))
    except UsageError as error:
        raise InputError([input_problem(path, "scenario", str(error), hint=error.hint)]) from error


def _settings(content: Table) -> CellSettings:
    names = {field.name for field in fields(CellSettings)}
    refuse_unknown(content, {*names, "station", "access_point"}, "the scenario")
    return CellSettings(**{name: _setting(name, content[name]) for name in names & content.keys()})


def _setting(name: str, value: object) -> Any:  # noqa: ANN401  each field has a type of its own
    if name in _FLAGS:
        return flag(value, name)
    if name in _COUNTS:
        return whole(value, name)
    if name == "basic_rates":
        return tuple(_rate_name(one, name) for one in listed(value, name))
    text = _rate_name(value, name)
    if name in _CHOICES and text not in _CHOICES[name]:
        raise UsageError(f"`{name}` cannot be `{text}`", hint=f"choose one of {', '.join(_CHOICES[name])}")
    return text


def _steps(cell: Cell, content: Table) -> Iterator[Step]:
    """Yield the populations of the scenario, one per interval without changes."""
    tables = listed(content.get("station", []), "station")
    stations = [_station(cell, table, f"station {place}") for place, table in enumerate(tables, start=1)]
    if sum(station.count for station in stations) > MAX_STATIONS:
        raise UsageError(f"802.11 allows at most {MAX_STATIONS} stations")
    access_point = _access_point(cell, content.get("access_point", {}))
    changing: list[Steps[Any] | None] = [part for one in stations for part in (one.rate, one.load_bps)]
    changing.append(access_point.rate if access_point else None)
    times_s = sorted({time_s for part in changing if part for time_s in part.times_s} or {0.0})
    if len(times_s) > MAX_STEPS:
        raise UsageError(f"a scenario can change at most {MAX_STEPS} times")
    for from_s, until_s in pairwise([*times_s, None]):
        assert from_s is not None
        yield Step(from_s, until_s, _population(stations, access_point, from_s))


def _population(stations: list[_Station], access_point: _AccessPoint | None, time_s: float) -> Population:
    greedy: list[Rate] = []
    sparing: list[Sparing] = []
    for station in stations:
        rate = station.rate.at(time_s)
        if rate is None:
            continue
        load_bps = station.load_bps.at(time_s) if station.load_bps else None
        if load_bps is None:
            greedy += [rate] * station.count
        else:
            sparing += [Sparing(rate, load_bps)] * station.count
    population = Population(greedy=tuple(greedy), sparing=tuple(sparing))
    if not access_point:
        return population
    rate = access_point.rate.at(time_s) if access_point.rate else fastest(population.rates)
    if rate is None:
        return population
    return Population(
        greedy=population.greedy,
        sparing=population.sparing,
        access_point=AccessPoint(
            rate=rate,
            is_saturated=access_point.is_saturated,
            downloads=access_point.downloads,
            frames=access_point.frames,
        ),
    )


def _station(cell: Cell, value: object, place: str) -> _Station:
    table = table_of(value, place)
    refuse_unknown(table, {"name", "rate", "load_bps", "count"}, place)
    if "rate" not in table:
        raise UsageError(f"{place} has no rate", hint="give `rate = 11`, or `rate = [[0, 5.5], [80, 11]]`")
    count = whole(table.get("count", 1), f"count of {place}")
    if not 1 <= count <= MAX_STATIONS:
        raise UsageError(f"{place} has an invalid count of {count}")
    load_bps = table.get("load_bps")
    return _Station(
        rate=_step_function(table["rate"], f"rate of {place}", lambda rate: _rate(cell, rate, place)),
        load_bps=None
        if load_bps is None
        else _step_function(load_bps, f"load of {place}", lambda load: _load_bps(load, place)),
        count=count,
    )


def _access_point(cell: Cell, value: object) -> _AccessPoint | None:
    place = "the access point"
    if value is False:
        return None
    table = table_of(value, place)
    refuse_unknown(table, {"rate", "saturated", "downloads", "frames"}, place)
    rate = table.get("rate")
    return _AccessPoint(
        rate=None
        if rate is None
        else _step_function(rate, f"rate of {place}", lambda one: _rate(cell, one, place)),
        is_saturated=flag(table.get("saturated", False), "saturated"),
        downloads=whole(table.get("downloads", 0), "downloads"),
        frames=tuple(_frames(cell, one) for one in listed(table.get("frames", []), "frames")),
    )


def _frames(cell: Cell, value: object) -> Frames:
    place = "frames of the access point"
    table = table_of(value, place)
    refuse_unknown(table, {"rate", "frames_per_s", "bytes"}, place)
    for name in ("rate", "frames_per_s", "bytes"):
        if name not in table:
            raise UsageError(f"{place} have no `{name}`")
    rate = _rate(cell, table["rate"], place)
    if rate is None:
        raise UsageError(f"{place} have no rate `{AWAY}`")
    return Frames(rate, number(table["frames_per_s"], "frames_per_s"), 8 * whole(table["bytes"], "bytes"))


def _step_function(value: object, place: str, parse: Callable[[object], Value | None]) -> Steps[Value]:
    """Return a constant from 0 s on, or the steps of a list of pairs of time and value."""
    if not isinstance(value, list):
        return Steps((0.0,), (parse(value),))
    pairs = [listed(pair, place) for pair in value]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise UsageError(
            f"{place} is not a list of pairs of time and value", hint="write `[[0, 5.5], [80, 11]]`"
        )
    times_s = tuple(number(time_s, f"time in {place}") for time_s, _ in pairs)
    if any(later <= earlier for earlier, later in pairwise(times_s)):
        raise UsageError(f"{place} goes back in time", hint="each pair must be later than the previous one")
    return Steps(times_s, tuple(parse(one) for _, one in pairs))


def _rate(cell: Cell, value: object, place: str) -> Rate | None:
    name = _rate_name(value, f"rate of {place}")
    return None if name == AWAY else cell.phy.rate(name)


def _load_bps(value: object, place: str) -> float:
    return parse_bitrate_bps(value) if isinstance(value, str) else number(value, f"load of {place}")


def _rate_name(value: object, place: str) -> str:
    """Return a word, or a number as a user would write it as a word."""
    if isinstance(value, str):
        return value
    return f"{number(value, place):g}"
