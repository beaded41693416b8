"""Tables of means as Markdown, LaTeX, CSV and for a page."""

from __future__ import annotations

import csv
import shutil
import subprocess

import pytest

from tfrctrace.reports.printers.means_table import (
    Column,
    Estimate,
    Grid,
    comma_separated,
    latex,
    markdown,
    view,
)

GRID = Grid(
    name="rates",
    title="Rates & shares",
    axes=("queue", "group"),
    columns=(Column(label="rate", unit="bit/s"), Column(label="jain_index", unit="")),
    rows=(
        (
            ("red", "tcp|x"),
            (
                Estimate(value=1_234_567.0, low=1_200_000.0, high=1_269_134.0, runs=3, reference=1.3e6),
                Estimate(value=0.98765),
            ),
        ),
        (("drop_tail", "50%"), (Estimate(value=None), Estimate(value=0.5, low=0.5, high=0.5, runs=2))),
    ),
)


def test_markdown_has_as_many_decimals_as_two_digits_of_the_interval_need():
    assert markdown(GRID).splitlines() == [
        "Rates & shares",
        "",
        r"| queue | group | rate (Mbit/s) | rate, reported | jain\_index |",
        "| --- | ---: | ---: | ---: | ---: |",
        r"| red | tcp\|x | 1.235 ± 0.035 | 1.3 | 0.9877 |",
        r"| drop\_tail | 50% | – | – | 0.5 ± 0 |",
    ]


def test_an_interval_that_was_cut_is_written_with_both_ends():
    columns = (Column(label="jain", unit=""),)
    cut = Estimate(value=0.89, low=0.74, high=1.0, runs=3)
    text = markdown(Grid(name="a", title="a", axes=("n",), columns=columns, rows=((("2",), (cut,)),)))
    assert text.splitlines()[-1] == "| 2 | 0.89 (0.74 to 1.00) |"


def test_latex_is_escaped_and_complete():
    text = latex(GRID)
    assert r"\caption{Rates \& shares}" in text
    assert r"drop\_tail & 50\% & -- & -- & 0.5 $\pm$ 0 \\" in text
    assert r"\begin{tabular}{llrrr}" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\hline")] == [
        1,
        1,
        1,
        0,
    ]
    assert "resizebox" not in text


def test_a_table_for_latex_fits_a_page():
    columns = tuple(Column(label=f"a rather long quantity {n}", unit="ms") for n in range(5))
    row = ((("x",), (Estimate(value=1.0),) * 5),)
    text = latex(Grid(name="wide", title="Wide", axes=("n",), columns=columns, rows=row * 85))
    tables = text.split(r"\begin{table}")[1:]
    assert [table.count(r"\\") - 1 for table in tables] == [40, 40, 5]
    assert [r"\label{tab:wide}" in table for table in tables] == [True, False, False]
    assert all(r"\resizebox{\linewidth}{!}{%" in table and r"\end{tabular}}" in table for table in tables)
    assert text.startswith(r"% needs \usepackage{booktabs} and \usepackage{graphicx}")


@pytest.mark.parametrize(
    "text", ["\\", "{", "}", "$", "^", "~", "#", "&", "%", "_", "<", "\x1b[31m", "\\input{/etc/passwd}"]
)
def test_no_name_is_a_command_of_latex(text):
    grid = Grid(name="a", title=text, axes=("x",), columns=(), rows=(((text,), ()),))
    (row,) = [line for line in latex(grid).splitlines() if line.endswith(r" \\")][1:]
    assert "\x1b" not in row
    assert "\\input" not in row


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_can_be_set(tmp_path):
    document = (
        rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{latex(GRID)}\end{{document}}"
    )
    (tmp_path / "a.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_csv_is_not_rounded():
    (first, second) = csv.DictReader(comma_separated(GRID).splitlines())
    assert (float(first["rate (bit/s)"]), first["rate (bit/s) runs"]) == (1_234_567.0, "3")
    assert (second["rate (bit/s)"], second["rate (bit/s) reference"]) == ("", "")


def test_a_page_sorts_by_the_value_and_says_of_how_many_runs_it_is():
    table = view(GRID)
    assert [heading.label for heading in table.headings] == [
        "queue",
        "group",
        "rate (Mbit/s)",
        "rate, reported",
        "jain_index",
    ]
    assert [(cell.text, cell.back, cell.sort) for cell in table.rows[0].cells[2:4]] == [
        ("1.235 ± 0.035", "n = 3", 1_234_567.0),
        ("1.3", "", 1_300_000.0),
    ]


def test_a_table_without_axes_has_one_row_for_all():
    table = view(Grid(name="a", title="t", axes=(), columns=GRID.columns, rows=(((), GRID.rows[0][1]),)))
    assert table.rows[0].cells[0].text == "all"
