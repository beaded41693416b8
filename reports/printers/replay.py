"""Replays of rate algorithms as a person or a program reads them: what `tfrctrace replay` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.reports.units import MISSING, counted, format_ms, format_rate_bps, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

REPLAY_SCHEMA_VERSION: Final = 1

_COLUMNS: Final = ("algorithm", "RTT", "allowed", "least", "most", "long run", "p", "R", "time in each mode")
_LEFT: Final = frozenset({0, 8})

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


def write_replay_json(file: TextIO, told: Mapping[str, Any], *, version: str) -> None:
    """Write all steps as arrays, an object for each algorithm and flow; docs/replay.md explains the names."""
    import json

    head = {"schema_version": REPLAY_SCHEMA_VERSION, "tool": {"name": "tfrctrace", "version": version}}
    rest = {name: value for name, value in told.items() if name != "replays"}
    encode = json.JSONEncoder(allow_nan=False).encode
    file.write(f'{encode({**head, **rest})[:-1]},\n"replays": [')
    separator = "\n"
    for one in told["replays"]:
        file.write(separator + encode({**_without_series(one), **one["series"]}))
        separator = ",\n"
    file.write("\n]}\n")


def write_replay_table(file: BinaryIO, form: Literal["csv", "parquet"], frame: pl.DataFrame) -> None:
    """Write a row for each step."""
    if form == "parquet":
        frame.write_parquet(file)
    else:
        file.write(frame.write_csv().encode())


def write_replay_text(file: TextIO, told: Mapping[str, Any]) -> None:
    """Write a block for each direction of a flow with a line for each algorithm, then what has none."""
    for line in _lines(told):
        file.write(printable(line) + "\n")


def _without_series(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != "series"}


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    separator: tuple[str, ...] = ()
    for flow in told["flows"]:
        own = [
            one
            for one in told["replays"]
            if (one["flow"], one["direction"]) == (flow["flow"], flow["direction"])
        ]
        yield from separator
        yield from _block(flow, own)
        separator = ("",)
    if told["lacking"]:
        yield from separator
        yield from lacking_lines(told["lacking"])
    formulas = dict.fromkeys(one["long_run_by"] for one in told["replays"] if one["long_run_by"])
    yield from ("", *(f"note: {note}" for note in told["notes"]))
    if formulas:
        yield f"note: long run is what formulas give at this p and R: {', '.join(formulas)} (docs/models.md)"


def _block(flow: Mapping[str, Any], replays: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    source = _SOURCES[flow["reports_from"]]
    yield (
        f"flow {flow['flow']} {flow['direction']}, {flow['transport']}: {counted(flow['reports'], 'step')} "
        f"from {source}, s = {flow['segment_bytes']:.0f} bytes{_measured_rates(replays)}"
    )
    if replays:
        yield from aligned([_COLUMNS, *map(_cells, replays)], left=_LEFT)
    else:
        yield "  nothing to replay: no report reached the sender while it was sending"
    yield from (f"  note: {note}" for note in flow["notes"])


def _measured_rates(replays: Sequence[Mapping[str, Any]]) -> str:
    """Return what was sent and received while the algorithms decided."""
    if not replays:
        return ""
    sent, received = replays[0]["sent_mean_bps"], replays[0]["received_mean_bps"]
    return f"; sent {format_rate_bps(sent)}, received {format_rate_bps(received)}"


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    name = one["algorithm"] if one["profile"] is None else f"{one['algorithm']} ({one['profile']})"
    p = one["p_mean"]
    return (
        name,
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


def lacking_lines(lacking: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give the lines on flows that cannot be replayed."""
    for one in lacking:
        yield f"flow {one['flow']} {one['direction']} ({one['transport']}) cannot be replayed: {one['what']}"
        yield f"  hint: {one['hint']}"


def modes_words(shares: Mapping[str, float | None]) -> str:
    """Return the shares of time in each mode, the largest first."""
    known = sorted(
        ((share, mode) for mode, share in shares.items() if share and mode), key=lambda one: -one[0]
    )
    return ", ".join(f"{_MODES.get(mode, mode)} {format_share(share)}" for share, mode in known)


def aligned(rows: Sequence[Sequence[str]], *, left: frozenset[int]) -> list[str]:
    """Return rows with columns of one width, those in `left` to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
