"""What a study leaves in its folder: frames, tables, figures and the page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, cast, get_args

from tfrctrace.parsers.csv_text import frame_csv
from tfrctrace.reports.figures.chart_data import chart_csv
from tfrctrace.reports.figures.publication import ImageForm, chart_files
from tfrctrace.reports.files.table_files import parquet_bytes
from tfrctrace.reports.output import make_folder, open_output
from tfrctrace.reports.printers.means_table import comma_separated, latex, markdown
from tfrctrace.study.page.charts_and_grids import chart_of, drawn_series, grid_of, label_colours
from tfrctrace.study.page.criteria_tables import (
    criteria_frame,
    criteria_latex,
    criteria_markdown,
    profile_chart,
)
from tfrctrace.study.page.output_formats import SAVED_RUNS
from tfrctrace.study.page.paper_table import paper_markdown
from tfrctrace.study.page.result_frames import claims_frame, paper_frame, study_json, tests_frame
from tfrctrace.study.page.study_page import page_of
from tfrctrace.study.results.paper_rows import paper_rows
from tfrctrace.study.saved_runs import saved_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.reports.figures.charts import Chart
    from tfrctrace.reports.printers.means_table import Grid
    from tfrctrace.study.page.output_formats import StudyFormat
    from tfrctrace.study.run_study import StudyResults

_TABLES: Final = {"markdown": ("md", markdown), "latex": ("tex", latex)}
_CRITERIA: Final = {"markdown": ("md", criteria_markdown), "latex": ("tex", criteria_latex)}


def write_results(
    results: StudyResults, folder: str, forms: Sequence[StudyFormat], *, raw: bool = False
) -> list[str]:
    """Write what `forms` ask for below `folder`, and return the names of figures that show nothing.

    Text in CSV is made safe for spreadsheets and terminals unless `raw`.
    """
    grids = [grid_of(results, plan) for plan in results.study.tables]
    colours = label_colours(results.study)
    drawn = [(plan.name, chart_of(results, plan, colours)) for plan in results.study.figures if plan.is_drawn]
    charts = [chart for _, chart in drawn if chart is not None]
    for path, content in _files(results, grids, charts, forms, raw=raw):
        place = os.path.join(folder, path)
        make_folder(os.path.dirname(place))
        with open_output(place) as file:
            file.write(content)
    return [name for name, chart in drawn if chart is None]


def _files(
    results: StudyResults,
    grids: Sequence[Grid],
    charts: Sequence[Chart],
    forms: Sequence[StudyFormat],
    *,
    raw: bool,
) -> Iterator[tuple[str, bytes]]:
    """Give the path of each file and its content."""
    yield from _images(results, charts, forms)
    for form in forms:
        yield from _data_files(results, grids, charts, form, raw=raw)
        if form in _TABLES:
            suffix, write = _TABLES[form]
            for grid in grids:
                yield f"tables/{grid.name}.{suffix}", write(grid).encode(errors="backslashreplace")
        if form == "markdown" and (rows := paper_rows(results)):
            yield "paper.md", paper_markdown(results.study, rows).encode(errors="backslashreplace")
        if results.study.judging is not None and form in _CRITERIA:
            suffix, text_of = _CRITERIA[form]
            yield f"criteria.{suffix}", text_of(results).encode(errors="backslashreplace")
        if form == "html":
            yield "report.html", page_of(results, grids, charts).encode(errors="backslashreplace")


def _data_files(
    results: StudyResults, grids: Sequence[Grid], charts: Sequence[Chart], form: StudyFormat, *, raw: bool
) -> Iterator[tuple[str, bytes]]:
    """Give the path and the content of each file that programs read."""
    if form in {"csv", "parquet"}:
        for name, frame in _frames(results):
            content = parquet_bytes(frame) if form == "parquet" else frame_csv(frame, raw=raw)
            yield f"{name}.{form}", content
    if form == "csv":
        texts = [(f"tables/{grid.name}", comma_separated(grid, raw=raw)) for grid in grids]
        texts += [(f"figures/{chart.key}", chart_csv(chart, raw=raw)) for chart in charts]
        for name, text in texts:
            yield f"{name}.csv", text.encode(errors="backslashreplace")
    if form == "json":
        yield "study.json", study_json(results).encode(errors="backslashreplace")
    if form == "runs":
        records = list(zip(results.runs, results.records, strict=True))
        drawn = drawn_series(results)
        yield SAVED_RUNS, saved_runs(results.study, records, results.run_values, drawn, results.problems)


def _images(
    results: StudyResults, charts: Sequence[Chart], forms: Sequence[StudyFormat]
) -> Iterator[tuple[str, bytes]]:
    images: list[ImageForm] = [cast("ImageForm", form) for form in forms if form in get_args(ImageForm)]
    profile = () if results.study.judging is None else (profile_chart(results),)
    for chart in (*profile, *charts) if images else ():
        for image, content in chart_files(chart, images):
            yield f"figures/{chart.key}.{image}", content


def _frames(results: StudyResults) -> Iterator[tuple[str, pl.DataFrame]]:
    yield "values", results.values()
    yield "summary", results.summary()
    if results.tests:
        yield "tests", tests_frame(results)
    if results.verdicts:
        yield "claims", claims_frame(results)
    if (paper := paper_frame(results)) is not None:
        yield "paper", paper
    if (criteria := criteria_frame(results)) is not None:
        yield "criteria", criteria
