"""Algorithms by name, run over the flows of a trace: one frame of all their steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from tfrctrace.errors import UsageError
from tfrctrace.replay.arrays import sent_between
from tfrctrace.replay.catalogue import Algorithm, algorithm_named, algorithm_names
from tfrctrace.replay.gathering import Choice, Gathered, Lacking
from tfrctrace.replay.loop import drive
from tfrctrace.replay.tfrc import VARIANTS, Chosen, Profile, choose, parameter_names, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from tfrctrace.replay.controller import Allowed, Report
    from tfrctrace.replay.mtfrc import Bounds
    from tfrctrace.replay.recording import Recording
    from tfrctrace.wlan.scenario import Scenario

One = TypeVar("One", "Recording", "Lacking")

MTFRC: Final = "mtfrc"
VENO: Final = "tfrc-veno"
VENO_PARAMETER: Final = "gamma"
WIDE_GAMMA: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be replayed, each algorithm with its parameters."""

    tfrc: tuple[Chosen, ...]
    """Kinds of TFRC, in the core."""
    mtfrc: Chosen | None
    """The TFRC that MTFRC bounds; None without MTFRC."""
    controllers: tuple[Algorithm, ...]
    """Those in Python."""
    profile: Profile
    rtt_scales: tuple[float, ...] = (1.0,)

    @property
    def receiver(self) -> Chosen:
        """The sender whose receiver makes reports where a trace shows none."""
        kinds = (*self.tfrc, *([self.mtfrc] if self.mtfrc else []))
        return kinds[0] if kinds else Chosen(profile=self.profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """All steps of all algorithms, and what is to be said of the flows."""

    frame: pl.DataFrame
    """With the columns of `tfrctrace.parsers.schema.REPLAY`."""
    recordings: tuple[Recording, ...]
    lacking: tuple[Lacking, ...]
    notes: tuple[str, ...]
    """What is to be said of the algorithms."""


def wanted(
    algorithms: Sequence[str],
    profile: Profile,
    parameters: Iterable[tuple[str, float]],
    rtt_scales: Sequence[float] = (1.0,),
) -> Wanted:
    """Return the algorithms of these names; raises `UsageError` for what there is not."""
    names = list(dict.fromkeys(algorithms))
    parameters = tuple(parameters)
    if not names:
        raise UsageError("no algorithm is named", hint=f"there are {', '.join(all_names())}")
    if profile not in get_args(Profile):
        raise UsageError(
            f"no profile is called `{profile}`", hint=f"there are {', '.join(get_args(Profile))}"
        )
    _refuse_idle_parameters(names, profile, parameters)
    if any(not 0 < scale < float("inf") for scale in rtt_scales):
        raise UsageError("a round-trip time is scaled with a positive number")

    def kind(variant: str) -> Chosen:
        own = parameters if variant == VENO else [one for one in parameters if one[0] != VENO_PARAMETER]
        return choose(variant, profile, own)

    return Wanted(
        tfrc=tuple(kind(name) for name in names if name in VARIANTS),
        mtfrc=kind("tfrc") if MTFRC in names else None,
        controllers=tuple(
            algorithm_named(name, others=(*VARIANTS, MTFRC))
            for name in names
            if name not in (*VARIANTS, MTFRC)
        ),
        profile=profile,
        rtt_scales=tuple(dict.fromkeys(rtt_scales)),
    )


def all_names() -> list[str]:
    """Return the names of all algorithms that there are."""
    return [*VARIANTS, MTFRC, *algorithm_names()]


def _refuse_idle_parameters(
    names: Sequence[str], profile: Profile, parameters: Sequence[tuple[str, float]]
) -> None:
    """Raise for parameters that would change nothing. Those of ns-2's agents tell how to read a trace."""
    from tfrctrace.parsers._native import replay_profiles, tfrc_parameters

    own = dict(replay_profiles())[profile]
    for name, _ in parameters:
        if name not in parameter_names():
            raise UsageError(
                f"no algorithm has a parameter `{name}`", hint=f"there are {', '.join(parameter_names())}"
            )
        if name not in own and name not in tfrc_parameters():
            raise UsageError(f"the profile `{profile}` has no parameter `{name}`")
        if name == VENO_PARAMETER and VENO not in names:
            raise UsageError(f"`{name}` is a parameter of `{VENO}` alone")


def replay(gathered: Gathered, wanted: Wanted, choice: Choice, bounds: list[Bounds]) -> Replayed:
    """Run the algorithms over the flows. `bounds` are those of the MAC, which MTFRC needs."""
    import polars as pl

    frames: list[pl.DataFrame] = []
    recordings: list[Recording] = []
    lacking: list[Lacking] = []
    for scale in wanted.rtt_scales:
        for found in gathered.recordings(replace(choice, rtt_scale=scale), wanted.receiver):
            if isinstance(found, Lacking):
                lacking.append(found)
                continue
            recordings.append(found)
            of_flow = _of_flow(found, wanted, bounds)
            frames += [_completed(name, frame, found, wanted, scale) for name, frame in of_flow]
    none = _schema()
    frame = pl.concat([pl.DataFrame(schema=none), *frames]) if frames else pl.DataFrame(schema=none)
    return Replayed(
        frame=frame,
        recordings=_first_of_each(recordings),
        lacking=_first_of_each(lacking),
        notes=tuple(_notes(wanted)),
    )


def mac_bounds(wanted: Wanted, network: Scenario | None, zero_ns: int) -> list[Bounds]:
    """Return the bounds of MTFRC. `network` is who shares the medium, and its 0 s is `zero_ns`."""
    if network is None and wanted.mtfrc:
        raise UsageError(
            "MTFRC needs to know who shares the medium",
            hint="`--station 11 --station 5.5` or `--scenario FILE` says who is there, or `--stations-seen`",
        )
    if network is None:
        return []
    if not wanted.mtfrc:
        raise UsageError("who shares the medium matters to `mtfrc` alone")
    from tfrctrace.replay.mtfrc import bounds_of

    return bounds_of(network, zero_ns)


def _of_flow(recording: Recording, wanted: Wanted, bounds: list[Bounds]) -> list[tuple[str, pl.DataFrame]]:
    found = [(chosen.variant, run(chosen, recording)) for chosen in wanted.tfrc]
    if wanted.mtfrc:
        from tfrctrace.replay.mtfrc import bounded

        found.append((MTFRC, bounded(run(wanted.mtfrc, recording), bounds, recording)))
    found += [(one.name, _driven(one, recording)) for one in wanted.controllers]
    return found


def _driven(algorithm: Algorithm, recording: Recording) -> pl.DataFrame:
    """Return the steps of a controller in Python."""
    import polars as pl

    schema = _schema()
    steps = drive(algorithm.make(recording.start), recording)
    rows = [_row(*step) for step in steps]
    told = ("time_ns", "event", *_TOLD, *_REPORTED)
    return pl.DataFrame(rows, schema={name: schema[name] for name in told}, orient="row")


_TOLD: Final = ("x_bps", "mode", "reason", "r_ms", "x_calc_bps", "x_limit_bps", "window_bytes")
_REPORTED: Final = ("p", "rtt_ms", "x_recv_bps")


def _row(time_ns: int, event: str, report: Report | None, allowed: Allowed) -> tuple[object, ...]:
    """Return a step of a controller in the units of tables."""
    told = (
        8 * allowed.x,
        allowed.mode,
        allowed.reason,
        _scaled(allowed.r_s, 1e3),
        _scaled(allowed.x_calc, 8),
        _scaled(allowed.x_limit, 8),
        allowed.window_bytes,
    )
    if report is None:
        return (time_ns, event, *told, None, None, None)
    return (time_ns, event, *told, report.p, _scaled(report.rtt_s, 1e3), 8 * report.x_recv)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _completed(
    name: str, frame: pl.DataFrame, recording: Recording, wanted: Wanted, scale: float
) -> pl.DataFrame:
    """Return the steps of one algorithm on one flow with all columns of the table."""
    import polars as pl

    schema = _schema()
    missing = [pl.lit(None, dtype=schema[one]).alias(one) for one in schema if one not in frame.columns]
    is_tfrc = name in (*VARIANTS, MTFRC)
    return (
        frame.with_columns(missing)
        .with_columns(
            pl.lit(recording.flow).alias("flow"),
            pl.lit(recording.direction).alias("direction"),
            pl.lit(name).alias("algorithm"),
            pl.lit(wanted.profile if is_tfrc else None, dtype=pl.String).alias("profile"),
            pl.lit(recording.source).alias("reports"),
            pl.lit(scale).alias("rtt_scale"),
            _sent_bps(frame, recording).alias("sent_bps"),
        )
        .select(pl.col(one).cast(type_) for one, type_ in schema.items())
    )


def _sent_bps(frame: pl.DataFrame, recording: Recording) -> pl.Series:
    """Return what was sent since the step before, or the start; null between steps at one time."""
    import numpy as np
    import polars as pl

    times = frame["time_ns"].to_numpy()
    sent = sent_between(recording.sends, times)
    elapsed = np.diff(times, prepend=recording.start_ns)
    steps = pl.DataFrame({"sent": sent, "elapsed": elapsed})
    rate = pl.col("sent") * 8e9 / pl.col("elapsed")
    return steps.select(pl.when(pl.col("elapsed") > 0).then(rate).alias("sent_bps"))["sent_bps"]


def _schema() -> dict[str, pl.DataType]:
    from tfrctrace.parsers.schema import polars_schema

    return polars_schema("replay")


def _first_of_each(items: Iterable[One]) -> tuple[One, ...]:
    """Return those of the first scale of round-trip times: the others say the same again."""
    return tuple({(one.flow, one.direction): one for one in reversed(list(items))}.values())[::-1]


def _notes(wanted: Wanted) -> Iterable[str]:
    for chosen in wanted.tfrc:
        gamma = dict(chosen.parameters).get(VENO_PARAMETER, 0.0)
        if gamma > WIDE_GAMMA:
            yield f"TCP Veno never keeps more than {WIDE_GAMMA:g} of its window, and gamma is {gamma:g}"
    yield "open loop: the recorded reports drive each algorithm, whose own rate would have changed them"
