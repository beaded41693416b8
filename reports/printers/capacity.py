"""The capacity of an 802.11 network in words and as JSON: what `tfrctrace capacity` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.units import MISSING, counted, format_rate_bps, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CAPACITY_SCHEMA_VERSION: Final = 1

_TERMS: Final = (
    ("N_c", "n_contenders", "contenders: stations, and the access point if there is one"),
    ("P_c", "p_c", "probability that a frame collides, 1 - (1 - 1/CWmin)^(N_c - 1)"),
    ("t_cont", "t_cont_us", "waiting in idle slots for each frame"),
    ("t_jam", "t_jam_us", "mean time of a collision"),
    ("T_col", "t_col_us", "time of collisions in T: P_c t_jam N_c"),
    ("sum T_i", "sum_t_us", "one full frame of each greedy contender"),
    ("U", "u", "share of time that sparing stations and other frames take"),
    ("T", "t_us", "time in which each greedy contender sends one frame, (sum T_i + T_col)/(1 - U)"),
    ("X_m", "x_m_bps", "what each greedy contender sends, S/T"),
    ("X_t", "x_t_bps", "its payload, S_t/T"),
    ("X_fair", "x_fair_bps", "fair share of each flow, X_m (U + 1)/(U + D), whole frames"),
)
"""Symbol of the paper, name in JSON, meaning."""

_CONTENDERS: Final = ("contender", "rate", "load", "S/r", "T_ov", "T_i", "time of each")
_STEP_TERMS: Final = ("n_contenders", "u", "t_us", "x_m_bps", "x_t_bps", "x_fair_bps")
_STEPS: Final = ("from", "until", "N_c", "U", "T", "X_m", "X_t", "X_fair", "X_send", "bound")

_PAPER_NOTE: Final = (
    "the paper prints S/T, here X_m, where it says X_t; its bounds are compared as whole frames too"
)
_FAIR_NOTE: Final = (
    "X_fair assumes that the total rate stays the same when the uploads slow down, "
    "although the mix of frames changes"
)
_HT_NOTE: Final = "one MPDU in each frame of 802.11n (no aggregation), and DIFS as in DCF"
_RECLASSIFIED_NOTE: Final = "a sparing station offers X_m or more, and counts as greedy"


def write_capacity_json(
    file: TextIO, network: Mapping[str, Any], document: Mapping[str, Any], *, version: str
) -> None:
    """Write the terms of the model; their names are explained in docs/capacity.md."""
    import json

    head = {
        "schema_version": CAPACITY_SCHEMA_VERSION,
        "tool": {"name": "tfrctrace", "version": version},
        "network": network,
    }
    json.dump({**head, **document}, file, indent=1, allow_nan=False)
    file.write("\n")


def write_capacity_text(file: TextIO, network: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    """Write the terms with their meanings; of several steps in time a line for each."""
    steps = document.get("steps")
    lines = [network_line(network), ""]
    if steps is None:
        lines += aligned([_CONTENDERS, *_contender_rows(document)], left={0})
        lines += ["", *aligned(list(_term_rows(document)), left={0, 2})]
        lines += _bound_lines(document["bounds"])
    else:
        lines += aligned([_STEPS, *map(_step_row, steps)], left=set())
    notes = [f"note: {note}" for note in _notes(network, steps or [document])]
    lines += ["", *notes] if notes else []
    file.writelines(f"{line}\n" for line in lines)


def network_line(network: Mapping[str, Any]) -> str:
    """Return one line with the constants of the model."""
    facts = [f"802.11{network['phy']}"]
    if network["phy"] == "n":
        guard = "short" if network["short_gi"] else "long"
        facts.append(f"{network['band_ghz']:g} GHz, {network['width_mhz']} MHz, {guard} guard interval")
    elif network["phy"] != "a":
        facts.append(f"{network['preamble']} preamble")
    facts += [f"S = {network['s_bits']} bits", f"S_t = {network['s_t_bits']}", f"CWmin {network['cw_min']}"]
    if network["ack_mbps"] is None:
        facts.append(f"ACK at a basic rate ({', '.join(f'{mbps:g}' for mbps in network['basic_mbps'])})")
    else:
        facts.append(f"ACK at {network['ack_mbps']:g} Mb/s")
    if network["cts_mbps"] is not None:
        facts.append(f"CTS-to-self at {network['cts_mbps']:g} Mb/s")
    facts.append(f"t_jam {network['jam']}{' with backoff' if network['jam_backoff'] else ''}")
    return f"{', '.join(facts)}; preset {network['preset']}"


def _contender_rows(terms: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for one in terms["contenders"]:
        yield (
            _contender(one),
            _rate(one),
            format_rate_bps(one["load_bps"]) if one["load_bps"] is not None else "",
            _us(one["content_us"]),
            _us(one["t_ov_us"]),
            _us(one["t_us"]),
            format_share(one["time_share"]),
        )


def _rate(one: Mapping[str, Any]) -> str:
    """Return the rate, in Mbit/s too for a modulation and coding scheme."""
    is_number = one["rate"] == f"{one['mbps']:g}"
    return f"{one['rate']} Mb/s" if is_number else f"{one['rate']}, {one['mbps']:.4g} Mb/s"


def _contender(one: Mapping[str, Any]) -> str:
    if one["role"] == "station":
        return counted(one["count"], "greedy station" if one["is_greedy"] else "sparing station")
    return f"{one['role']}, {'greedy' if one['is_greedy'] else 'not greedy'}"


def _term_rows(terms: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for symbol, name, meaning in _TERMS:
        yield symbol, _value(name, terms[name]), meaning


def _value(name: str, value: float | None) -> str:
    if value is None:
        return MISSING
    if name.endswith("_bps"):
        return format_rate_bps(value)
    if name.endswith("_us"):
        return _us(value)
    return f"{value:d}" if isinstance(value, int) else f"{value:.4g}"


def _us(value: float) -> str:
    return f"{value:,.1f} µs"


def _bound_lines(bounds: Mapping[str, Any]) -> list[str]:
    """Return the rate of MTFRC if that of TFRC is known."""
    if bounds["x_send_bps"] is None:
        return []
    layer = "payload" if bounds["layer"] == "payload" else "whole frames"
    compared = [("X_tfrc", "x_tfrc_bps"), ("X_t", "x_t_bps"), ("X_fair", "x_fair_bps")]
    words = [
        f"{symbol} {format_rate_bps(bounds[name])}" for symbol, name in compared if bounds[name] is not None
    ]
    sent = f"X_send  {format_rate_bps(bounds['x_send_bps'])}"
    return ["", f"{sent}, bound by {_symbol(bounds['bound'])}: the least of {', '.join(words)} ({layer})"]


def _symbol(bound: str) -> str:
    return bound.replace("x_", "X_", 1)


def _step_row(step: Mapping[str, Any]) -> tuple[str, ...]:
    bounds = step["bounds"]
    return (
        f"{step['from_s']:g} s",
        MISSING if step["until_s"] is None else f"{step['until_s']:g} s",
        *(_value(name, step[name]) for name in _STEP_TERMS),
        format_rate_bps(bounds["x_send_bps"]),
        _symbol(bounds["bound"]) if bounds["bound"] else MISSING,
    )


def network_notes(network: Mapping[str, Any]) -> Iterator[str]:
    """Return what a reader must know of the constants."""
    if network["preset"] == "paper":
        yield _PAPER_NOTE
    if network["phy"] == "n":
        yield _HT_NOTE


def _notes(network: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from network_notes(network)
    contenders = [one for model in models for one in model["contenders"]]
    if any(one["is_greedy"] and one["load_bps"] is not None for one in contenders):
        yield _RECLASSIFIED_NOTE
    if any(model["x_fair_bps"] is not None for model in models):
        yield _FAIR_NOTE
