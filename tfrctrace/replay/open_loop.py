"""Run algorithms over the flows of a trace, with all their steps in one frame."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.results.replay import NotReplayable
from tfrctrace.replay.algorithms import MTFRC, Algorithm, algorithm_named, algorithm_names
from tfrctrace.replay.column_arrays import constant, sent_between, with_series
from tfrctrace.replay.controller import refuse_impossible
from tfrctrace.replay.drive import drive
from tfrctrace.replay.parameters import by_algorithm, check_parameters
from tfrctrace.replay.tfrc import (
    VARIANTS,
    VENO,
    VENO_PARAMETER,
    Profile,
    TfrcVariant,
    parameter_names,
    run,
    tfrc_variant,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.replay.controller import Allowed, Report
    from tfrctrace.replay.from_trace import FlowRecordings, RecordingOptions
    from tfrctrace.replay.mtfrc import Bounds
    from tfrctrace.replay.recordings.recording import Recording
    from tfrctrace.wlan.scenario import Scenario

One = TypeVar("One", "Recording", "NotReplayable")

WIDE_GAMMA: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The algorithms to replay with their parameters."""

    tfrc: tuple[TfrcVariant, ...]
    """Kinds of TFRC, in the core."""
    mtfrc: TfrcVariant | None
    """The TFRC that MTFRC bounds; None without MTFRC."""
    controllers: tuple[Algorithm, ...]
    """Those in Python."""
    profile: Profile
    rtt_scales: tuple[float, ...] = (1.0,)

    @property
    def windows(self) -> list[Algorithm]:
        """Those of the controllers that have a window, whose decisions an open loop predicts one by one."""
        return [one for one in self.controllers if one.has_window]

    @property
    def rates(self) -> Selection:
        """The same without those: algorithms that are fed reports."""
        return replace(self, controllers=tuple(one for one in self.controllers if not one.has_window))

    def refuse_windows(self) -> Selection:
        """Return the same; raises `UsageError` if there is a window, which has no rate in an open loop."""
        for one in self.windows:
            raise UsageError(
                f"`{one.name}` has a window, and an open loop no rate of it",
                hint="`--loop closed` (`trace.closed_loop`) has one; `trace.one_step` predicts its decisions",
            )
        return self

    def only_windows(self) -> list[Algorithm]:
        """Return the windows; raises `UsageError` if there is anything else."""
        rates = self.rates
        for name in (
            *(one.variant for one in self.tfrc),
            *([MTFRC] if self.mtfrc else []),
            *(one.name for one in rates.controllers),
        ):
            raise UsageError(
                f"`{name}` has no window", hint="`trace.replay` feeds it the reports of the trace"
            )
        return self.windows

    @property
    def receivers(self) -> list[TfrcVariant]:
        """The senders whose receivers simulate reports that the trace does not have.

        Each TFRC variant has its own; controllers in Python get the reports of the first.
        """
        kinds = (*self.tfrc, *([self.mtfrc] if self.mtfrc else []))
        return list(dict.fromkeys(kinds)) or [TfrcVariant(profile=self.profile)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoopReplay:
    """All steps of all algorithms, and notes on the flows."""

    frame: pl.DataFrame
    """With the columns of `tfrctrace.parsers.schema.REPLAY`."""
    recordings: tuple[Recording, ...]
    lacking: tuple[NotReplayable, ...]
    notes: tuple[str, ...]
    """Notes on the algorithms."""


def select_algorithms(
    algorithms: Sequence[str],
    profile: Profile,
    parameters: Iterable[tuple[str, float]],
    rtt_scales: Sequence[float] = (1.0,),
    settings: Mapping[str, float | str] | None = None,
) -> Selection:
    """Return the algorithms with these names; raises `UsageError` for unknown names.

    `parameters` apply to every TFRC variant, each of `settings` to one algorithm, such as `vegas.alpha`.
    """
    names = list(dict.fromkeys(algorithms))
    parameters = tuple(parameters)
    if not names:
        raise UsageError("no algorithm is given", hint=f"known: {', '.join(all_names())}")
    if profile not in get_args(Profile):
        raise UsageError(f"unknown profile `{profile}`", hint=f"known: {', '.join(get_args(Profile))}")
    _refuse_idle_parameters(names, profile, parameters)
    if any(not 0 < scale < float("inf") for scale in rtt_scales):
        raise UsageError("the scale of a round-trip time must be above 0")

    own = by_algorithm(settings or {}, names)

    def controller(name: str) -> Algorithm:
        found = algorithm_named(name, others=(*VARIANTS, MTFRC))
        return replace(found, settings=check_parameters(name, found.make, own[name]))

    return Selection(
        tfrc=tuple(tfrc_variant(name, profile, parameters, own[name]) for name in names if name in VARIANTS),
        mtfrc=tfrc_variant("tfrc", profile, parameters, own[MTFRC]) if MTFRC in names else None,
        controllers=tuple(controller(name) for name in names if name not in (*VARIANTS, MTFRC)),
        profile=profile,
        rtt_scales=tuple(dict.fromkeys(rtt_scales)),
    )


def all_names() -> list[str]:
    """Return the names of all algorithms."""
    return [*VARIANTS, MTFRC, *algorithm_names()]


def _refuse_idle_parameters(
    names: Sequence[str], profile: Profile, parameters: Sequence[tuple[str, float]]
) -> None:
    """Raise for parameters without effect. Those of ns-2's agents also affect how a trace is read."""
    from tfrctrace.parsers._native import replay_profiles, tfrc_parameters

    own = dict(replay_profiles())[profile]
    for name, _ in parameters:
        if name not in parameter_names():
            raise UsageError(
                f"no algorithm has a parameter `{name}`", hint=f"known: {', '.join(parameter_names())}"
            )
        if name not in own and name not in tfrc_parameters():
            raise UsageError(f"the profile `{profile}` has no parameter `{name}`")
        if name == VENO_PARAMETER and VENO not in names:
            raise UsageError(f"`{name}` is a parameter of `{VENO}` only")
        if name not in tfrc_parameters() and not {*VARIANTS, MTFRC} & {*names}:
            raise UsageError(
                f"`{name}` is a parameter of TFRC, which is not replayed",
                hint="set parameters of other algorithms with `--set`, e.g. `vegas.alpha=1`",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReplay:
    """The steps of all algorithms on one direction of a flow."""

    recording: Recording
    steps: tuple[pl.DataFrame, ...]
    """One frame for each algorithm, with the columns of `tfrctrace.parsers.schema.REPLAY`."""


class OpenLoop:
    """Algorithms that run over the flows of a trace, one direction in memory at a time."""

    def __init__(
        self, gathered: FlowRecordings, selection: Selection, choice: RecordingOptions, bounds: list[Bounds]
    ) -> None:
        """Take what is to be run over which flows. `bounds` are the MAC's, for MTFRC."""
        self._gathered = gathered
        self._selection = selection
        self._choice = choice
        self._bounds = bounds
        self.notes = tuple(_notes(selection))
        """Notes on the algorithms."""
        self.is_repeated = len(selection.rtt_scales) > 1
        """Whether each flow is replayed with several scales of its round-trip times."""

    def flows(self) -> Iterator[FlowReplay | NotReplayable]:
        """Run all algorithms over each flow, for each scale of round-trip times anew."""
        selection = self._selection
        for scale in selection.rtt_scales:
            choice = replace(self._choice, rtt_scale=scale)
            for found in self._gathered.recordings(choice, selection.receivers):
                if isinstance(found, NotReplayable):
                    yield found
                    continue
                steps = (
                    _with_all_columns(name, frame, recording, selection, scale)
                    for name, frame, recording in _of_flow(found, selection, self._bounds)
                )
                replayed = FlowReplay(recording=next(iter(found.values())), steps=tuple(steps))
                del found, steps
                yield replayed
                # the next direction takes its place in memory
                del replayed

    def steps(self) -> Iterator[pl.DataFrame]:
        """Run all algorithms and give their steps, a frame for each algorithm and flow."""
        for found in self.flows():
            if isinstance(found, FlowReplay):
                yield from found.steps

    def collected(self) -> OpenLoopReplay:
        """Run all algorithms and keep everything."""
        import polars as pl

        found = list(self.flows())
        replayed = [one for one in found if isinstance(one, FlowReplay)]
        frames = [frame for one in replayed for frame in one.steps]
        return OpenLoopReplay(
            frame=pl.concat([no_steps(), *frames]),
            recordings=_first_of_each(one.recording for one in replayed),
            lacking=_first_of_each(one for one in found if isinstance(one, NotReplayable)),
            notes=self.notes,
        )


def no_steps() -> pl.DataFrame:
    """Return the table of steps without rows."""
    import polars as pl

    return pl.DataFrame(schema=_schema())


def mac_bounds(selection: Selection, network: Scenario | None, zero_ns: int) -> list[Bounds]:
    """Return the bounds of MTFRC from the stations of `network`, whose 0 s is `zero_ns`."""
    if network is None and selection.mtfrc:
        raise UsageError(
            "MTFRC needs the stations that share the medium",
            hint="name them with `--station 11 --station 5.5`, `--scenario FILE` or `--stations-seen`",
        )
    if network is None:
        return []
    if not selection.mtfrc:
        raise UsageError("stations of the medium apply to `mtfrc` only")
    from tfrctrace.replay.mtfrc import bounds_of

    return bounds_of(network, zero_ns)


def _of_flow(
    recordings: Mapping[TfrcVariant, Recording], selection: Selection, bounds: list[Bounds]
) -> Iterator[tuple[str, pl.DataFrame, Recording]]:
    """Yield the steps of each algorithm and the recording with the reports it was given."""
    for chosen in selection.tfrc:
        yield chosen.variant, run(chosen, recordings[chosen]), recordings[chosen]
    if selection.mtfrc:
        from tfrctrace.replay.mtfrc import bounded

        recording = recordings[selection.mtfrc]
        yield MTFRC, bounded(run(selection.mtfrc, recording), bounds, recording), recording
    first = next(iter(recordings.values()))
    for one in selection.controllers:
        yield one.name, _run_controller(one, first), first


def _run_controller(algorithm: Algorithm, recording: Recording) -> pl.DataFrame:
    """Return the steps of a controller in Python."""
    import polars as pl

    schema = _schema()
    steps = drive(algorithm.begin(recording.start), recording)
    rows = [_row(*step) for step in steps]
    columns = ("time_ns", "event", *_DECIDED, *_REPORTED)
    return pl.DataFrame(rows, schema={name: schema[name] for name in columns}, orient="row")


_DECIDED: Final = ("x_bps", "mode", "reason", "r_ms", "x_calc_bps", "x_limit_bps", "window_bytes")
_REPORTED: Final = ("p", "rtt_ms", "x_recv_bps")


def _row(time_ns: int, event: str, report: Report | None, allowed: Allowed) -> tuple[object, ...]:
    """Return a step of a controller in the units of tables."""
    decided = (
        8 * refuse_impossible(allowed.x),
        allowed.mode,
        allowed.reason,
        _scaled(allowed.r_s, 1e3),
        _scaled(allowed.x_calc, 8),
        _scaled(allowed.x_limit, 8),
        allowed.window_bytes,
    )
    if report is None:
        return (time_ns, event, *decided, None, None, None)
    return (time_ns, event, *decided, report.p, _scaled(report.rtt_s, 1e3), 8 * report.x_recv)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _with_all_columns(
    name: str, frame: pl.DataFrame, recording: Recording, selection: Selection, scale: float
) -> pl.DataFrame:
    """Return the steps of one algorithm on one flow with all columns of the table."""
    import polars as pl

    constants = {
        "flow": recording.flow,
        "direction": recording.direction,
        **asdict(recording.ends),
        "algorithm": name,
        "profile": selection.profile if name in (*VARIANTS, MTFRC) else None,
        "reports": recording.source,
        "rtt_scale": scale,
    }
    decided = with_series(frame, _sent_bps(frame, recording))
    return pl.DataFrame(
        [
            decided[one].cast(type_)
            if one in decided.columns and one not in constants
            else constant(one, constants.get(one), type_, frame.height)
            for one, type_ in _schema().items()
        ]
    )


def _sent_bps(frame: pl.DataFrame, recording: Recording) -> pl.Series:
    """Return `sent_bps` since the previous step or the start; null between simultaneous steps."""
    import numpy as np
    import polars as pl

    times = frame["time_ns"].to_numpy()
    elapsed = np.diff(times, prepend=recording.start_ns).astype(np.float64)
    elapsed[elapsed <= 0] = np.nan
    return pl.Series("sent_bps", sent_between(recording.sends, times) * 8e9 / elapsed, nan_to_null=True)


def _schema() -> dict[str, pl.DataType]:
    from tfrctrace.parsers.schema import polars_schema

    return polars_schema("replay")


def _first_of_each(items: Iterable[One]) -> tuple[One, ...]:
    """Return the items of the first scale of round-trip times; the others repeat them."""
    return tuple({(one.flow, one.direction): one for one in reversed(list(items))}.values())[::-1]


def _notes(selection: Selection) -> Iterable[str]:
    for chosen in selection.tfrc:
        gamma = dict(chosen.parameters).get(VENO_PARAMETER, 0.0)
        if not isinstance(gamma, str) and gamma > WIDE_GAMMA:
            yield f"TCP Veno keeps at most {WIDE_GAMMA:g} of its window, but gamma is {gamma:g}"
    yield "open loop: algorithms get the recorded reports, although their own rates would have changed them"
