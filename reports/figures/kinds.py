"""Kinds of figures: how to find those of a report, and what a trace needs for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.reports.elements import Figure, Report

PlotKind = Literal[
    "throughput",
    "sequence",
    "rtt",
    "cdf",
    "cwnd",
    "causes",
    "losses",
    "fairness",
    "burstiness",
    "delay",
    "delay-spread",
    "pdr",
    "retries",
    "phy-rate",
    "signal",
    "tfrc",
    "tfrc-p",
    "tfrc-r",
    "replay",
    "closed-loop",
]


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the keys of its figures begin, and what they are drawn from."""

    key: str
    needs: str


_BOTH_ENDS: Final = "packets seen at both ends: a simulation, or two captures with `--pair`"
_FRAMES: Final = "frames of 802.11 on one time axis"
_REPORTS: Final = "reports of a TFRC receiver: DCCP with CCID 3, RTP with TFRC, or ns-2"

KINDS: Final[Mapping[PlotKind, _Kind]] = {
    "throughput": _Kind("throughput-", "packets of flows"),
    "sequence": _Kind("sequence-", "a TCP flow with 20 data packets, in a trace that can be read twice"),
    "rtt": _Kind("rtt-", "RTT samples: data and its acknowledgements, near the sender"),
    "cdf": _Kind(
        "rtt-cdf-", "every RTT sample: data and its acknowledgements, in a trace that can be read twice"
    ),
    "cwnd": _Kind(
        "windows-", "rounds of a TCP flow, seen near its sender; `-a newreno` draws what ns-2's agents log"
    ),
    "causes": _Kind("causes-", "a captured TCP connection with data"),
    "losses": _Kind("losses-", "retransmitted, late or duplicate TCP packets"),
    "fairness": _Kind(
        "fairness-", "two flows or more with 20 data packets each that overlap for some seconds"
    ),
    "burstiness": _Kind("burstiness-timescales", "flows with 20 data packets that last for some seconds"),
    "delay": _Kind("delay-", _BOTH_ENDS),
    "delay-spread": _Kind("delay-spread-", _BOTH_ENDS),
    "pdr": _Kind("pdr-", f"{_BOTH_ENDS}, and some of them lost"),
    "retries": _Kind("radio-retries-", f"{_FRAMES}, some of them with the retry bit"),
    "phy-rate": _Kind("radio-rate-", f"{_FRAMES}, with radio information"),
    "signal": _Kind("radio-signal-", f"{_FRAMES}, with radio information"),
    "tfrc": _Kind("tfrc-rate-", _REPORTS),
    "tfrc-p": _Kind("tfrc-p-", _REPORTS),
    "tfrc-r": _Kind("tfrc-r-", _REPORTS),
    "replay": _Kind(
        "replay-", "reports of a TFRC receiver, or a TCP flow of 20 data packets with RTT samples"
    ),
    "closed-loop": _Kind("closed-loop-", "a flow whose bottleneck shows"),
}

WINDOWED: Final = frozenset({"throughput", "rtt", "fairness", "delay", "pdr"})
"""Kinds that count or sum up packets in windows of time."""

OF_SETS: Final = frozenset({"fairness", "burstiness", "retries", "phy-rate", "signal"})
"""Kinds that compare flows or show radio links: they cannot be drawn of one flow."""


def check_kind(kind: str) -> None:
    """Raise `UsageError` if there is no such kind."""
    if kind not in KINDS:
        raise UsageError(f"there is no figure of kind `{kind}`", hint=f"kinds: {', '.join(KINDS)}")


def figures_of(report: Report, kind: PlotKind) -> list[Figure]:
    """Return the figures of `kind`, those of the first trace and the largest flow first."""
    start = KINDS[kind].key
    return [
        figure
        for section in report.sections
        for figure in section.figures
        # a kind ends where the number of the trace, the set or the flow begins
        if figure.key.startswith(start) and not figure.key[len(start) : len(start) + 1].isalpha()
    ]


def check_found(found: Sequence[Figure], kind: PlotKind, reasons: Sequence[str] = ()) -> None:
    """Raise `UsageError` with what is missing, and why of each flow, if there is no figure of `kind`."""
    if not found:
        what = "; ".join((f"there is nothing to draw of kind `{kind}`", *reasons))
        raise UsageError(what, hint=f"it needs {KINDS[kind].needs}")
