"""TFRC and its variants: the core's state machines, run over a whole recording or step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.replay.column_arrays import floats, wholes
from tfrctrace.replay.controller import Allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tfrctrace.parsers._native import ChosenSender, DecisionTuple
    from tfrctrace.replay.controller import Report, Start
    from tfrctrace.replay.recordings.recording import Recording

Profile = Literal["rfc5348", "rfc3448", "ns2", "linux"]

VARIANTS: Final = ("tfrc", "tfrc-sp", "ccid4", "tfrc-veno")
"""TFRC variants of the RFC profiles; ns-2's agent has plain TFRC only."""

VENO: Final = "tfrc-veno"
VENO_PARAMETER: Final = "gamma"
"""A parameter of `VENO` only, as TFRC's gamma is fixed."""

_UNKNOWN: Final = 2
"""Value of a flag that is unknown."""


@dataclass(frozen=True, slots=True)
class TfrcVariant:
    """A sender: variant, profile, and parameters that differ from their defaults."""

    variant: str = "tfrc"
    profile: Profile = "rfc5348"
    parameters: tuple[tuple[str, float | str], ...] = ()
    """Names and values; of repeated names the last one counts."""

    @property
    def receiver_parameters(self) -> dict[str, float | str]:
        """The parameters that belong to its receiver."""
        from tfrctrace.parsers._native import replay_receiver_parameters

        of_receiver = dict(replay_receiver_parameters())[self.profile]
        return {name: value for name, value in self.parameters if name in of_receiver}

    def for_core(self, segment_bytes: float, handshake_rtt_s: float | None) -> ChosenSender:
        """Return it for packets of `segment_bytes` payload."""
        return {
            "profile": self.profile,
            "variant": self.variant,
            "segment_bytes": segment_bytes,
            "handshake_rtt_s": handshake_rtt_s,
            "parameters": list(self.parameters),
        }


def tfrc_variant(
    variant: str,
    profile: Profile,
    parameters: Iterable[tuple[str, float]],
    own: Mapping[str, float | str] | None = None,
) -> TfrcVariant:
    """Return a sender with its `own` parameters and those of `parameters` that its profile has.

    Raises `UsageError` for bad values and for unknown names in `own`.
    """
    from tfrctrace.parsers._native import TfrcSender, replay_profiles

    if profile == "ns2" and variant != "tfrc":
        raise UsageError(
            f"the profile `ns2` has `tfrc` only, and `{variant}` needs that of an RFC",
            hint="leave out `--profile`, or choose `rfc3448`",
        )
    known = dict(replay_profiles())[profile]
    taken = [name for name in known if name != VENO_PARAMETER or variant == VENO]
    for name in own or ():
        if name not in taken:
            raise UsageError(
                f"`{variant}` of the profile `{profile}` has no parameter `{name}`",
                hint=f"known: {', '.join(taken)}",
            )
    common = tuple(parameter for parameter in parameters if parameter[0] in taken)
    chosen = TfrcVariant(variant, profile, (*common, *(own or {}).items()))
    try:
        TfrcSender(chosen.for_core(1460.0, None))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return chosen


def parameter_names() -> list[str]:
    """Return the parameters of all profiles."""
    from tfrctrace.parsers._native import replay_profiles

    return list(dict.fromkeys(name for _, names in replay_profiles() for name in names))


def run(chosen: TfrcVariant, recording: Recording) -> pl.DataFrame:
    """Return the steps of the sender on a recording: the columns of `REPLAY` of one algorithm."""
    import numpy as np
    import polars as pl

    from tfrctrace.parsers._native import replay

    reports = recording.reports
    start = recording.start
    limited = np.nan_to_num(floats(reports["is_data_limited"]), nan=_UNKNOWN).astype(np.uint8)
    return pl.DataFrame(
        replay(
            chosen.for_core(start.segment_bytes, start.handshake_rtt_s),
            {
                "start_ns": recording.start_ns,
                "end_ns": recording.end_ns,
                "time_ns": wholes(reports["time_ns"]),
                "rtt_s": floats(reports["rtt_ms"], 1e3),
                "p": floats(reports["p"]),
                "x_recv": floats(reports["x_recv_bps"], 8),
                "is_data_limited": limited,
                "lost_packets": wholes(reports["lost_packets"].cast(pl.UInt64)),
                "sent_ns": wholes(recording.sends["time_ns"]),
                "sent_bytes": wholes(recording.sends["payload_bytes"]),
            },
        )
    )


class Tfrc:
    """A sender as a `Controller`, run step by step for closed loops."""

    def __init__(self, start: Start, chosen: TfrcVariant | None = None) -> None:
        """Begin at time 0; without `chosen` TFRC as of RFC 5348."""
        from tfrctrace.parsers._native import TfrcSender

        self.chosen = chosen or TfrcVariant()
        self._sender = TfrcSender(self.chosen.for_core(start.segment_bytes, start.handshake_rtt_s))

    def on_sent(self, time_s: float, payload_bytes: int) -> None:
        """Record a sent packet, which matters to the ns-2 profile only."""
        self._sender.on_sent(time_s, payload_bytes)

    def on_feedback(self, report: Report) -> Allowed:
        """Process a report (RFC 5348 section 4.3)."""
        return _allowed(
            self._sender.on_report(
                report.time_s,
                report.rtt_s,
                report.p,
                report.x_recv,
                report.is_data_limited,
                report.lost_packets,
            )
        )

    def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed:
        """Process the expiry of the nofeedback timer at `time_s` (section 4.4)."""
        del time_s  # the sender set it
        return _allowed(self._sender.on_no_feedback(is_idle))


def _allowed(decision: DecisionTuple) -> Allowed:
    x, timer_s, mode, reason, r_s, x_calc, x_limit = decision
    return Allowed(x=x, timer_s=timer_s, mode=mode, reason=reason, r_s=r_s, x_calc=x_calc, x_limit=x_limit)
