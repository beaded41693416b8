"""What the metrics of runs leave out, or count though it asked for little: a note for all runs together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.base.errors import input_problem
from tfrctrace.metrics.catalogue import SPOILT_BY_SPARSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.runs.quantity import Quantity


def left_out_notes(
    names: Sequence[str], records: Sequence[StudyRecord | None], quantities: Sequence[Quantity]
) -> Iterator[Problem]:
    """Give notes about the flows of all runs `names` that the metrics among `quantities` leave out.

    A metric that sparse flows spoil leaves nothing out; then the note names the one that does.
    """
    terms = {
        term.name
        for quantity in quantities
        for term in (quantity.term, quantity.over)
        if term and term.kind == "metric"
    }
    read = [(name, record) for name, record in zip(names, records, strict=True) if record is not None]
    if terms:
        short = [(name, record.flows_left_out) for name, record in read if record.flows_left_out]
        if short:
            least = max(record.least_packets for _, record in read)
            message = f"metrics leave out {_flows(short)} with fewer than {least} data packets"
            yield _note(
                short, len(read), message, "`--least-packets`, or `least_packets` of a study, sets the limit"
            )
    if spoilt := sorted(terms & SPOILT_BY_SPARSE):
        sparse = [(name, number) for name, record in read if (number := _sparse_flows(record))]
        if sparse:
            message = (
                f"{', '.join(f'`{name}`' for name in spoilt)} count {_flows(sparse)} that asked for little"
            )
            others = ", ".join(f"`{name}_without_sparse`" for name in spoilt)
            yield _note(sparse, len(read), message, f"{others} leave such flows out")


def _sparse_flows(record: StudyRecord) -> int:
    return sum(int(metric.value or 0) for metric in record.metrics if metric.name == "sparse_flows")


def _flows(found: Sequence[tuple[str, int]]) -> str:
    number = sum(number for _, number in found)
    return f"{number:,} flow{'' if number == 1 else 's'}"


def _note(found: Sequence[tuple[str, int]], runs: int, message: str, hint: str) -> Problem:
    source = found[0][0]
    if len(found) > 1:
        message += f", in {len(found)} of {runs} runs, first in `{source}`"
    return input_problem(source, "left_out", message, severity="note", hint=hint)
