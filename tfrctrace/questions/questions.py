"""The questions, each a method with its documentation: what a program is told that it may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.parsers.anonymity import Anonymizer
from tfrctrace.questions.kept_traces import KeptTraces, caveats
from tfrctrace.questions.short_answer import MOST_BYTES, USUAL_BYTES, from_offset, rows_of, short_answer
from tfrctrace.reports.safe_text import plain_text
from tfrctrace.runs.cache import Cache

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from tfrctrace.base.errors import Message, Problem, TfrctraceError
    from tfrctrace.metrics.results.audit import AuditDocument
    from tfrctrace.questions.folders import Folders
    from tfrctrace.questions.kept_traces import KeptTrace

Capture = Annotated[str, Field(description="a capture, as `captures` names it")]
MaxBytes = Annotated[
    int, Field(ge=200, le=MOST_BYTES, description="the longest answer; the first row is always in it")
]
Offset = Annotated[int, Field(ge=0, description="rows to leave out: `next_offset` of the answer before")]
Order = Literal["bytes", "packets", "goodput", "retransmitted", "rtt", "start"]

_SORT: Final[dict[Order, tuple[str, bool]]] = {
    "bytes": ("payload_bytes", True),
    "packets": ("packets", True),
    "goodput": ("goodput_bps", False),
    "retransmitted": ("retransmitted_segments", True),
    "rtt": ("rtt_p95_ms", True),
    "start": ("start_ns", False),
}
"""The column of an order, and whether its largest value comes first."""

_FLOW: Final = (
    *("flow", "direction", "transport", "src", "src_port", "dst", "dst_port", "server_name", "start_s"),
    *("duration_s", "packets", "payload_bytes", "goodput_bps", "data_segments", "retransmitted_segments"),
    *("timeouts", "rtt_min_ms", "rtt_p50_ms", "rtt_p95_ms", "state"),
)

_LOSS: Final = (
    *("flow", "direction", "packet", "time_s", "seq_rel", "payload_bytes", "kind", "class", "evidence"),
    "spurious",
)

_INCIDENT: Final = (
    *("number", "link", "begin_ns", "end_ns", "course", "place", "confidence", "hosts", "reason"),
    "causes_ns",
)

_DIFFERENCE: Final = (
    *("metric", "group", "unit", "mean_a", "mean_b", "difference", "low", "high", "p_value", "verdict"),
    "reason",
)

_NO_DATA: Final = "It has no data, so nothing held it back."

_NS: Final = 1e9
_MOST_S: Final = 4e9
"""More than a century: in ns it is no longer an integer of 64 bits with the begin of a capture."""

QUESTIONS: Final = ("captures", "flows", "explain", "losses", "packets", "compare", "incidents")


class Questions:
    """Answers about what is in some folders. A capture is read at the first question, and kept."""

    def __init__(self, folders: Folders, spool: Path, key: bytes | None = None) -> None:
        """Answer about `folders`; large tables are in files of `spool`.

        With a key addresses and names are replaced.
        """
        self._folders = folders
        self._traces = KeptTraces(spool, key)
        self._measured = Cache(str(spool / "measured"))
        self._anonymizer = None if key is None else Anonymizer(key)

    def captures(self, *, offset: Offset = 0, max_bytes: MaxBytes = USUAL_BYTES) -> str:
        """List the captures that questions may be asked of, with their size."""
        found = self._folders.captures()
        rows = [
            {"capture": self._folders.shown(path), "bytes": path.stat().st_size} for path in found[offset:]
        ]
        return short_answer(
            {"total": len(found)},
            rows,
            called="captures",
            total=len(rows),
            next_of=from_offset(offset),
            max_bytes=max_bytes,
        )

    def flows(
        self,
        capture: Capture,
        *,
        sort: Annotated[Order, Field(description="goodput: the slowest first")] = "bytes",
        address: Annotated[str | None, Field(description="only flows of this address")] = None,
        port: Annotated[int | None, Field(description="only flows of this port")] = None,
        offset: Offset = 0,
        max_bytes: MaxBytes = USUAL_BYTES,
    ) -> str:
        """List the flows of a capture, one row for each direction. Times are seconds since its begin."""
        import polars as pl

        kept = self._kept(capture)
        frame = kept.flows
        if address is not None:
            frame = frame.filter((pl.col("src") == address) | (pl.col("dst") == address))
        if port is not None:
            frame = frame.filter((pl.col("src_port") == port) | (pl.col("dst_port") == port))
        column, descending = _SORT[sort]
        ordered = frame.sort(column, descending=descending, nulls_last=True, maintain_order=True)
        page = self._seconds(kept, ordered[offset : offset + max_bytes // 100 + 1], "start")
        return short_answer(
            self._facts(kept, capture) | {"total": ordered.height},
            rows_of(page.iter_rows(named=True), _FLOW),
            called="flows",
            total=ordered.height - offset,
            next_of=from_offset(offset),
            max_bytes=max_bytes,
        )

    def explain(
        self,
        capture: Capture,
        flow: Annotated[int, Field(ge=1, description="its number, as `flows` has it")],
        *,
        max_bytes: MaxBytes = USUAL_BYTES,
    ) -> str:
        """Say why a flow was no faster: the cause, its evidence, what would have helped, both directions."""
        from tfrctrace.reports.why_words import sentences, untold

        kept = self._kept(capture)
        if flow not in kept.flows["flow"]:
            raise UsageError(f"there is no flow {flow}", hint="`flows` lists them")
        found = [one for one in kept.why if one.flow == flow]
        causes = [
            {"direction": one.direction, "main_cause": one.main_cause, "share": one.main_cause_share}
            | {"congestion_control": one.congestion_control}
            for one in found
        ]
        told: list[dict[str, str]] = [
            {one.direction: text} for one in found for text in sentences(one, kept.why)
        ]
        unknown = untold(one for one in kept.untold if one.flow == flow)
        rows = [*told, *({"flow": text} for text in unknown)] or [{"flow": _NO_DATA}]
        return short_answer(
            self._facts(kept, capture) | {"flow": flow, "causes": causes or None},
            rows,
            called="sentences",
            total=len(rows),
            next_of=lambda shown: {"left_out": len(rows) - shown},
            max_bytes=max_bytes,
        )

    def losses(
        self,
        capture: Capture,
        *,
        at_s: Annotated[
            float | None, Field(ge=0, le=_MOST_S, description="seconds since the begin of the capture")
        ] = None,
        within_s: Annotated[
            float, Field(gt=0, le=_MOST_S, description="seconds before and after `at_s`")
        ] = 1.0,
        flow: Annotated[int | None, Field(description="only those of this flow")] = None,
        offset: Offset = 0,
        max_bytes: MaxBytes = USUAL_BYTES,
    ) -> str:
        """List retransmissions and packets out of order near a time, with their class and its evidence."""
        import polars as pl

        kept = self._kept(capture)
        frame = kept.losses
        if at_s is not None:
            middle = kept.trace.zero_ns + round(at_s * _NS)
            reach = round(within_s * _NS)
            frame = frame.filter(pl.col("time_ns").is_between(middle - reach, middle + reach))
        if flow is not None:
            frame = frame.filter(pl.col("flow") == flow)
        page = self._seconds(kept, frame[offset : offset + max_bytes // 50 + 1], "time")
        return short_answer(
            self._facts(kept, capture) | {"total": frame.height, "by_class": _counts(frame)},
            rows_of(page.iter_rows(named=True), _LOSS),
            called="losses",
            total=frame.height - offset,
            next_of=from_offset(offset),
            max_bytes=max_bytes,
        )

    def packets(
        self,
        capture: Capture,
        first: Annotated[int, Field(ge=1, description="number of the first packet")],
        last: Annotated[int, Field(ge=1, description="number of the last packet")],
        *,
        max_bytes: MaxBytes = USUAL_BYTES,
    ) -> str:
        """List packets by number, as the capture has them (`frame.number` of Wireshark)."""
        import polars as pl

        if last < first:
            raise UsageError(f"packet {last} is before packet {first}")
        kept = self._kept(capture)
        frame = kept.packets.filter(pl.col("packet").is_between(first, last)).head(max_bytes // 40).collect()
        page = self._seconds(kept, frame, "time").drop("time_ns")
        numbers = page["packet"]
        names = ["packet", "time_s", *(name for name in page.columns if name not in {"packet", "time_s"})]
        return short_answer(
            self._facts(kept, capture),
            rows_of(page.iter_rows(named=True), names),
            called="packets",
            total=page.height,
            next_of=lambda told: {"next_packet": numbers[told]},
            max_bytes=max_bytes,
        )

    def compare(
        self,
        before: Annotated[str, Field(description="a capture, or a folder of runs")],
        after: Annotated[str, Field(description="the same, to compare with")],
        *,
        metric: Annotated[list[str] | None, Field(description="only these metrics")] = None,
        offset: Offset = 0,
        max_bytes: MaxBytes = USUAL_BYTES,
    ) -> str:
        """Compare the metrics of two captures or sets of runs: what got better or worse, the worst first."""
        from tfrctrace.reports.compared import conclusion_of, conclusion_words, judged
        from tfrctrace.runs.workers import threads
        from tfrctrace.study.compare_runs import LEVEL, as_difference, differences
        from tfrctrace.study.definition import MeasuringPlan
        from tfrctrace.trace.measuring import check_names

        check_names(metric or [])
        found, problems = differences(
            str(self._folders.runs(before)),
            str(self._folders.runs(after)),
            MeasuringPlan(),
            metric or [],
            groups=None,
            level=LEVEL,
            holm=False,
            workers=threads(1),
            cache=self._measured,
            progress=None,
        )
        judgements = judged(map(as_difference, found))
        facts = {
            "before": before,
            "after": after,
            "verdict": conclusion_of(judgements),
            "in_words": conclusion_words(judgements),
            "caveats": caveats(self._publishable(problems)),
        }
        rows = rows_of(map(_fields, judgements[offset:]), _DIFFERENCE)
        return short_answer(
            facts | {"total": len(judgements)},
            rows,
            called="differences",
            total=len(rows),
            next_of=from_offset(offset),
            max_bytes=max_bytes,
        )

    def incidents(
        self,
        audit: Annotated[str, Field(description="folder that `tfrctrace audit` wrote, or its audit.json")],
        *,
        offset: Offset = 0,
        max_bytes: MaxBytes = USUAL_BYTES,
    ) -> str:
        """List the incidents of an audit in order of time: when, where, whom, with the reason."""
        if self._anonymizer is not None:
            raise UsageError("an audit has addresses, which are not replaced", hint="leave `--anonymize` out")
        is_folder = self._folders.file_or_folder(audit).is_dir()
        found = _audit(self._folders.file(f"{audit}/audit.json" if is_folder else audit), audit)
        facts = {
            "audit": audit,
            "links": len(found.links),
            "objectives_missed": sum(one.met is False for link in found.links for one in link.objectives),
            "objectives_unknown": sum(one.met is None for link in found.links for one in link.objectives),
        }
        rows = rows_of(map(_fields, found.incidents[offset:]), _INCIDENT)
        return short_answer(
            facts | {"total": len(found.incidents)},
            rows,
            called="incidents",
            total=len(rows),
            next_of=from_offset(offset),
            max_bytes=max_bytes,
        )

    def _kept(self, capture: str) -> KeptTrace:
        return self._traces.of(self._folders.file(capture))

    def _publishable(self, problems: list[Problem]) -> list[Problem]:
        return problems if self._anonymizer is None else list(map(self._anonymizer.problem, problems))

    def reasons_of(self, error: TfrctraceError) -> str:
        """Return why a question has no answer, in the words of a command."""
        if isinstance(error, InputError):
            error = InputError(self._publishable(error.problems))
        return plain_text("; ".join(map(_words, error.messages())))

    def _facts(self, kept: KeptTrace, capture: str) -> dict[str, Any]:
        """Return what each answer about a capture begins with."""
        return {"capture": capture, "caveats": kept.caveats}

    def _seconds(self, kept: KeptTrace, frame: pl.DataFrame, name: str) -> pl.DataFrame:
        """Return a table with a time in seconds since the begin of the capture."""
        import polars as pl

        since_begin = (pl.col(f"{name}_ns") - kept.trace.zero_ns) / _NS
        return frame.with_columns(since_begin.round(6).alias(f"{name}_s"))


def _words(message: Message) -> str:
    return f"{message.text} ({message.hint})" if message.hint else message.text


def _counts(losses: pl.DataFrame) -> dict[str, int]:
    """Return how many there are of each class, or kind where the class is not known."""
    import polars as pl

    classes = losses.select(pl.coalesce("class", "kind").alias("class"))["class"]
    return dict(classes.value_counts(sort=True).iter_rows())


def _fields(record: Any) -> dict[str, Any]:  # noqa: ANN401  a structure or a class of data
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(record)
    return found


def _audit(path: Path, called: str) -> AuditDocument:
    import msgspec

    from tfrctrace.metrics.results.audit import AuditDocument

    try:
        return msgspec.json.decode(path.read_bytes(), type=AuditDocument)
    except (ValueError, RecursionError) as error:
        problem = input_problem(called, "not_an_audit", f"not an audit of this release: {error}")
        raise InputError([problem]) from error
