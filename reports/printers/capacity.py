"""The capacity of an 802.11 network in words and as JSON: what `tfrctrace capacity` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.metrics.results.capacity import CapacitySweep, CapacityTerms
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.units import MISSING, counted, format_rate_bps, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.metrics.results.capacity import CapacityStep, ContenderTerms, NetworkTerms, RateBounds

CAPACITY_SCHEMA_VERSION: Final = 1

_CONTENDERS: Final = ("contender", "rate", "load", "S/r", "T_ov", "T_i", "time of each")
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
    file: TextIO,
    network: NetworkTerms,
    found: CapacityTerms | CapacitySweep | Sequence[CapacityStep],
    *,
    version: str,
) -> None:
    """Write the terms of the model; their names are explained in docs/capacity.md."""
    import json

    from msgspec import to_builtins

    from tfrctrace.metrics.results.document import Tool

    head = {
        "schema_version": CAPACITY_SCHEMA_VERSION,
        "tool": to_builtins(Tool("tfrctrace", version)),
        "network": to_builtins(network),
    }
    if isinstance(found, CapacityTerms):
        document = to_builtins(found)
    elif isinstance(found, CapacitySweep):
        document = {"sweep": to_builtins(found)}
    else:
        document = {
            "steps": [
                {"from_s": step.from_s, "until_s": step.until_s, **to_builtins(step.terms)} for step in found
            ]
        }
    json.dump({**head, **document}, file, indent=1, allow_nan=False)
    file.write("\n")


def write_capacity_text(
    file: TextIO, network: NetworkTerms, found: CapacityTerms | Sequence[CapacityStep]
) -> None:
    """Write the terms with their meanings; of several steps in time a line for each."""
    lines = [network_line(network), ""]
    if isinstance(found, CapacityTerms):
        models = [found]
        lines += aligned([_CONTENDERS, *map(_contender_row, found.contenders)], left={0})
        lines += ["", *aligned(list(_term_rows(found)), left={0, 2})]
        lines += _bound_lines(found.bounds)
    else:
        models = [step.terms for step in found]
        lines += aligned([_STEPS, *map(_step_row, found)], left=set())
    notes = [f"note: {note}" for note in _notes(network, models)]
    lines += ["", *notes] if notes else []
    file.writelines(f"{line}\n" for line in lines)


def network_line(network: NetworkTerms) -> str:
    """Return one line with the constants of the model."""
    facts = [f"802.11{network.phy}"]
    if network.phy == "n":
        guard = "short" if network.short_gi else "long"
        facts.append(f"{network.band_ghz:g} GHz, {network.width_mhz} MHz, {guard} guard interval")
    elif network.phy != "a":
        facts.append(f"{network.preamble} preamble")
    facts += [f"S = {network.s_bits} bits", f"S_t = {network.s_t_bits}", f"CWmin {network.cw_min}"]
    if network.ack_mbps is None:
        rates = ", ".join(f"{mbps:g}" for mbps in network.basic_mbps or ())
        facts.append(f"ACK at a basic rate ({rates})")
    else:
        facts.append(f"ACK at {network.ack_mbps:g} Mb/s")
    if network.cts_mbps is not None:
        facts.append(f"CTS-to-self at {network.cts_mbps:g} Mb/s")
    facts.append(f"t_jam {network.jam}{' with backoff' if network.jam_backoff else ''}")
    return f"{', '.join(facts)}; preset {network.preset}"


def _contender_row(contender: ContenderTerms) -> tuple[str, ...]:
    return (
        _contender(contender),
        _rate(contender),
        "" if contender.load_bps is None else format_rate_bps(contender.load_bps),
        _us(contender.content_us),
        _us(contender.t_ov_us),
        _us(contender.t_us),
        format_share(contender.time_share),
    )


def _rate(contender: ContenderTerms) -> str:
    """Return the rate, in Mbit/s too for a modulation and coding scheme."""
    is_number = contender.rate == f"{contender.mbps:g}"
    return f"{contender.rate} Mb/s" if is_number else f"{contender.rate}, {contender.mbps:.4g} Mb/s"


def _contender(contender: ContenderTerms) -> str:
    if contender.role == "station":
        return counted(contender.count, "greedy station" if contender.is_greedy else "sparing station")
    return f"{contender.role}, {'greedy' if contender.is_greedy else 'not greedy'}"


def _term_rows(terms: CapacityTerms) -> Iterator[tuple[str, str, str]]:
    """Give the symbol of the paper, the value and the meaning of each term."""
    contenders = "contenders: stations, and the access point if there is one"
    yield "N_c", str(terms.n_contenders), contenders
    yield "P_c", f"{terms.p_c:.4g}", "probability that a frame collides, 1 - (1 - 1/CWmin)^(N_c - 1)"
    yield "t_cont", _us(terms.t_cont_us), "waiting in idle slots for each frame"
    yield "t_jam", _us(terms.t_jam_us), "mean time of a collision"
    yield "T_col", _us(terms.t_col_us), "time of collisions in T: P_c t_jam N_c"
    yield "sum T_i", _us(terms.sum_t_us), "one full frame of each greedy contender"
    yield "U", f"{terms.u:.4g}", "share of time that sparing stations and other frames take"
    one_frame = "time in which each greedy contender sends one frame, (sum T_i + T_col)/(1 - U)"
    yield "T", _us(terms.t_us), one_frame
    yield "X_m", format_rate_bps(terms.x_m_bps), "what each greedy contender sends, S/T"
    yield "X_t", format_rate_bps(terms.x_t_bps), "its payload, S_t/T"
    fair = "fair share of each flow, X_m (U + 1)/(U + D), whole frames"
    yield "X_fair", format_rate_bps(terms.x_fair_bps), fair


def _us(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.1f} µs"


def _bound_lines(bounds: RateBounds) -> list[str]:
    """Return the rate of MTFRC if that of TFRC is known."""
    if bounds.x_send_bps is None or bounds.bound is None:
        return []
    layer = "payload" if bounds.layer == "payload" else "whole frames"
    compared = (("X_tfrc", bounds.x_tfrc_bps), ("X_t", bounds.x_t_bps), ("X_fair", bounds.x_fair_bps))
    words = [f"{symbol} {format_rate_bps(rate)}" for symbol, rate in compared if rate is not None]
    sent = f"X_send  {format_rate_bps(bounds.x_send_bps)}"
    return ["", f"{sent}, bound by {_symbol(bounds.bound)}: the least of {', '.join(words)} ({layer})"]


def _symbol(bound: str) -> str:
    return bound.replace("x_", "X_", 1)


def _step_row(step: CapacityStep) -> tuple[str, ...]:
    terms, bounds = step.terms, step.terms.bounds
    return (
        f"{step.from_s:g} s",
        MISSING if step.until_s is None else f"{step.until_s:g} s",
        str(terms.n_contenders),
        f"{terms.u:.4g}",
        _us(terms.t_us),
        format_rate_bps(terms.x_m_bps),
        format_rate_bps(terms.x_t_bps),
        format_rate_bps(terms.x_fair_bps),
        format_rate_bps(bounds.x_send_bps),
        _symbol(bounds.bound) if bounds.bound else MISSING,
    )


def network_notes(network: NetworkTerms) -> Iterator[str]:
    """Return what a reader must know of the constants."""
    if network.preset == "paper":
        yield _PAPER_NOTE
    if network.phy == "n":
        yield _HT_NOTE


def _notes(network: NetworkTerms, models: Sequence[CapacityTerms]) -> Iterator[str]:
    yield from network_notes(network)
    contenders = [contender for model in models for contender in model.contenders]
    if any(contender.is_greedy and contender.load_bps is not None for contender in contenders):
        yield _RECLASSIFIED_NOTE
    if any(model.x_fair_bps is not None for model in models):
        yield _FAIR_NOTE
