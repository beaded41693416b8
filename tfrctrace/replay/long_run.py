"""Long-run rates of algorithms by published formulas, at the loss event rate and RTT of a flow.

An open loop overestimates algorithms that back off less than the recorded sender, because the losses are
those that this sender caused. The formulas (`tfrctrace.replay.tcp.steady`) give the expected rate at this p
and R; only those of Reno's family include timeouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tfrctrace.replay.tcp import steady
from tfrctrace.replay.tcp.hybla import REFERENCE_RTT_S
from tfrctrace.replay.tcp.vegas import THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Settings = Mapping[str, float | str]
    Range = tuple[float, float]


class LongRunRate(NamedTuple):
    """Range of rates of a formula in packets/s; both ends are equal if it gives one number."""

    formula: str
    low_pps: float
    high_pps: float


class PathConditions(NamedTuple):
    """Loss event rate, mean and minimum round-trip time (s) of a flow."""

    p: float
    rtt_s: float
    base_rtt_s: float


def long_run_rate(algorithm: str, settings: Settings, measured: PathConditions) -> LongRunRate | None:
    """Return the long-run rate of an algorithm with these settings; None without a formula."""
    known = _FORMULAS.get(algorithm)
    if known is None or measured.rtt_s <= 0:
        return None
    formula, evaluate = known
    found = evaluate(measured, _numbers(settings))
    return None if found is None else LongRunRate(formula, *found)


def _numbers(settings: Settings) -> Mapping[str, float]:
    """Return the settings that are numbers, with the thresholds that come with Vegas's `agent`."""
    numbers = {name: value for name, value in settings.items() if not isinstance(value, str)}
    if "agent" not in settings:
        return numbers
    alpha, beta, _ = THRESHOLDS["ns2" if settings["agent"] == "ns2" else "linux"]
    return {"alpha": alpha, "beta": beta, **numbers}


def _single_rate(rate_pps: float | None) -> Range | None:
    return None if rate_pps is None else (rate_pps, rate_pps)


def _reno(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    b = own.get("segments_per_ack", 1.0)
    if own.keys() & {"increase", "gamma"}:
        increase, gamma = own.get("increase", 1.0), own.get("gamma", 0.5)
        if increase <= 0:
            return None
        return _single_rate(steady.aimd_pps(measured.p, measured.rtt_s, increase=increase, gamma=gamma, b=b))
    return _single_rate(steady.pftk_pps(measured.p, measured.rtt_s, 4 * measured.rtt_s, b=b))


def _vegas(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    default_alpha, default_beta, _ = THRESHOLDS["linux"]
    alpha, beta = own.get("alpha", default_alpha), own.get("beta", default_beta)
    return steady.vegas_bounds_pps(measured.rtt_s, measured.base_rtt_s, alpha=alpha, beta=beta)


def _aimd_between(
    increase: float, gammas: Range
) -> Callable[[PathConditions, Mapping[str, float]], Range | None]:
    """Return the formula of a window with different cuts after congestion and after other losses."""

    def evaluate(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
        step = 1 / own["stride"] if "stride" in own else increase
        low, high = (
            steady.aimd_pps(measured.p, measured.rtt_s, increase=step, gamma=gamma) for gamma in gammas
        )
        return None if low is None or high is None else (low, high)

    return evaluate


def _westwood(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    del own
    return _single_rate(steady.westwood_pps(*measured))


def _cubic(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    c, beta = own.get("c", steady.CUBIC_C), own.get("beta", steady.CUBIC_BETA)
    return _of_window(steady.cubic_mean_window(measured.p, measured.rtt_s, c=c, beta=beta), measured)


def _high_speed(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    del own
    return _of_window(steady.high_speed_mean_window(measured.p), measured)


def _scalable(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    shares = {name: own[name] for name in ("a", "gamma") if name in own}
    return _of_window(steady.scalable_mean_window(measured.p, **shares), measured)


def _hybla(measured: PathConditions, own: Mapping[str, float]) -> Range | None:
    rho = max(measured.base_rtt_s / own.get("rtt0", REFERENCE_RTT_S), 1.0)
    increase = rho**2 / own.get("segments_per_ack", 1.0)
    return _single_rate(steady.aimd_pps(measured.p, measured.rtt_s, increase=increase))


def _of_window(window: float | None, measured: PathConditions) -> Range | None:
    return _single_rate(None if window is None else window / measured.rtt_s)


_FORMULAS: Mapping[str, tuple[str, Callable[[PathConditions, Mapping[str, float]], Range | None]]] = {
    "newreno": ("Padhye", _reno),
    "sack": ("Padhye", _reno),
    "vegas": ("Vegas' rest", _vegas),
    "veno": ("AIMD of 1/2 to 4/5", _aimd_between(1.0, (0.5, 0.8))),
    "modified-veno": ("AIMD of 3/4 to 4/5", _aimd_between(0.25, (0.75, 0.8))),
    "westwood": ("Westwood+", _westwood),
    "cubic": ("RFC 9438", _cubic),
    "highspeed": ("RFC 3649", _high_speed),
    "scalable": ("Kelly", _scalable),
    "hybla": ("AIMD of 1/2", _hybla),
}
