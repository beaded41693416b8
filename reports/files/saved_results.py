"""Results of a report in a directory, and back: `results.json` with the facts, a Parquet file for each table.

The page made of saved results is that of the trace, byte for byte. `docs/results.schema.json` describes the
JSON; the tables have the columns of `docs/columns.md`, `causes` those that are drawn.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from typing import TYPE_CHECKING, Final, cast

from tfrctrace.base.digests import sha256_of
from tfrctrace.base.errors import InputError, describe, input_problem
from tfrctrace.metrics.catalogue import WITHOUT_SPARSE
from tfrctrace.metrics.flow.causes import CAUSE_COURSE
from tfrctrace.metrics.flow.cumulative_losses import LOSS_COURSE
from tfrctrace.metrics.flow.first_losses import FIRST_LOSSES
from tfrctrace.metrics.flow.wifi_links import LINK_BINS
from tfrctrace.metrics.link import HOST_COURSE, LINK_COURSE, LINK_HOSTS, LINK_SIDES, LinkTables
from tfrctrace.parsers.csv_text import frame_csv
from tfrctrace.parsers.schema import TABLES
from tfrctrace.reports.figures.sequence_tiles import check_tiles
from tfrctrace.reports.files.table_files import parquet_bytes
from tfrctrace.reports.output import make_folder, open_output, open_text_output
from tfrctrace.reports.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.saved import SavedResults

FACTS_NAME: Final = "results.json"

_DERIVED: Final = {
    "rtt_quantiles": {"flow": "uint32", "direction": "string", "share": "float64", "rtt_ns": "int64"},
    "sequence": {
        "flow": "uint32",
        "direction": "string",
        "level": "uint32",
        "count": "uint32",
        "start_ns": "int64",
        "end_ns": "int64",
        "tile": "string",
    },
    "link_bins": LINK_BINS,
    "named_controls": {
        "flow": "uint32",
        "direction": "string",
        "congestion_control": "string",
        "congestion_control_reason": "string",
        "compared_rounds": "uint64",
        "predicted_rounds": "uint64",
        "window_left": "float64",
        "rtt_probes": "uint64",
        "delay_backoffs": "uint64",
        "windows_estimated": "boolean",
    },
    "predicted_windows": {
        "flow": "uint32",
        "direction": "string",
        "congestion_control": "string",
        "time_ns": "int64",
        "cwnd_bytes": "float64",
        "predicted_bytes": "float64",
    },
    "loss_course": LOSS_COURSE,
    "first_losses": FIRST_LOSSES,
}

_LINK: Final = {
    "link_sides": LINK_SIDES,
    "link_course": LINK_COURSE,
    "link_hosts": LINK_HOSTS,
    "link_host_course": HOST_COURSE,
}
"""The same of the tables of a link, in their order; all of them or none."""

_COLUMNS: Final = {**_DERIVED, **_LINK}
"""Columns of frames that are no tables of the parsers, and may not be there."""

_SOURCES_OF_PAIR: Final = 2

_CSV_ROWS: Final = 16_384
"""Rows that are text at one time, some megabytes."""


def save(
    results: Results, folder: str, *, title: str, version: str, csv: bool = False, raw: bool = False
) -> None:
    """Write `results` of a report called `title` into `folder`, which is made if it is not there.

    With `csv` there is a CSV file beside each Parquet file, for programs that read no other form; its text is
    made safe for spreadsheets and terminals unless `raw`.
    """
    make_folder(folder)
    frames = {"flows": results.flows, "bins": results.bins, **results.tables}
    frames |= {name: frame for name in _DERIVED if (frame := getattr(results, name)) is not None}
    if results.link is not None:
        link = results.link
        frames |= dict(zip(_LINK, (link.sides, link.course, link.hosts, link.host_course), strict=True))
    import msgspec

    from tfrctrace.metrics.results.saved import RESULTS_SCHEMA_VERSION

    document = {
        "schema_version": RESULTS_SCHEMA_VERSION,
        "tool": {"name": "tfrctrace", "version": version},
        "title": title,
        "made_with": results.made_with,
        "joined": results.joined,
        "clock": results.clock,
        "tables": {name: f"{name}.parquet" for name in frames},
        "sources": list(results.sources),
        "warnings": [
            {**problem, "text": describe(cast("Problem", problem)).text} for problem in results.problems
        ],
        "metrics": msgspec.to_builtins(results.measured),
    }
    with contextlib.ExitStack() as files:
        # all files move to their places at the end, the facts last: if one cannot be written, those of
        # before stay
        facts = os.path.join(folder, FACTS_NAME)
        text = files.enter_context(open_text_output(facts))
        digests: dict[str, str] = {}
        for name, frame in frames.items():
            file = files.enter_context(open_output(os.path.join(folder, f"{name}.parquet")))
            content = parquet_bytes(frame)
            file.write(content)
            file.flush()
            digests[name] = hashlib.sha256(content).hexdigest()
            if csv:
                file = files.enter_context(open_output(os.path.join(folder, f"{name}.csv")))
                file.writelines(_csv_pieces(frame, raw=raw))
                file.flush()
        json.dump({**document, "digests": digests}, text, allow_nan=False, indent=1)
        text.write("\n")
        text.flush()
        # a folder without the facts is not complete
        with contextlib.suppress(FileNotFoundError):
            os.remove(facts)


def _csv_pieces(frame: pl.DataFrame, *, raw: bool) -> Iterator[bytes]:
    """Give a table as CSV, many rows at a time."""
    yield frame_csv(frame.clear(), raw=raw)
    for piece in frame.iter_slices(_CSV_ROWS):
        yield frame_csv(piece, raw=raw, header=False)


def load(folder: str) -> tuple[Results, str]:
    """Return the results that were saved in `folder`, and their title.

    Raises `InputError` if they are not there, not whole, or of another version.
    """
    import msgspec

    saved = _facts(folder)
    names = dict.fromkeys(("flows", "bins", *saved.tables))
    frames = {name: _frame(folder, name, saved.digests.get(name)) for name in names}
    _check_against(saved, frames["flows"], os.path.join(folder, FACTS_NAME))
    if "sequence" in frames:
        _check_graphs(frames["sequence"], frames["flows"], os.path.join(folder, "sequence.parquet"))
    problems = msgspec.to_builtins(saved.warnings)
    for problem in problems:
        del problem["text"]
    return Results(
        flows=frames.pop("flows"),
        bins=frames.pop("bins"),
        rtt_quantiles=frames.pop("rtt_quantiles", None),
        sequence=frames.pop("sequence", None),
        link_bins=frames.pop("link_bins", None),
        named_controls=frames.pop("named_controls", None),
        predicted_windows=frames.pop("predicted_windows", None),
        loss_course=frames.pop("loss_course", None),
        first_losses=frames.pop("first_losses", None),
        link=_link(frames),
        tables=frames,
        sources=msgspec.to_builtins(saved.sources),
        problems=problems,
        measured=saved.metrics,
        made_with=saved.made_with,
        joined=saved.joined,
        clock=msgspec.to_builtins(saved.clock),
    ), saved.title


def _link(frames: dict[str, pl.DataFrame]) -> LinkTables | None:
    """Take the tables of a link out of `frames`."""
    found = [frames.pop(name, None) for name in _LINK]
    known = [frame for frame in found if frame is not None]
    return LinkTables(*known) if len(known) == len(found) else None


def _facts(folder: str) -> SavedResults:
    import msgspec

    from tfrctrace.metrics.results.saved import RESULTS_SCHEMA_VERSION, SavedResults

    path = os.path.join(folder, FACTS_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file, parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        hint = "`tfrctrace report TRACE --results DIRECTORY` writes results"
        raise _refused(path, (error.strerror or str(error)).lower(), hint) from error
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"not JSON: {error}") from error
    found = document.get("schema_version") if isinstance(document, dict) else None
    if found != RESULTS_SCHEMA_VERSION:
        raise _refused(
            path,
            f"results of version {found}, expected {RESULTS_SCHEMA_VERSION}",
            "make them again from the trace with this release",
        )
    try:
        return msgspec.convert(document, SavedResults)
    except ValueError as error:
        raise _refused(path, f"not as its schema says: {error}") from error


def _finite(text: str) -> float:
    """Return a number. Python reads NaN and infinity, which JSON does not have."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"`{text[:40]}` is no number")
    return value


def _check_against(saved: SavedResults, flows: pl.DataFrame, path: str) -> None:
    """Raise if the facts do not fit the flows and inputs."""
    if saved.clock is not None and len(saved.sources) != _SOURCES_OF_PAIR:
        raise _refused(path, "a clock needs two inputs")
    if saved.metrics is None:
        return
    known = set(flows["flow"].to_list())
    sets, metrics = saved.metrics.competing_sets, saved.metrics.metrics
    small = ([flow.flow for flow in competing.small_flows] for competing in sets)
    named_flows = (*(found.flows for found in sets), *(metric.flows for metric in metrics))
    for named in (*named_flows, *small):
        if not known.issuperset(named):
            raise _refused(path, "metrics of flows that are not in the table of flows")
    is_of_none = any(not metric.flows and not _may_be_empty(metric.name) for metric in metrics)
    if is_of_none or not all(found.flows for found in sets):
        raise _refused(path, "metrics of no flow")


def _check_graphs(sequence: pl.DataFrame, flows: pl.DataFrame, path: str) -> None:
    """Raise if time-sequence graphs cannot be drawn, or are of no flow."""
    if sequence.join(flows, on=["flow", "direction"], how="anti").height:
        raise _refused(path, "a graph of a flow that is not in the table of flows")
    try:
        check_tiles(sequence)
    except ValueError as error:
        raise _refused(path, str(error)) from error


def _may_be_empty(name: str) -> bool:
    """Return whether a metric may be of no flow: of sparse ones, or of a group without these."""
    return name == "sparse_flows" or name.endswith(WITHOUT_SPARSE)


def _frame(folder: str, name: str, digest: str | None) -> pl.DataFrame:
    import polars as pl
    from polars.exceptions import PolarsError

    path = os.path.join(folder, f"{name}.parquet")
    if name not in TABLES and name not in _COLUMNS:
        raise _refused(path, "not a table of a report")
    try:
        if sha256_of(path) != digest:
            raise _refused(path, "differs from what was saved", "make the results again from the trace")
        frame = pl.read_parquet(path)
    except (OSError, PolarsError) as error:
        raise _refused(path, f"cannot be read: {str(error).splitlines()[0]}") from error
    columns = [one for one in TABLES.get(name, ()) if name != "causes" or one.name in CAUSE_COURSE]
    expected = {column.name: column.type for column in columns} or _COLUMNS[name]
    if {column: str(kind).lower() for column, kind in frame.schema.items()} != expected:
        raise _refused(
            path,
            "columns differ from those of this release",
            "make the results again from the trace with this release",
        )
    _check_values(frame, path, [column.name for column in columns if not column.null_when])
    return frame


def _check_values(frame: pl.DataFrame, path: str, always_known: Sequence[str]) -> None:
    """Raise if a required value is missing or a number is not finite."""
    import polars as pl
    import polars.selectors as cs

    if any(frame[name].null_count() for name in always_known):
        raise _refused(path, "a required value is missing")
    if not all(column.is_finite().all() for column in frame.select(cs.float())):
        raise _refused(path, "a number is not finite")
    if "width_ns" in frame.columns and frame.filter(pl.col("width_ns") <= 0).height:
        raise _refused(path, "a bin without a width")


def _refused(path: str, message: str, hint: str | None = None) -> InputError:
    return InputError([input_problem(path, "results", message, hint=hint)])
