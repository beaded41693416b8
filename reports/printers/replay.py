"""Replays of rate algorithms as text, JSON or CSV: what `tfrctrace replay` prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.reports.files.lists_of_text import ListsOfText
from tfrctrace.reports.files.table_files import write_table
from tfrctrace.reports.flow_rows import endpoint
from tfrctrace.reports.printers.aligned import fitted
from tfrctrace.reports.units import MISSING, counted, format_ms, format_rate_bps, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    Block = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]], int | None], Iterator[str]]
    Key = tuple[int, str]
    ReplayItem = tuple[str, Mapping[str, Any]]
    """The name of a list of the JSON output (`flows`, `lacking` or `replays`), and an item of it."""

REPLAY_SCHEMA_VERSION: Final = 1

MOST_SHOWN: Final = 1000
"""Most flows with replays, and most without, that the text shows."""

INDENT: Final = "  "
"""Before the lines of a flow, below its title."""

_COLUMNS: Final = ("algorithm", "RTT", "allowed", "least", "most", "long run", "p", "R", "time in each mode")
_LEFT: Final = frozenset({0, 8})
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
    file: TextIO, items: Iterable[ReplayItem], facts: Mapping[str, Any], *, version: str
) -> None:
    """Write all steps as arrays, an object for each algorithm and flow; docs/replay.md explains the names.

    Items of the three lists come mixed, and those of a list are kept in a file beyond some megabytes until
    the lists before are complete.
    """
    import json

    head = {"schema_version": REPLAY_SCHEMA_VERSION, "tool": {"name": "tfrctrace", "version": version}}
    encode = json.JSONEncoder(allow_nan=False).encode
    with ListsOfText(("flows", "lacking", "replays")) as lists:
        for name, item in items:
            separator = ",\n" if name == "replays" else ", "
            lists.add(name, separator, encode({**_without_series(item), **item.get("series", {})}))
        file.write(f'{encode({**head, "loop": facts["loop"]})[:-1]}, "flows": [')
        lists.copy("flows", file)
        file.write('], "lacking": [')
        lists.copy("lacking", file)
        rest = encode({name: value for name, value in facts.items() if name != "loop"})
        file.write(f'], {rest[1:-1]},\n"replays": [')
        if not lists.is_empty("replays"):
            file.write("\n")
        lists.copy("replays", file)
        file.write("\n]}\n")


def write_replay_table(
    file: BinaryIO,
    form: Literal["csv", "parquet"],
    frames: Iterable[pl.DataFrame],
    schema: pl.DataFrame,
    *,
    raw: bool,
) -> None:
    """Write a row for each step, with the columns of the table `schema`."""
    write_table(file, form, frames, schema, raw=raw)


def bounded_document(items: Iterable[ReplayItem], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of as many flows as a screen may have, those with the most steps; count others."""
    flows: dict[Key, Mapping[str, Any]] = {}
    replays: defaultdict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    sizes: list[tuple[int, int, Key]] = []
    lacking: list[Mapping[str, Any]] = []
    others, reasons = 0, Counter[str]()
    for name, item in items:
        key = (item["flow"], item["direction"])
        if name == "lacking":
            if len(lacking) < MOST_SHOWN:
                lacking.append(item)
            else:
                reasons[item["what"]] += 1
        elif name == "replays":
            if key in flows:
                replays[key].append(item)
        else:
            flows[key] = item
            heappush(sizes, (item["reports"], -others - len(flows), key))
            if len(flows) > MOST_SHOWN:
                smallest = heappop(sizes)[-1]
                del flows[smallest]
                replays.pop(smallest, None)
                others += 1
    shown = [one for key in flows for one in replays[key]]
    return {
        **facts,
        "flows": list(flows.values()),
        "lacking": lacking,
        "replays": shown,
        "left_out": {"flows": others, "lacking": dict(reasons.most_common())},
    }


def write_replay_text(file: TextIO, document: Mapping[str, Any], *, width: int | None = None) -> None:
    """Write a block for each direction with a line per algorithm, then the flows without replays.

    Tables fit a `width` (of a terminal, in columns).
    """
    for line in _lines(document, width):
        file.write(printable(line) + "\n")


def _station_lines(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return who shares the medium from when on, as far as a screen has room."""
    lines = [
        f"stations from {next(alike)['from_s']:g} s: {who}"
        for who, alike in groupby(steps, key=lambda step: ", ".join(_stations(step)))
    ]
    yield from lines[:_MOST_STATION_LINES]
    if len(lines) > _MOST_STATION_LINES:
        yield f"and {counted(len(lines) - _MOST_STATION_LINES, 'change')} more, which `--format json` has"
    if lines:
        yield ""


def _stations(step: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_mbps(step['uploads_mbps'])} up" if step["uploads_mbps"] else "none up"
    if step["downloads"]:
        yield f"{step['downloads']} down from the access point at {step['access_point_mbps']:g} Mb/s"
    if step["sparing"]:
        yield counted(len(step["sparing"]), "sparing station")


def _mbps(rates: Sequence[float]) -> str:
    numbers = {rate: rates.count(rate) for rate in rates}
    words = [f"{count} at {rate:g}" for rate, count in numbers.items()]
    return f"{' and '.join(words)} Mb/s"


def _without_series(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != "series"}


def _lines(document: Mapping[str, Any], width: int | None) -> Iterator[str]:
    yield from _station_lines(document.get("stations_seen", ()))
    yield from flow_blocks(document, _block, width)
    formulas = dict.fromkeys(one["long_run_by"] for one in document["replays"] if one["long_run_by"])
    if formulas:
        yield f"note: long run is what formulas give at this p and R: {', '.join(formulas)} (docs/models.md)"


def flow_blocks(document: Mapping[str, Any], block: Block, width: int | None) -> Iterator[str]:
    """Give a block of lines for each flow with its replays, then flows without replays, and the notes."""
    room = None if width is None else width - len(INDENT)
    separator: tuple[str, ...] = ()
    replays: defaultdict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    for replay in document["replays"]:
        replays[replay["flow"], replay["direction"]].append(replay)
    for flow in document["flows"]:
        yield from separator
        yield from block(flow, replays[flow["flow"], flow["direction"]], room)
        separator = ("",)
    if document["lacking"]:
        yield from separator
    for flow in document["lacking"]:
        yield f"{flow_title(flow)} ({flow['transport']}) cannot be replayed: {flow['what']}"
        yield f"  hint: {flow['hint']}"
    yield from _left_out(document.get("left_out", {}))
    yield from ("", *(f"note: {note}" for note in document["notes"]))


def _left_out(counts: Mapping[str, Any]) -> Iterator[str]:
    """Give lines for flows that the screen does not show, by the reason if they have no replays."""
    if flows := counts.get("flows"):
        more = counted(flows, "more flow")
        yield from ("", f"and {more} with fewer steps, which `--format json` and `--format csv` have")
    lacking = counts.get("lacking", {})
    if lacking:
        more = counted(sum(lacking.values()), "more flow")
        yield f"and {more} cannot be replayed, which `--format json` has:"
    for what, number in lacking.items():
        yield f"  {number:,}: {what}"


def _block(flow: Mapping[str, Any], replays: Sequence[Mapping[str, Any]], room: int | None) -> Iterator[str]:
    source = _SOURCES[flow["reports_from"]]
    yield (
        f"{flow_title(flow)}, {flow['transport']}: {counted(flow['reports'], 'step')} "
        f"from {source}, s = {flow['segment_bytes']:.0f} bytes{_measured_rates(replays)}"
    )
    if replays:
        yield from indented(fitted([_COLUMNS, *map(_cells, replays)], left=_LEFT, keys=2, width=room))
    else:
        yield "  nothing to replay: no report reached the sender while it was sending"
    yield from (f"  note: {note}" for note in flow["notes"])


def flow_title(flow: Mapping[str, Any]) -> str:
    """Return number, direction and ends of a flow."""
    sender, receiver = (endpoint(flow[end], flow[f"{end}_port"]) for end in ("src", "dst"))
    return f"flow {flow['flow']} {flow['direction']}, {sender} → {receiver}"


def _measured_rates(replays: Sequence[Mapping[str, Any]]) -> str:
    """Return what was sent and received while the algorithms decided."""
    if not replays:
        return ""
    sent, received = replays[0]["sent_mean_bps"], replays[0]["received_mean_bps"]
    return f"; sent {format_rate_bps(sent)}, received {format_rate_bps(received)}"


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    p = one["p_mean"]
    return (
        algorithm_name(one),
        f"x{one['rtt_scale']:g}",
        format_rate_bps(one["x_mean_bps"]),
        format_rate_bps(one["x_min_bps"]),
        format_rate_bps(one["x_max_bps"]),
        _long_run(one["long_run_bps"]),
        MISSING if p is None else f"{p:.4g}",
        format_ms(one["r_mean_ms"]),
        modes_words(one["time_in_mode"]),
    )


def _long_run(rates: Sequence[float] | None) -> str:
    """Return the rate that the algorithm's formula gives, or the lowest and the highest."""
    if rates is None:
        return MISSING
    low, high = map(format_rate_bps, rates)
    return low if low == high else f"{low} to {high}"


def algorithm_name(one: Mapping[str, Any]) -> str:
    """Return the name of the algorithm of a replay, with its profile if it has one."""
    return str(one["algorithm"]) if one["profile"] is None else f"{one['algorithm']} ({one['profile']})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Give the lines of a table below the title of a flow."""
    return (f"{INDENT}{line}" if line else "" for line in lines)


def modes_words(shares: Mapping[str, float | None]) -> str:
    """Return the shares of time in each mode, the largest first."""
    known = sorted(
        ((share, mode) for mode, share in shares.items() if share and mode), key=lambda one: -one[0]
    )
    return ", ".join(f"{_MODES.get(mode, mode)} {format_share(share)}" for share, mode in known)
