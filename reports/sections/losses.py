"""Losses, retransmissions and reordering: a row for each direction, and the sentences of the summary.

The classes are those of `docs/tcp.md`. They count segments on the wire, so their sum may exceed the
retransmitted packets of the capture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.conversations import largest_directions
from tfrctrace.reports.elements import (
    FLOW_HEADING,
    Cell,
    Heading,
    Row,
    Section,
    TableView,
    Term,
    Words,
    ends_heading,
)
from tfrctrace.reports.figures.loss_curves import loss_figure
from tfrctrace.reports.report_content import MOST_FLOWS
from tfrctrace.reports.units import MISSING, counted, enumerated, format_count, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    import polars as pl

    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent


@dataclass(frozen=True, slots=True)
class _CountColumn:
    """A column of the table: the sum of `columns`. A `rare` one is shown if a direction has any."""

    heading: Heading
    columns: tuple[str, ...]
    rare: bool = False

    def of(self, row: FlowRow) -> int | None:
        """Return the count of one direction, None if a part of it cannot be known."""
        values: list[int | None] = [getattr(row, column) for column in self.columns]
        return None if None in values else sum(filter(None, values))


_COUNTS: Final = (
    _CountColumn(
        Heading("Fast", meaning="retransmitted because of acknowledgements: the first of each recovery"),
        ("fast_retransmissions",),
    ),
    _CountColumn(
        Heading("SACK", meaning="retransmitted later in the same recovery, as SACK showed a hole"),
        ("sack_retransmissions",),
    ),
    _CountColumn(
        Heading("Timeout", meaning="retransmitted by the retransmission timer and in the recovery after it"),
        ("rto_retransmissions",),
    ),
    _CountColumn(
        Heading(
            "Probe", meaning="last segment retransmitted to provoke an acknowledgement (tail loss probe)"
        ),
        ("tail_loss_probes",),
        rare=True,
    ),
    _CountColumn(
        Heading("Unexplained", meaning="retransmitted for a reason that the capture does not show"),
        ("unexplained_retransmissions",),
        rare=True,
    ),
    _CountColumn(
        Heading("SYN, FIN", meaning="retransmitted without data"),
        ("syn_retransmissions", "fin_retransmissions"),
        rare=True,
    ),
    _CountColumn(
        Heading("Spurious", meaning="retransmissions of data that had arrived or was about to arrive"),
        ("spurious_retransmissions",),
    ),
    _CountColumn(
        Heading("Reordered", meaning="packets that reached the capture after later ones"),
        ("reordered_packets",),
    ),
    _CountColumn(
        Heading("Duplicated", meaning="packets that the network duplicated"),
        ("network_duplicates",),
        rare=True,
    ),
    _CountColumn(
        Heading("Copies", meaning="second copies of packets, captured at another interface"),
        ("capture_duplicates",),
        rare=True,
    ),
    _CountColumn(Heading("Lost before", meaning="lost before the capture point"), ("lost_before_capture",)),
    _CountColumn(
        Heading("Lost behind", meaning="captured, and retransmitted because they were lost"),
        ("lost_behind_capture",),
    ),
    _CountColumn(
        Heading("Loss events", meaning="losses within a round-trip time count as one; below, their rate"),
        ("loss_events",),
    ),
)

_HARMLESS: Final = {"capture_duplicates"}
"""Counts that are no trouble of the connection."""

_READING: Final = (
    "Retransmissions are counted by cause, losses by whether they happened before or behind the capture "
    "point. A capture at the sender does not see reordering on the path and infers losses from "
    "retransmissions. A capture at the receiver does not see the causes of retransmissions, and of losses "
    "only a lower bound. A dash means not observable, 0 means none."
)

_CAPTION: Final = (
    "One row for each direction with losses, retransmissions, reordering or duplicates, largest first. "
    "Counts are segments on the wire, and packets of protocols with numbers. Rare classes have a column only "
    "if there are any."
)

_PLACES: Final = {"sender": "sender", "receiver": "receiver", "middle": "on the way", "both": "both ends"}


def losses_section(content: ReportContent) -> Section:
    """Return the table of losses, retransmissions and reordering, and its figures; empty if there are none.

    Rows point to those of the table of flows.
    """
    import polars as pl

    course, with_rows = content.results.loss_course, {pair.lead.flow for pair in content.conversations}
    trouble = [column for count in _COUNTS for column in count.columns if column not in _HARMLESS]
    is_troubled = pl.any_horizontal(pl.col(trouble) > 0)
    shown = largest_directions(content.flows, is_troubled, "wire_bytes", MOST_FLOWS)
    if not shown:
        return Section("losses", "Losses and retransmissions")
    counts = [count for count in _COUNTS if not count.rare or any(count.of(row) for row in shown)]
    table = TableView(
        "losses-table",
        _caption(len(shown), content.flows.select(is_troubled.sum()).item()),
        (
            FLOW_HEADING,
            ends_heading("the direction of the data"),
            *(count.heading for count in counts),
            Heading("Captured at", numeric=False, meaning="where the data of this direction was captured"),
        ),
        tuple(_row(row, counts, with_rows) for row in shown),
        sortable=True,
    )
    figures = () if course is None else (loss_figure(trace, course) for trace in content.traces)
    return Section(
        "losses",
        "Losses and retransmissions",
        paragraphs=((_READING,),),
        figures=tuple(filter(None, figures)),
        tables=(table,),
    )


def _caption(shown: int, directions: int) -> str:
    if shown == directions:
        return _CAPTION
    return (
        f"{_CAPTION} Shown are the {format_count(shown)} largest of {format_count(directions)} directions; "
        "`tfrctrace flows --format csv` writes all of them."
    )


def _row(row: FlowRow, counts: Sequence[_CountColumn], with_rows: Set[int]) -> Row:
    return Row(
        f"losses-{row.flow}-{row.direction}",
        (
            Cell(str(row.flow), sort=row.flow, anchor=row.anchor if row.flow in with_rows else ""),
            Cell(row.ends, str(row.transport).upper()),
            *(Cell(format_count(count.of(row)), _second_line(row, count), count.of(row)) for count in counts),
            _vantage(row),
        ),
    )


def _second_line(row: FlowRow, count: _CountColumn) -> str:
    """Return the second line of a cell: details of a count above 0."""
    if not count.of(row):
        return ""
    match count.columns:
        case ("rto_retransmissions",) if row.timeouts:
            return f"in {counted(row.timeouts, 'timeout')}"
        case ("reordered_packets",) if row.reordering_max_packets:
            return f"by up to {format_count(row.reordering_max_packets)}"
        case ("loss_events",) if row.loss_event_rate is not None:
            return format_share(row.loss_event_rate)
        case _:
            return ""


def _vantage(row: FlowRow) -> Cell:
    """Return where the data was captured, with the confidence unless the trace shows both ends."""
    confidence = None if row.vantage == "both" else row.vantage_confidence
    sure = "" if confidence is None else f"{confidence * 100:.0f} % confidence"
    return Cell(_PLACES.get(row.vantage or "", MISSING), sure)


_CAUSES: Final = (
    ("fast_retransmissions", "fast", "fast"),
    ("sack_retransmissions", "by SACK", "by SACK"),
    ("rto_retransmissions", "after a timeout", "after timeouts"),
    ("tail_loss_probes", "a tail loss probe", "tail loss probes"),
    ("unexplained_retransmissions", "unexplained", "unexplained"),
)
"""Every class of retransmitted data, in singular and plural."""


def retransmission_causes(flows: pl.DataFrame) -> Words:
    """Return the causes of retransmissions, of the directions in which the capture shows them."""
    import polars as pl

    shown = pl.all_horizontal(pl.col(column).is_not_null() for column, _, _ in _CAUSES)
    columns = (*(column for column, _, _ in _CAUSES), "spurious_retransmissions")
    known = flows.lazy().filter(shown).select(columns).collect()
    counts = {column: int(known[column].sum()) for column, _, _ in _CAUSES}
    total = sum(counts.values())
    if not total:
        return ()
    named = [
        (counts[column], one if counts[column] == 1 else several)
        for column, one, several in _CAUSES
        if counts[column]
    ]
    spurious = int(known["spurious_retransmissions"].sum())
    # other directions show retransmissions, or the places of losses that were retransmitted, and no cause
    losses = (pl.col("lost_before_capture") > 0) | (pl.col("retransmitted_packets") > 0)
    hidden = ~shown & (pl.col("transport") == "tcp") & losses
    is_all = not flows.select(hidden.any()).item()
    words = f"{_breakdown(total, named, is_all=is_all)}{_spurious_words(spurious, total)}."
    if is_all:
        return (words,)
    return (f"Where the capture shows the cause: {words[:1].lower()}{words[1:]}",)


def _breakdown(total: int, named: Sequence[tuple[int, str]], *, is_all: bool) -> str:
    """Return how `total` retransmissions are made up of `named` counts; there are others unless `is_all`."""
    first, *others = named
    if not others:
        if not is_all and total == 1:
            return f"One retransmission was {first[1]}"
        return f"{_all_words(total)} {first[1]}"
    parts = [f"{format_count(first[0])} {_was(first[0])} {first[1]}"]
    parts += [f"{format_count(count)} {words}" for count, words in others]
    return f"Of {format_count(total)} retransmissions {enumerated(parts)}"


def _all_words(total: int) -> str:
    if total <= 2:
        return "The only retransmission was" if total == 1 else "Both retransmissions were"
    return f"All {format_count(total)} retransmissions were"


def _spurious_words(spurious: int, total: int) -> str:
    if not spurious:
        return ""
    if spurious >= total:
        return "; all were spurious" if total > 1 else "; it was spurious"
    return f"; {format_count(spurious)} {_was(spurious)} spurious"


def upstream_losses(flows: pl.DataFrame) -> Words:
    """Return losses and reordering before the capture point, where the capture shows them.

    A loss at the end of a flight may come again as data that was never seen, so losses are a lower bound.
    """
    known = flows.select("reordered_packets", "lost_before_capture").drop_nulls()
    reordered, lost = int(known["reordered_packets"].sum()), int(known["lost_before_capture"].sum())
    if lost:
        rest = f", and {format_count(reordered)} {_was(reordered)} reordered" if reordered else ""
        return (f"At least {counted(lost, 'TCP packet')} {_was(lost)} lost before the capture point{rest}.",)
    if reordered:
        packets = f"{counted(reordered, 'packet')} {_was(reordered)} reordered"
        return (f"No TCP packet is known to be lost before the capture point; {packets}.",)
    return ()


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


LOSS_TERMS: Final = (
    Term(
        "Causes of retransmission",
        "Fast: acknowledgements started a recovery (RFC 5681; without SACK all of it, RFC 6582). SACK: the "
        "others of a recovery with SACK (RFC 6675, RFC 8985). Timeout: the retransmission timer (RFC 6298), "
        "and the recovery after it. Probe: the last segment again after two round trips without an "
        "acknowledgement (RFC 8985 section 7).",
    ),
    Term(
        "Spurious",
        "Acknowledged before, reported as a duplicate by the receiver (D-SACK, RFC 2883), or the "
        "acknowledgement was for the original (Eifel, RFC 3522; F-RTO, RFC 5682). Without D-SACK and "
        "timestamps some remain undetected.",
    ),
    Term(
        "Reordered",
        "Sent before a packet that was captured earlier, as IP identifications or TCP timestamps show, or "
        "too soon after it to be a retransmission; the extent is that of RFC 4737 section 4.2.",
    ),
    Term(
        "Loss events",
        "A loss starts a new event if it was sent more than a round-trip time after the first of the last "
        "event (RFC 5348 section 5.2). The rate is that of TFRC's receiver, or for TCP events over segments.",
    ),
    Term(
        "Capture point",
        "Inferred for each direction from response times, times to live and visible losses; `--vantage` sets "
        "it. From a confidence of 75 % on, what is not observable there is a dash.",
    ),
)
