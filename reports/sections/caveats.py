"""Caveats: inputs that failed, and limits of the capture."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

from tfrctrace.base.errors import wording
from tfrctrace.metrics.sets.trace_gaps import trace_gaps
from tfrctrace.reports.elements import Name, Note, Section, Severity
from tfrctrace.reports.units import counted, format_count, format_duration_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.inputs import Input
    from tfrctrace.reports.report_content import ReportContent

_MOST_NOTES: Final = 50
"""Notes that are written out; a folder of a thousand broken files would bury the report."""

_CUT: Final = "Sizes and counts come from the headers and are not affected."

_SEVERITIES: Final[dict[str, Severity]] = {"error": "error", "warning": "warning"}


def caveats(content: ReportContent) -> Section:
    """Return the caveats, errors first; the section may be empty."""
    of_flows = (
        *_gap_notes(content.traces, content.inputs),
        *_flow_notes(content.flows),
        *_vantage_notes(content.conversations),
        *_offload_notes(content.flows),
    )
    return Section(
        key="caveats", title="Caveats", notes=input_notes(content.inputs, content.problems, of_flows)
    )


def input_notes(
    inputs: Iterable[Input], problems: Iterable[Mapping[str, Any]], others: Iterable[Note] = ()
) -> tuple[Note, ...]:
    """Return the notes on inputs, and others, errors first; of very many the first."""
    of_inputs = [(problem["source"], *_placed(problem)) for problem in problems]
    of_inputs += [(source.name, "", note) for source in inputs for note in _input_notes(source)]
    notes = [*_merged(of_inputs), *others]
    notes.sort(key=lambda note: ("error", "warning", "info").index(note.severity))
    if len(notes) > _MOST_NOTES:
        rest = Note("info", (f"{counted(len(notes) - _MOST_NOTES, 'more caveat')} not shown.",))
        notes = [*notes[:_MOST_NOTES], rest]
    return tuple(notes)


def problem_note(problem: Mapping[str, Any]) -> Note:
    """Return a problem of an input as a note."""
    return next(_merged([(problem["source"], *_placed(problem))]))


def _placed(problem: Mapping[str, Any]) -> tuple[str, Note]:
    """Return the place of a problem in its input, and the note without the input's name."""
    places = (("line", problem["line"]), ("packet", problem["packet"]))
    where = "".join(f", {what} {format_count(number)}" for what, number in places if number is not None)
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
    words = f"{wording(cast('Problem', problem))}."
    return where, Note(severity, (words,), f"{done} {hint}".strip())


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _merged(notes: Iterable[tuple[str, str, Note]]) -> Iterator[Note]:
    """Put names of inputs and places before their notes, and equal notes of several inputs into one.

    An error names each input, because it has to be looked after.
    """
    names: dict[tuple[str, Note, str | None], list[str]] = {}
    for name, where, note in notes:
        own = name if note.severity == "error" else None
        names.setdefault((where, note, own), []).append(name)
    for (where, note, _), called in names.items():
        others = f" and {counted(len(called) - 1, 'other input')}" if len(called) > 1 else ""
        yield Note(note.severity, (Name(called[0]), f"{others}{where}: ", *note.words), note.detail)


def _input_notes(source: Input) -> Iterator[Note]:
    """Yield the notes on one input."""
    if source.filtered_packets:
        yield Note("info", (f"the filter excluded {counted(source.filtered_packets, 'packet')}.",), "")
    if source.outside_packets:
        yield Note(
            "info",
            (f"{counted(source.outside_packets, 'packet')} outside of the stretch of time left out.",),
            "",
        )
    if source.captured_bytes < source.wire_bytes:
        yield Note("info", (f"packets were truncated by the capture{_snap(source)}.",), _CUT)


def _snap(source: Input) -> str:
    lengths = sorted({i["snap_length_bytes"] for i in source.interfaces if i["snap_length_bytes"]})
    return f", to {' or '.join(format_count(length) for length in lengths)} bytes" if lengths else ""


def _gap_notes(traces: Sequence[DrawnTrace], inputs: Sequence[Input]) -> Iterator[Note]:
    """Yield the longest gap of each capture; a simulator has none."""
    captures = {source.name for source in inputs if source.has_packets}
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


def _offload_notes(flows: pl.DataFrame) -> Iterator[Note]:
    """Yield what segmentation offload does to the counts, if a packet holds several segments."""
    names = ("super_segments", "data_packets", "data_segments")
    known = flows.filter(flows["super_segments"] > 0)
    long, packets, segments = (int(known[name].sum()) for name in names)
    if long:
        are = "is" if long == 1 else "are"
        yield Note(
            "info",
            (
                f"{format_count(long)} of {counted(packets, 'data packet')} {are} longer than the wire "
                "carries (segmentation or receive offload).",
            ),
            f"These flows have {counted(segments, 'data segment')} on the wire. Losses, retransmissions and "
            "their shares count segments; packets, and curves of them, count what the capture has.",
        )


def _vantage_notes(conversations: Sequence[Conversation]) -> Iterator[Note]:
    near = sum(pair.lead.is_near_receiver for pair in conversations)
    if near:
        yield Note(
            "info",
            (f"{counted(near, 'flow')} with round-trip times taken near the receiver.",),
            "There they measure the receiver's own delay, not the path; the handshake RTT does.",
        )
