"""Tables as files: what is read back is what was written."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import get_args

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base.errors import input_problem
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading import StackedTable, arrow_schema
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.parsers.schema import FLOWS, TABLES
from tfrctrace.reports.files.json_schema import flows_document
from tfrctrace.reports.files.table_files import TableFormat, write_csv, write_flows_json, write_table

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
SCHEMA = pa.schema([("flow", pa.uint32()), ("rtt_ms", pa.float64()), ("notes", pa.string())])
ROWS = [
    {"flow": 1, "rtt_ms": 0.1, "notes": None},
    {"flow": 2, "rtt_ms": None, "notes": 'comma, "quote"\nand line'},
    {"flow": 4_294_967_295, "rtt_ms": 1e-9, "notes": ""},
]


def written(form, batches, schema=SCHEMA):
    file = io.BytesIO()
    write_table(file, form, batches, schema, raw=form == "csv")
    file.seek(0)
    return file


def batches_of(rows, size=2):
    return [pa.RecordBatch.from_pylist(rows[i : i + size], schema=SCHEMA) for i in range(0, len(rows), size)]


READERS = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}


def test_there_is_a_reader_for_each_form():
    assert set(READERS) == set(get_args(TableFormat))


@pytest.mark.parametrize("form", get_args(TableFormat))
def test_rows_come_back_from_several_batches(form):
    assert READERS[form](written(form, batches_of(ROWS))).rows(named=True) == ROWS


@pytest.mark.parametrize("form", get_args(TableFormat))
def test_a_table_without_rows_has_its_columns(form):
    frame = READERS[form](written(form, []))
    assert (frame.height, frame.columns) == (0, SCHEMA.names)


def test_csv_quotes_only_what_needs_it():
    lines = (
        written("csv", batches_of([*ROWS[:1], {"flow": 3, "rtt_ms": 2.0, "notes": "plain"}])).read().decode()
    )
    assert lines == "flow,rtt_ms,notes\n1,0.1,\n3,2.0,plain\n"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_survives_csv(texts):
    rows = [{"flow": 1, "rtt_ms": None, "notes": text} for text in texts]
    content = written("csv", batches_of(rows)).read().decode()
    # a lone carriage return is quoted as it must be, and Python's own reader takes it back
    assert [row[2] for row in csv.reader(io.StringIO(content, newline=""))][1:] == texts


@pytest.fixture(params=["linux-udp-vs-tcp-rcv.pcap.gz", "odd names"])
def analysis(request, tmp_path):
    """Give what the core finds in a capture, and in a text with hosts that both forms have to escape."""
    path = CAPTURES / request.param
    if request.param == "odd names":
        path = tmp_path / "a, b.txt"
        names = 'a"b,\N{LATIN SMALL LETTER E WITH ACUTE}', "\N{GRINNING FACE}\\"
        line = f"1.000001 IP {names[0]}.80 > {names[1]}.443: Flags [S], seq 5, win 1, length 0\n"
        path.write_text(line * 3, encoding="utf-8")
    return _native.analyse([str(path)], ReadSettings(), collect={"bins", "rtt", "losses", "rounds", "tcp"})


@pytest.mark.parametrize("name", ["flows", "tcp", "bins", "rtt", "losses", "rounds"])
def test_the_core_writes_the_text_that_polars_and_python_write(analysis, name):
    table = StackedTable([analysis.table(name)])
    file = io.BytesIO()
    write_csv(file, analysis.table(name).columns, table.csv())
    assert file.getvalue() == written("csv", table.batches(), arrow_schema(name)).read()
    rows = list(table.rows())
    assert ",\n".join(table.json()) == ",\n".join(map(json.dumps, rows))
    # in pieces as well
    pieces = [analysis.table(name).json(start, start + 3) for start in range(0, len(table), 3)]
    assert ",\n".join(pieces) == ",\n".join(table.json())


def test_parquet_holds_one_row_group_for_each_batch():
    import pyarrow.parquet as pq

    assert pq.ParquetFile(written("parquet", batches_of(ROWS))).num_row_groups == 2


def document(flows=(), sources=(), problems=()):
    file = io.StringIO()
    write_flows_json(file, map(json.dumps, flows), sources, problems, schema_version=1, version="0")
    return file.getvalue()


def test_json_holds_everything_in_the_documented_order():
    text = document([{"flow": 1}, {"flow": 2}], [{"source": "a"}], [input_problem("a", "empty", "is empty")])
    parsed = json.loads(text)
    assert list(parsed) == ["schema_version", "tool", "sources", "flows", "hops", "warnings"]
    assert parsed["flows"] == [{"flow": 1}, {"flow": 2}]
    assert parsed["warnings"][0]["text"] == "`a`: is empty"


def test_json_has_a_line_for_each_row():
    assert len(document([{"flow": n} for n in range(7)]).splitlines()) == len(document().splitlines()) + 7


def test_json_never_has_a_number_that_json_does_not_know():
    with pytest.raises(ValueError, match="Out of range"):
        document(sources=[{"start_ns": float("nan")}])


@given(st.dictionaries(st.text(), st.text()))
def test_json_shows_a_terminal_nothing_but_ascii(row):
    assert document(sources=[row]).isascii()


def test_the_json_of_a_capture_is_as_its_schema_says(run, write_capture, conversation, complaints):
    write_capture("whole.pcap", [*conversation(), *conversation(40_001), b"\0" * 60])
    write_capture("cut.pcap", conversation(), cut=3)
    outcome = run("flows", "--format", "json", "whole.pcap", "cut.pcap", "nowhere.pcap")
    parsed = json.loads(outcome.out)
    assert not list(complaints(parsed, flows_document()))
    assert [len(parsed[name]) for name in ("flows", "warnings")] == [6, 2]


def test_the_schema_finds_what_is_wrong(complaints):
    right = {
        "schema_version": 2,
        "tool": {"name": "tfrctrace", "version": "0"},
        "sources": [],
        "flows": [],
        "hops": [],
        "warnings": [],
    }
    assert not list(complaints(right, flows_document()))
    for wrong in ({"schema_version": 1}, {"flows": [{}]}, {"sources": {}}, {"more": 1}):
        assert list(complaints(right | wrong, flows_document()))


def test_the_schema_explains_every_column():
    described = flows_document()["properties"]["flows"]["items"]["properties"]
    for column in FLOWS:
        assert column.meaning in described[column.name]["description"]
        assert ("null" in described[column.name]["type"]) == bool(column.null_when)


# what algorithms decide is no table of a trace: `tfrctrace replay` writes it
@pytest.mark.parametrize("table", [table for table in TABLES if table not in {"replay", "closed_loop"}])
def test_every_table_can_be_converted_to_every_form(run, write_capture, conversation, tmp_path, table):
    write_capture("a.pcap", conversation())
    places = {"transits": 2, "hops": 3}.get(table, 1)
    others = [write_capture(f"{place}.pcap", conversation()) for place in range(1, places)]
    captures = ["--pair", "a.pcap", *others] if others else ["a.pcap"]
    frames = []
    for form in get_args(TableFormat):
        assert run("convert", *captures, "-w", table, "-o", f"x.{form}").status == 0
        frames.append(READERS[form](tmp_path / f"x.{form}"))
    assert all(frame.columns == [column.name for column in TABLES[table]] for frame in frames)
    assert frames[1].equals(frames[2])
    assert frames[0].height == frames[1].height
    filled = {"flows", "tcp", "packets", "bins", "rtt", "rtt_buckets", "rounds", "transits"}
    assert frames[0].height > 0 or table not in filled
