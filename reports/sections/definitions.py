"""What the words of a report mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Section, Term
from tfrctrace.reports.sections.losses import LOSS_TERMS

if TYPE_CHECKING:
    from tfrctrace.reports.report_content import ReportContent

_DEFINITIONS: Final = (
    Term(
        "Throughput",
        "Bytes of whole frames on the wire over the time from the first to the last packet of the flow and "
        "direction. Undefined for fewer than two packets.",
    ),
    Term(
        "Goodput", "Payload with every sequence number counted once, over the same time; for UDP all payload."
    ),
    Term(
        "Rates over time",
        "Bytes of a bin over its width. Between the first and the last packet of a flow, a bin without "
        "packets counts as zero.",
    ),
    Term(
        "Retransmissions",
        "TCP data segments with at least one byte that the capture already has. A segment lost before the "
        "capture point appears only once and is not counted.",
    ),
    *LOSS_TERMS,
    Term(
        "Round-trip time",
        "From a data packet to the acknowledgement that covers it, or to the first SACK block that reports "
        "it, both at the capture point. Of retransmitted data, either copy may have been acknowledged "
        "(Karn's rule, RFC 6298 section 3): only the echo of a timestamp gives a sample. Delayed "
        "acknowledgements are included.",
    ),
    Term(
        "Flight and rounds",
        "Data (and SYN, FIN) sent and not yet acknowledged. A round ends when the highest sequence number "
        "sent at its start is acknowledged. Its flight is a lower bound of the congestion window. At the "
        "sender it equals the window to within a segment, unless the application (the newest segment is not "
        "full, or nothing is outstanding) or the receiver (no room in its window) is the limit.",
    ),
    Term("Percentiles", "Nearest rank, within 0.8 %; minimum, mean and maximum are exact."),
    Term(
        "Units",
        "1 kB is 1000 bytes and 1 Mbit/s is 1,000,000 bit/s. Times of day are UTC. A dash means unknown from "
        "this capture; 0 means measured zero.",
    ),
)


def definitions_section(_: ReportContent) -> Section:
    """Return the definitions, which are the same for each report."""
    return Section("definitions", "Definitions", terms=_DEFINITIONS)
