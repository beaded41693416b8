"""Caveats: inputs that failed, and limits of the capture."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.sets.trace_gaps import trace_gaps
from tfrctrace.reports.conversations import is_near_receiver
from tfrctrace.reports.elements import Name, Note, Section, Severity
from tfrctrace.reports.input_volume import has_packets
from tfrctrace.reports.units import counted, format_bytes, format_count, format_duration_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.drawn_traces import DrawnTrace

_MOST_NOTES: Final = 50
"""Notes that are written out; a folder of a thousand broken files would bury the report."""

_MOST_STOPS: Final = 3
"""Reasons for which decoding stopped that are named for each input."""

_CUT: Final = "Sizes and counts come from the headers and are not affected."

_SEVERITIES: Final[dict[str, Severity]] = {"error": "error", "warning": "warning"}


def caveats(
    flows: pl.DataFrame,
    conversations: Sequence[Conversation],
    sources: Sequence[Mapping[str, Any]],
    problems: Sequence[Mapping[str, Any]],
    traces: Sequence[DrawnTrace],
) -> Section:
    """Return the caveats, errors first; the section may be empty."""
    notes = [problem_note(problem) for problem in problems]
    notes.extend(_merged((source["source"], note) for source in sources for note in _source_notes(source)))
    notes.extend(_capture_gaps(flows))
    notes.extend(_gap_notes(traces, sources))
    notes.extend(_flow_notes(flows))
    notes.extend(_vantage_notes(conversations))
    notes.sort(key=lambda note: ("error", "warning", "info").index(note.severity))
    if len(notes) > _MOST_NOTES:
        rest = Note("info", (f"{counted(len(notes) - _MOST_NOTES, 'more caveat')} not shown.",))
        notes = [*notes[:_MOST_NOTES], rest]
    return Section(key="caveats", title="Caveats", notes=tuple(notes))


def problem_note(problem: Mapping[str, Any]) -> Note:
    """Return a problem of an input as a note."""
    where = "" if problem["packet"] is None else f", packet {format_count(problem['packet'])}"
    if problem["byte"] is not None:
        where += f" at byte {problem['byte']}"
    before = problem["packets_before"]
    done = (
        f"{counted(before, 'packet')} before it {'was' if before == 1 else 'were'} analysed."
        if before
        else ""
    )
    hint = _sentence(problem["hint"]) if problem["hint"] else ""
    severity: Severity = _SEVERITIES.get(problem["severity"], "info")
    return Note(
        severity, (Name(problem["source"]), f"{where}: {problem['message']}."), f"{done} {hint}".strip()
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _merged(notes: Iterable[tuple[str, Note]]) -> Iterator[Note]:
    """Put the names of inputs before their notes, and equal notes of several inputs into one."""
    names: dict[Note, list[str]] = {}
    for name, note in notes:
        names.setdefault(note, []).append(name)
    for note, called in names.items():
        others = f" and {counted(len(called) - 1, 'other input')}" if len(called) > 1 else ""
        yield Note(note.severity, (Name(called[0]), f"{others}: ", *note.words), note.detail)


def _source_notes(source: Mapping[str, Any]) -> Iterator[Note]:
    """Yield the notes on one input."""
    for interface in source["interfaces"]:
        if interface["dropped_packets"]:
            at = (" at ", Name(str(interface["name"]))) if interface["name"] else ()
            lost = f"the capture dropped {counted(interface['dropped_packets'], 'packet')}"
            yield Note(
                "warning",
                (lost, *at, "."),
                "They are missing from all counts, and data that seems lost may have arrived.",
            )
    if source["untracked_packets"]:
        yield Note(
            "warning",
            (f"{counted(source['untracked_packets'], 'packet')} of flows beyond the limit.",),
            "They count for the input but for no flow; `--max-flows` sets the limit.",
        )
    if source["out_of_order_times"]:
        yield Note(
            "warning",
            (f"{counted(source['out_of_order_times'], 'packet')} with a timestamp before the previous one.",),
            "The clock was set back or several interfaces were merged; timestamps are used as they are.",
        )
    if source["undecoded_packets"]:
        yield Note(
            "warning",
            (f"in {counted(source['undecoded_packets'], 'packet')} no IP header could be read.",),
            _stops(source["decode_stops"]),
        )
    if source["filtered_packets"]:
        yield Note("info", (f"the filter excluded {counted(source['filtered_packets'], 'packet')}.",), "")
    if source["captured_bytes"] < source["wire_bytes"]:
        yield Note("info", (f"packets were truncated by the capture{_snap(source)}.",), _CUT)


def _snap(source: Mapping[str, Any]) -> str:
    lengths = sorted({i["snap_length_bytes"] for i in source["interfaces"] if i["snap_length_bytes"]})
    return f", to {' or '.join(format_count(length) for length in lengths)} bytes" if lengths else ""


def _stops(stops: Sequence[Mapping[str, Any]]) -> str:
    """Return where decoding ended most often."""
    most = sorted(stops, key=lambda stop: -stop["packets"])[:_MOST_STOPS]
    parts = [
        f"{stop['layer']}: {stop['reason']} ({counted(stop['packets'], 'packet')}, the first is number "
        f"{format_count(stop['first_packet'])})"
        for stop in most
    ]
    return f"{'; '.join(parts)}." if parts else ""


def _capture_gaps(flows: pl.DataFrame) -> Iterator[Note]:
    """Yield the note on data that was acknowledged but not captured."""
    import polars as pl

    missed = flows.select("flow", "capture_gap_bytes").filter(pl.col("capture_gap_bytes") > 0)
    if missed.is_empty():
        return
    missed_bytes = format_bytes(int(missed["capture_gap_bytes"].sum()))
    where = counted(missed["flow"].n_unique(), "flow")
    yield Note(
        "warning",
        (f"{missed_bytes} of TCP data was acknowledged but not captured, in {where}.",),
        "The capture lost it, not the network: throughput and goodput are too low by that amount.",
    )


def _gap_notes(traces: Sequence[DrawnTrace], sources: Sequence[Mapping[str, Any]]) -> Iterator[Note]:
    """Yield the longest gap of each capture; a simulator has none."""
    captures = {source["source"] for source in sources if has_packets(source)}
    for trace in traces:
        gaps = trace_gaps(trace.bins) if captures.issuperset(trace.flows["source"].unique()) else []
        if not gaps:
            continue
        gap, others = gaps[0], len(gaps) - 1
        where = (Name(trace.name), ": ") if trace.name else ()
        after = format_duration_s(trace.seconds([gap.start_ns])[0])
        lasted = format_duration_s((gap.end_ns - gap.start_ns) / 1e9)
        rest = f" There {'is' if others == 1 else 'are'} {counted(others, 'shorter one')}." if others else ""
        yield Note(
            "info",
            (
                *where,
                f"{'no' if where else 'No'} packet of any flow for {lasted} from {after} on; "
                f"{counted(gap.flows, 'flow')} continued afterwards.",
            ),
            f"Either all flows were silent or the capture paused; it does not show which.{rest}",
        )


def _flow_notes(flows: pl.DataFrame) -> Iterator[Note]:
    """Yield the most frequent reasons for null or uncertain values of flows."""
    reasons: Counter[str] = Counter()
    for notes, directions in flows["notes"].drop_nulls().value_counts().iter_rows():
        for reason in filter(None, notes.split("; ")):
            reasons[reason] += directions
    for reason, directions in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:5]:
        yield Note("info", (f"In {counted(directions, 'direction')} of flows: {reason}.",))


def _vantage_notes(conversations: Sequence[Conversation]) -> Iterator[Note]:
    near = sum(is_near_receiver(pair.lead) for pair in conversations)
    if near:
        yield Note(
            "info",
            (f"{counted(near, 'flow')} with round-trip times taken near the receiver.",),
            "There they measure the receiver's own delay, not the path; the handshake RTT does.",
        )
