"""Run algorithms in closed loop in place of the flows of a trace, with all their rounds in one frame."""

from __future__ import annotations

import math
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.results.closed_loop import SWEPT, Inferred
from tfrctrace.metrics.results.replay import NotReplayable
from tfrctrace.replay.closed_loop.fluid import Other, simulate
from tfrctrace.replay.closed_loop.infer_path import infer
from tfrctrace.replay.closed_loop.observed_path import PathTables, observe_path
from tfrctrace.replay.closed_loop.path import Path
from tfrctrace.replay.lacking import lacking_frame
from tfrctrace.replay.tfrc import Tfrc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.replay.closed_loop.competitors import Competitor
    from tfrctrace.replay.closed_loop.infer_path import Bottleneck
    from tfrctrace.replay.closed_loop.overrides import BottleneckOverrides, Sweep
    from tfrctrace.replay.closed_loop.sender import Round
    from tfrctrace.replay.controller import Controller, Start
    from tfrctrace.replay.open_loop import Selection
    from tfrctrace.replay.recordings.recording import Recording
    from tfrctrace.replay.tfrc import TfrcVariant
    from tfrctrace.trace.tables import Tables

NOTE: Final = (
    "closed loop: each algorithm drives a fluid model of the bottleneck that the trace shows, in which what "
    "others sent stays as recorded and does not react"
)
REACTING: Final = (
    "closed loop: each algorithm drives a fluid model of the bottleneck that the trace shows, in which flows "
    "react as the congestion control that they are named by, and what others sent stays as recorded"
)
TOGETHER: Final = "the algorithms share the bottleneck with one another"

BITS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledFlow:
    """A flow that the algorithms replaced."""

    recording: Recording
    bottleneck: Bottleneck
    swept: tuple[tuple[float | None, Bottleneck], ...]
    """What was modelled: each value of a sweep and the bottleneck with it, else None and `bottleneck`."""
    competitors: tuple[Competitor, ...] = ()
    """Other flows that react; the rest of the others is as recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoops:
    """All rounds of all algorithms, and the bottleneck of each flow."""

    frame: pl.DataFrame
    """With the columns of `tfrctrace.parsers.schema.CLOSED_LOOP`; a flow of `lacking` has rows of nulls."""
    ends: tuple[pl.DataFrame, ...]
    """The same with the least and with the most of each bottleneck, of flows where these are known."""
    flows: tuple[ModelledFlow, ...]
    lacking: tuple[NotReplayable, ...]
    notes: tuple[str, ...]
    sweep: str | None = None
    """The property of the bottleneck that takes the values of the column `swept`."""


def closed_loops(
    trace: Tables,
    recordings: Iterable[Mapping[TfrcVariant, Recording] | NotReplayable],
    wanted: Selection,
    given: BottleneckOverrides,
    *,
    together: bool = False,
    sweep: Sweep | None = None,
    competitors: Sequence[Competitor] = (),
) -> ClosedLoops:
    """Run the algorithms in place of each flow, one after the other, or `together` at one bottleneck.

    With a `sweep` they run at each of its values. Those of the `competitors` that are not replaced react.
    """
    import polars as pl

    if wanted.mtfrc:
        raise UsageError(
            "`mtfrc` needs a MAC, which the bottleneck model does not have",
            hint="replay `mtfrc` without `--loop closed`",
        )
    frames: list[pl.DataFrame] = []
    ends: list[pl.DataFrame] = []
    flows: list[ModelledFlow] = []
    lacking: list[NotReplayable] = []
    shown = PathTables(trace)
    for recorded in recordings:
        if isinstance(recorded, NotReplayable):
            lacking.append(recorded)
            continue
        # the recorded reports do not matter: the model makes its own
        found = _modelled(shown, next(iter(recorded.values())), given, sweep, competitors)
        if isinstance(found, NotReplayable):
            lacking.append(found)
            continue
        flows.append(found)
        for value, bottleneck in found.swept:
            usual, *others = _paths(bottleneck)
            frames.append(_frame(found, usual, value, wanted, together=together))
            ends += [_frame(found, path, value, wanted, together=together) for path in others]
    names: list[Mapping[str, str | None]] = [
        *({"algorithm": one.variant, "profile": one.profile} for one in wanted.tfrc),
        *({"algorithm": one.name, "profile": None} for one in wanted.controllers),
    ]
    return ClosedLoops(
        frame=pl.concat([*frames, lacking_frame("closed_loop", lacking, names)]),
        ends=tuple(ends),
        flows=tuple(flows),
        lacking=tuple(lacking),
        notes=(REACTING if competitors else NOTE, *([TOGETHER] if together else [])),
        sweep=None if sweep is None else sweep.name,
    )


def _modelled(
    shown: PathTables,
    recording: Recording,
    given: BottleneckOverrides,
    sweep: Sweep | None,
    competitors: Sequence[Competitor],
) -> ModelledFlow | NotReplayable:
    own = (recording.flow, recording.direction)
    beside = tuple(
        one
        for one in competitors
        if one.key != own and one.start_ns < recording.end_ns and one.end_ns > recording.start_ns
    )
    bottleneck = infer(observe_path(shown, recording, [one.key for one in beside]), given)
    swept = ((None, bottleneck),) if sweep is None else tuple(_at_values(bottleneck, sweep))
    unknown = _unknown(swept[0][1] if swept else bottleneck)
    if unknown is None and sweep is not None and not swept:
        words, _ = SWEPT[sweep.name]
        unknown = (
            f"the trace shows no {words} of its bottleneck, of which the sweep could have multiples",
            f"`--sweep {sweep.name}=` takes values, too",
        )
    if unknown is not None:
        what, hint = unknown
        return NotReplayable(
            flow=recording.flow,
            direction=recording.direction,
            **asdict(recording.ends),
            transport=recording.transport,
            what=what,
            hint=hint,
        )
    return ModelledFlow(recording=recording, bottleneck=bottleneck, swept=swept, competitors=beside)


def _at_values(bottleneck: Bottleneck, sweep: Sweep) -> Iterator[tuple[float, Bottleneck]]:
    """Give the bottleneck with each value of a sweep; none with multiples of what is unknown or nothing.

    Its other properties stay: the question is what another path would do, not what was measured on this one.
    """
    shown: Inferred | float | None = getattr(bottleneck, sweep.field)
    known = shown.value if isinstance(shown, Inferred) else shown
    unit = known if sweep.are_multiples else 1.0
    if not unit:
        return
    most = 1.0 if sweep.name == "loss" else math.inf
    for changed in sorted({min(unit * value, most) for value in sweep.values}):
        of_field: Any = Inferred(changed, "as swept") if isinstance(shown, Inferred) else changed
        yield changed, replace(bottleneck, **{sweep.field: of_field})


def _unknown(bottleneck: Bottleneck) -> tuple[str, str] | None:
    """Return what must be known of a bottleneck and is not, and what supplies it."""
    needed = {
        "base RTT": (bottleneck.base_rtt_ms, "base_rtt=40ms"),
        "capacity": (bottleneck.capacity_bps, "capacity=3M"),
        "buffer": (bottleneck.buffer_bytes, "buffer=20000"),
    }
    for name, (finding, example) in needed.items():
        if finding.value is None:
            return (
                f"the {name} of its bottleneck is not known: {finding.evidence}",
                f"`--bottleneck {example}` supplies it",
            )
    return None


def _paths(bottleneck: Bottleneck) -> list[Path]:
    """Return the path as it most likely is, and at the least and at the most that it may be."""
    found = (bottleneck.capacity_bps, bottleneck.base_rtt_ms, bottleneck.buffer_bytes)
    # with a permanently long queue, random losses cannot be distinguished from those of the queue
    capacity_bps, base_rtt_ms, buffer_bytes, loss = (
        one.value or 0.0 for one in (*found, bottleneck.random_loss)
    )
    usual = Path(
        capacity=capacity_bps / BITS,
        base_rtt_s=base_rtt_ms / 1e3,
        buffer_bytes=buffer_bytes,
        random_loss=loss,
        background=bottleneck.background,
        outages_s=bottleneck.outages_s,
        window_bytes=bottleneck.receive_window_bytes,
        discipline=bottleneck.discipline,
        has_ecn=bottleneck.has_ecn,
    )
    least = _at(usual, bottleneck.capacity_bps.low, bottleneck.buffer_bytes.low, bottleneck.random_loss.high)
    most = _at(usual, bottleneck.capacity_bps.high, bottleneck.buffer_bytes.high, bottleneck.random_loss.low)
    return [usual] if least == most else [usual, least, most]


def _at(path: Path, capacity_bps: float | None, buffer_bytes: float | None, loss: float | None) -> Path:
    """Return a path with those of the values that are known to vary."""
    return replace(
        path,
        capacity=path.capacity if capacity_bps is None else capacity_bps / BITS,
        buffer_bytes=path.buffer_bytes if buffer_bytes is None else buffer_bytes,
        random_loss=path.random_loss if loss is None else loss,
    )


def _frame(
    modelled: ModelledFlow, path: Path, swept: float | None, wanted: Selection, *, together: bool
) -> pl.DataFrame:
    """Return the rounds of all algorithms in place of a flow."""
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    recording = modelled.recording
    own = (recording.flow, recording.direction, *astuple(recording.ends))
    rows = [
        (*own, name, profile, *_row(one, recording.start_ns), swept, None)
        for name, profile, rounds in _rounds(modelled, path, wanted, together=together)
        for one in rounds
    ]
    return pl.DataFrame(rows, schema=polars_schema("closed_loop"), orient="row")


def _rounds(
    modelled: ModelledFlow, path: Path, wanted: Selection, *, together: bool
) -> list[tuple[str, str | None, list[Round]]]:
    recording = modelled.recording
    start = replace(recording.start, least_rto_s=modelled.bottleneck.least_rto_s.value)
    named = _controllers(wanted, start)
    groups = [named] if together else [[one] for one in named]
    found: list[tuple[str, str | None, list[Round]]] = []
    for group in groups:
        rounds = simulate(
            path,
            [controller for _, _, controller in group],
            segment_bytes=recording.segment_bytes,
            duration_s=recording.seconds(recording.end_ns),
            others=[
                Other(
                    one.algorithm.begin(start),
                    replace(path, base_rtt_s=one.base_rtt_s, window_bytes=None),
                    recording.seconds(one.start_ns),
                    recording.seconds(one.end_ns),
                )
                for one in modelled.competitors
            ],
        )
        found += [(name, profile, own) for (name, profile, _), own in zip(group, rounds, strict=True)]
    return found


def _controllers(wanted: Selection, start: Start) -> Sequence[tuple[str, str | None, Controller]]:
    kinds = [(one.variant, one.profile, Tfrc(start, one)) for one in wanted.tfrc]
    others = [(controller.name, None, controller.begin(start)) for controller in wanted.controllers]
    return [*kinds, *others]


def _row(one: Round, start_ns: int) -> tuple[Any, ...]:
    """Return a round in the units of tables."""
    allowed = one.allowed
    bps = BITS / one.duration_s if one.duration_s > 0 else None
    return (
        start_ns + round(one.time_s * 1e9),
        one.duration_s * 1e3,
        *(
            (None, "slow_start", "start")
            if allowed is None
            else (BITS * allowed.x, allowed.mode, allowed.reason)
        ),
        None if allowed is None else allowed.window_bytes,
        None if bps is None else bps * one.sent_bytes,
        None if bps is None else bps * one.arrived_bytes,
        one.rtt_s * 1e3,
        one.queued_bytes,
        one.lost_packets,
        one.p,
    )
