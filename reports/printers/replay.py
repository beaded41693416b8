"""Replays of rate algorithms as text, JSON or CSV: what `tfrctrace replay` prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.metrics.results.open_loop import OpenLoopRun, OpenLoops
from tfrctrace.metrics.results.replay import AlgorithmRun, NotReplayable
from tfrctrace.reports.files.lists_of_text import ListsOfText
from tfrctrace.reports.flow_rows import endpoint
from tfrctrace.reports.printers.aligned import fitted
from tfrctrace.reports.units import MISSING, counted, format_ms, format_rate_bps, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tfrctrace.metrics.results.open_loop import OpenLoopItem, RecordedFlow
    from tfrctrace.metrics.results.replay import Flow, FlowDirection, ReplayHead, Replays, Run, StationsStep

    Key = tuple[int, str]

REPLAY_SCHEMA_VERSION: Final = 2

MOST_SHOWN: Final = 1000
"""Most flows with replays, and most without, that the text shows."""

INDENT: Final = "  "
"""Before the lines of a flow, below its title."""

_COLUMNS: Final = ("algorithm", "RTT", "allowed", "least", "most", "p", "R", "time in each mode")
_LEFT: Final = frozenset({0, 7})
_MOST_STATION_LINES: Final = 20

_SOURCES: Final = {
    "reports": "reports of its receiver",
    "simulated_reports": "simulated reports",
    "tcp": "rounds and losses of its TCP",
}
_MODES: Final = {
    "slow_start": "slow start",
    "congestion_avoidance": "congestion avoidance",
    "receive_limited": "limited by receive rate",
    "no_feedback": "no feedback",
    "x_t": "X_t",
    "x_fair": "X_fair",
}


def write_replay_json(
    file: TextIO, items: Iterable[FlowDirection], head: ReplayHead, *, version: str
) -> None:
    """Write all steps as arrays, an object for each algorithm and flow; docs/replay.md explains the names.

    Items of the three lists (flows, those that cannot be replayed, and runs) come mixed, and those of a
    list are kept in a file beyond some megabytes until the lists before are complete.
    """
    import json

    from msgspec import to_builtins

    from tfrctrace.metrics.results.document import Tool

    document = {"schema_version": REPLAY_SCHEMA_VERSION, "tool": to_builtins(Tool("tfrctrace", version))}
    encode = json.JSONEncoder(allow_nan=False).encode
    with ListsOfText(("flows", "lacking", "replays")) as lists:
        for item in items:
            if isinstance(item, AlgorithmRun):
                # the steps of a flow are not copied: they may be many
                facts = to_builtins(replace(item, series={})) | {**item.series}
                del facts["series"]
                lists.add("replays", ",\n", encode(facts))
            else:
                name = "lacking" if isinstance(item, NotReplayable) else "flows"
                lists.add(name, ", ", encode(to_builtins(item)))
        file.write(f'{encode({**document, "loop": head.loop})[:-1]}, "flows": [')
        lists.copy("flows", file)
        file.write('], "lacking": [')
        lists.copy("lacking", file)
        rest = {"notes": head.notes}
        if head.stations_seen:
            rest["stations_seen"] = to_builtins(head.stations_seen)
        file.write(f'], {encode(rest)[1:-1]},\n"replays": [')
        if not lists.is_empty("replays"):
            file.write("\n")
        lists.copy("replays", file)
        file.write("\n]}\n")


def bounded_replays(items: Iterable[OpenLoopItem], head: ReplayHead) -> OpenLoops:
    """Return as many flows as a screen may have, those with the most steps; count others."""
    flows: dict[Key, RecordedFlow] = {}
    replays: defaultdict[Key, list[OpenLoopRun]] = defaultdict(list)
    sizes: list[tuple[int, int, Key]] = []
    lacking: list[NotReplayable] = []
    others, reasons = 0, Counter[str]()
    for item in items:
        if isinstance(item, NotReplayable):
            if len(lacking) < MOST_SHOWN:
                lacking.append(item)
            else:
                reasons[item.what] += 1
        elif isinstance(item, OpenLoopRun):
            if item.key in flows:
                replays[item.key].append(item)
        else:
            flows[item.key] = item
            heappush(sizes, (item.reports, -others - len(flows), item.key))
            if len(flows) > MOST_SHOWN:
                smallest = heappop(sizes)[-1]
                del flows[smallest]
                replays.pop(smallest, None)
                others += 1
    return OpenLoops(
        head=head,
        flows=tuple(flows.values()),
        lacking=tuple(lacking),
        replays=tuple(run for key in flows for run in replays[key]),
        flows_left_out=others,
        lacking_left_out=dict(reasons.most_common()),
    )


def write_replay_text(file: TextIO, replays: OpenLoops, *, width: int | None = None) -> None:
    """Write a block for each direction with a line per algorithm, then the flows without replays.

    Tables fit a `width` (of a terminal, in columns).
    """
    for line in _lines(replays, width):
        file.write(printable(line) + "\n")


def _station_lines(steps: Sequence[StationsStep]) -> Iterator[str]:
    """Return who shares the medium from when on, as far as a screen has room."""
    lines = [
        f"stations from {next(alike).from_s:g} s: {who}"
        for who, alike in groupby(steps, key=lambda step: ", ".join(_stations(step)))
    ]
    yield from lines[:_MOST_STATION_LINES]
    if len(lines) > _MOST_STATION_LINES:
        yield f"and {counted(len(lines) - _MOST_STATION_LINES, 'change')} more, which `--format json` has"
    if lines:
        yield ""


def _stations(step: StationsStep) -> Iterator[str]:
    yield f"{_mbps(step.uploads_mbps)} up" if step.uploads_mbps else "none up"
    if step.downloads:
        yield f"{step.downloads} down from the access point at {step.access_point_mbps:g} Mb/s"
    if step.sparing:
        yield counted(len(step.sparing), "sparing station")


def _mbps(rates: Sequence[float]) -> str:
    numbers = {rate: rates.count(rate) for rate in rates}
    words = [f"{count} at {rate:g}" for rate, count in numbers.items()]
    return f"{' and '.join(words)} Mb/s"


def _lines(replays: OpenLoops, width: int | None) -> Iterator[str]:
    yield from _station_lines(replays.head.stations_seen)
    yield from flow_blocks(replays, _block, width)


def flow_blocks(
    replays: Replays[Flow, Run],
    block: Callable[[Flow, Sequence[Run], int | None], Iterator[str]],
    width: int | None,
) -> Iterator[str]:
    """Give a block of lines for each flow with its replays, then flows without replays, and the notes."""
    room = None if width is None else width - len(INDENT)
    separator: tuple[str, ...] = ()
    by_flow: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in replays.replays:
        by_flow[run.key].append(run)
    for flow in replays.flows:
        yield from separator
        yield from block(flow, by_flow[flow.key], room)
        separator = ("",)
    if replays.lacking:
        yield from separator
    for lacking in replays.lacking:
        yield f"{flow_title(lacking)} ({lacking.transport}) cannot be replayed: {lacking.what}"
        yield f"  hint: {lacking.hint}"
    yield from _left_out(replays.flows_left_out, replays.lacking_left_out)
    yield from ("", *(f"note: {note}" for note in replays.head.notes))


def _left_out(flows: int, lacking: Mapping[str, int]) -> Iterator[str]:
    """Give lines for flows that the screen does not show, by the reason if they have no replays."""
    if flows:
        more = counted(flows, "more flow")
        yield from ("", f"and {more} with fewer steps, which `--format json` and `--format csv` have")
    if lacking:
        more = counted(sum(lacking.values()), "more flow")
        yield f"and {more} cannot be replayed, which `--format json` has:"
    for what, number in lacking.items():
        yield f"  {number:,}: {what}"


def _block(flow: RecordedFlow, runs: Sequence[OpenLoopRun], room: int | None) -> Iterator[str]:
    source = _SOURCES[flow.reports_from]
    yield (
        f"{flow_title(flow)}, {flow.transport}: {counted(flow.reports, 'step')} "
        f"from {source}, s = {flow.segment_bytes:.0f} bytes{_measured_rates(runs)}"
    )
    if runs:
        yield from indented(fitted([_COLUMNS, *map(_cells, runs)], left=_LEFT, keys=2, width=room))
    else:
        yield "  nothing to replay: no report reached the sender while it was sending"
    yield from (f"  note: {note}" for note in flow.notes)


def flow_title(flow: FlowDirection) -> str:
    """Return number, direction and ends of a flow."""
    ends = f"{endpoint(flow.src, flow.src_port)} → {endpoint(flow.dst, flow.dst_port)}"
    return f"flow {flow.flow} {flow.direction}, {ends}"


def _measured_rates(runs: Sequence[OpenLoopRun]) -> str:
    """Return what was sent and received while the algorithms decided."""
    if not runs:
        return ""
    sent, received = runs[0].sent_mean_bps, runs[0].received_mean_bps
    return f"; sent {format_rate_bps(sent)}, received {format_rate_bps(received)}"


def _cells(run: OpenLoopRun) -> tuple[str, ...]:
    return (
        algorithm_name(run),
        f"x{run.rtt_scale:g}",
        format_rate_bps(run.x_mean_bps),
        format_rate_bps(run.x_min_bps),
        format_rate_bps(run.x_max_bps),
        MISSING if run.p_mean is None else f"{run.p_mean:.4g}",
        format_ms(run.r_mean_ms),
        modes_words(run.time_in_mode),
    )


def algorithm_name(run: AlgorithmRun) -> str:
    """Return the name of the algorithm of a replay, with its profile if it has one."""
    return run.algorithm if run.profile is None else f"{run.algorithm} ({run.profile})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Give the lines of a table below the title of a flow."""
    return (f"{INDENT}{line}" if line else "" for line in lines)


def modes_words(shares: Mapping[str, float | None]) -> str:
    """Return the shares of time in each mode, the largest first."""
    known = sorted(
        ((share, mode) for mode, share in shares.items() if share and mode), key=lambda one: -one[0]
    )
    return ", ".join(f"{_MODES.get(mode, mode)} {format_share(share)}" for share, mode in known)
