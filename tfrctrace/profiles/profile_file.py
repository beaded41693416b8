"""Profiles in files of TOML, those that come with the program and a user's own."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.base.bitrates import parse_bitrate_bps
from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import listed, number, one_of, read_toml, refuse_unknown, table_of, text, whole
from tfrctrace.gate.requirement import parse_share
from tfrctrace.metrics.profiles.delay_grades import DelayGrades
from tfrctrace.metrics.profiles.outcome import Delay, Requirement
from tfrctrace.metrics.profiles.score import Profile
from tfrctrace.metrics.profiles.voice import Codec, Voice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfrctrace.base.toml import Table
    from tfrctrace.metrics.profiles.score import Rules

_FOLDER: Final = Path(__file__).parent
_MOST_BYTES: Final = 100_000
_NS_PER_MS: Final = 1e6
_SOURCE: Final = ("title", "source", "version")
"""Without them scores cannot be compared."""


def known_profiles() -> list[str]:
    """Return the names of the profiles that come with the program."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_profiles(names: Sequence[str]) -> list[Profile]:
    """Return the profiles of these names or files. Raises `UsageError` for invalid ones and equal names."""
    profiles = [_read(name) for name in names]
    for one in profiles:
        if sum(other.name == one.name for other in profiles) > 1:
            raise UsageError(f"two profiles have the name `{one.name}`", hint="rename one of the files")
    return profiles


def _read(name: str) -> Profile:
    is_known = name in known_profiles()
    path = _FOLDER / f"{name}.toml" if is_known else Path(name)
    if not is_known and path.suffix != ".toml":
        raise UsageError(
            f"no profile is named `{name}`", hint=f"name a file of TOML, or {', '.join(known_profiles())}"
        )
    try:
        return _profile(path.stem, read_toml(str(path), _MOST_BYTES))
    except UsageError as error:
        raise UsageError(f"profile `{name}`: {error}", hint=error.hint) from error


def _profile(name: str, table: Table) -> Profile:
    kind = one_of(table.get("kind"), _KINDS, "kind")
    keys, rules = _KINDS[kind]
    refuse_unknown(table, {"kind", "url", *_SOURCE, *keys}, "the file")
    title, source, version = (text(table.get(key), key) for key in _SOURCE)
    return Profile(name, title, source, version, text(table.get("url", "-"), "url"), rules(table))


def _requirement(table: Table) -> Requirement:
    delays = tuple(map(_delay, _tables(table, "delay")))
    if len({delay.percentile for delay in delays}) < len(delays):
        raise UsageError("`[[delay]]` has a percentile twice")
    loss: tuple[float | None, float | None] = (None, None)
    if "loss" in table:
        own = table_of(table["loss"], "`loss`")
        refuse_unknown(own, {"optimal", "unacceptable"}, "`loss`")
        optimal, unacceptable = (
            parse_share(text(own.get(key), f"loss.{key}")) for key in ("optimal", "unacceptable")
        )
        _check_worse(optimal, unacceptable, "loss")
        loss = (optimal, unacceptable)
    rate = parse_bitrate_bps(text(table["throughput"], "throughput")) if "throughput" in table else None
    least = whole(table.get("least", 1), "least")
    return Requirement(delays, max(least, 1), *loss, rate)


def _delay(table: Table) -> Delay:
    refuse_unknown(table, {"percentile", "optimal", "unacceptable"}, "`[[delay]]`")
    percentile = number(table.get("percentile"), "percentile")
    if percentile > 100:
        raise UsageError(f"`percentile` must be at most 100, not `{percentile:g}`")
    optimal, unacceptable = (_ms(table, key) for key in ("optimal", "unacceptable"))
    _check_worse(optimal, unacceptable, "delay")
    return Delay(percentile, optimal, unacceptable)


def _grades(table: Table) -> DelayGrades:
    below = tuple(
        (text(one.get("name"), "name"), _ms(one, "below"))
        for one in _tables(table, "grade", {"name", "below"})
    )
    if any(limit >= after for (_, limit), (_, after) in pairwise(below)):
        raise UsageError("`[[grade]]` must be in the order of `below`, the best first")
    return DelayGrades(below, text(table.get("rest"), "rest"))


def _voice(table: Table) -> Voice:
    codecs = tuple(map(_codec, _tables(table, "codec")))
    bands = tuple(
        (text(one.get("name"), "name"), number(one.get("rating"), "rating"))
        for one in _tables(table, "band", {"name", "rating"})
    )
    if any(least <= after for (_, least), (_, after) in pairwise(bands)):
        raise UsageError("`[[band]]` must be in the order of `rating`, the best first")
    return Voice(codecs, _ms(table, "buffer"), bands, text(table.get("rest"), "rest"))


def _codec(table: Table) -> Codec:
    refuse_unknown(table, {"payload_type", "name", "ie", "bpl", "delay"}, "`[[codec]]`")
    impairment, robustness = number(table.get("ie"), "ie"), number(table.get("bpl"), "bpl")
    if not 0 <= impairment < 95 or robustness < 1:
        raise UsageError("`ie` must be below 95, and `bpl` at least 1")
    return Codec(
        whole(table.get("payload_type"), "payload_type"),
        text(table.get("name"), "name"),
        impairment,
        robustness,
        _ms(table, "delay"),
    )


def _tables(table: Table, name: str, keys: set[str] | None = None) -> Iterator[Table]:
    """Give the tables `[[name]]`, of which there must be one."""
    tables = [table_of(one, f"`[[{name}]]`") for one in listed(table.get(name, []), name)]
    if not tables:
        raise UsageError(f"`[[{name}]]` is missing")
    for one in tables:
        if keys is not None:
            refuse_unknown(one, keys, f"`[[{name}]]`")
        yield one


def _ms(table: Table, key: str) -> float:
    return parse_duration_ns(text(table.get(key), key), key) / _NS_PER_MS


def _check_worse(optimal: float, unacceptable: float, name: str) -> None:
    if optimal >= unacceptable:
        raise UsageError(f"`{name}`: `unacceptable` must be more than `optimal`")


_KINDS: Final[dict[str, tuple[set[str], Callable[[Table], Rules]]]] = {
    "quality of outcome": ({"delay", "loss", "throughput", "least"}, _requirement),
    "delay under load": ({"grade", "rest"}, _grades),
    "voice": ({"codec", "band", "buffer", "rest"}, _voice),
}
