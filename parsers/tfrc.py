"""Parameters of TFRC endpoints: those of ns-2's agents, and the profile of captured flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

PROFILE: Final = "profile"
"""The one parameter whose value is a name."""

RTT: Final = "rtt"
"""The one parameter whose value is a duration."""


class TfrcParameters(NamedTuple):
    """Facts about TFRC endpoints that a trace does not show."""

    profile: str | None = None
    """TFRC variant of captured flows (one of `_native.tfrc_profiles`)."""
    agents: tuple[tuple[str, float], ...] = ()
    """Parameters of ns-2's agents that differ from their defaults."""
    rtt_s: float | None = None
    """Round-trip time in seconds of flows with numbered packets but without an RTT."""


NO_PARAMETERS: Final = TfrcParameters()


def parse_parameter(text: str) -> tuple[str, float | str]:
    """Return name and value of `NAME=VALUE`."""
    name, _, value = text.partition("=")
    if name in {PROFILE, RTT}:
        return name, value
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(
            f"`{text}` is not a TFRC parameter", hint="write a name and a number, e.g. `df=0.9`"
        ) from None


def check_parameters(parameters: Iterable[tuple[str, float | str]]) -> TfrcParameters:
    """Return the parameters; raises for unknown names and invalid values."""
    profile = rtt_s = None
    agents = []
    for name, value in parameters:
        if name == PROFILE:
            profile = _checked_profile(value)
        elif name == RTT:
            rtt_s = parse_duration_ns(str(value)) / 1e9
        else:
            agents.append(_checked_parameter(name, value))
    return TfrcParameters(profile, tuple(agents), rtt_s)


def _checked_profile(value: float | str) -> str:
    from tfrctrace.parsers._native import tfrc_profiles

    names = tfrc_profiles()
    if not isinstance(value, str) or value not in names:
        raise UsageError(f"unknown TFRC profile `{value}`", hint=f"known: {', '.join(names)}")
    return value


def _checked_parameter(name: str, value: float | str) -> tuple[str, float]:
    from tfrctrace.parsers._native import tfrc_parameters, tfrc_takes

    if name not in tfrc_parameters():
        raise UsageError(
            f"ns-2's TFRC has no parameter `{name}`",
            hint=f"known: {', '.join(tfrc_parameters())}; for captures `{PROFILE}` and `{RTT}`",
        )
    if isinstance(value, str) or not tfrc_takes(name, value):
        raise UsageError(f"parameter `{name}` of ns-2's TFRC cannot be {value}")
    return name, value
