"""Tables as files: what is read back is what was written."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import get_args

import msgspec
import polars as pl
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base.errors import input_problem
from tfrctrace.metrics.results.flows_document import FlowsDocument
from tfrctrace.metrics.results.schemas import schema_of
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading import StackedTable
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.parsers.schema import FLOWS, TABLES
from tfrctrace.reports.files.table_files import (
    TableFormat,
    parquet_bytes,
    write_csv,
    write_flows_json,
    write_table,
)

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
FLOWS_SCHEMA = schema_of(FlowsDocument, "flows")
SCHEMA = pl.Schema({"flow": pl.UInt32, "rtt_ms": pl.Float64, "notes": pl.String})
ROWS = [
    {"flow": 1, "rtt_ms": 0.1, "notes": None},
    {"flow": 2, "rtt_ms": None, "notes": 'comma, "quote"\nand line'},
    {"flow": 4_294_967_295, "rtt_ms": 1e-9, "notes": ""},
]


def written(form, tables, schema=SCHEMA):
    file = io.BytesIO()
    empty = pl.DataFrame(schema=schema) if isinstance(schema, pl.Schema) else schema
    write_table(file, form, tables, empty, raw=form == "csv")
    file.seek(0)
    return file


def tables_of(rows, size=2):
    return [pl.DataFrame(rows[i : i + size], schema=SCHEMA) for i in range(0, len(rows), size)]


READERS = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}


def test_there_is_a_reader_for_each_form():
    assert set(READERS) == set(get_args(TableFormat))


@pytest.mark.parametrize("form", get_args(TableFormat))
def test_rows_come_back_from_several_tables(form):
    assert READERS[form](written(form, tables_of(ROWS))).rows(named=True) == ROWS


@pytest.mark.parametrize("form", get_args(TableFormat))
def test_a_table_without_rows_has_its_columns(form):
    frame = READERS[form](written(form, []))
    assert (frame.height, frame.schema) == (0, SCHEMA) or (form == "csv" and frame.columns == SCHEMA.names())


def test_csv_quotes_only_what_needs_it():
    lines = (
        written("csv", tables_of([*ROWS[:1], {"flow": 3, "rtt_ms": 2.0, "notes": "plain"}])).read().decode()
    )
    assert lines == "flow,rtt_ms,notes\n1,0.1,\n3,2.0,plain\n"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_survives_csv(texts):
    rows = [{"flow": 1, "rtt_ms": None, "notes": text} for text in texts]
    content = written("csv", tables_of(rows)).read().decode()
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
    assert file.getvalue() == written("csv", table.parts(), _native.empty_table(name)).read()
    rows = list(table.rows())
    assert ",\n".join(table.json()) == ",\n".join(map(json.dumps, rows))
    # in pieces as well
    pieces = [analysis.table(name).json(start, start + 3) for start in range(0, len(table), 3)]
    assert ",\n".join(pieces) == ",\n".join(table.json())


def test_row_groups_of_parquet_are_filled_by_any_number_of_tables():
    numbers = pl.DataFrame({"number": range(150_000)}, schema={"number": pl.UInt64})
    whole = parquet_bytes(numbers)
    pieces = io.BytesIO()
    write_table(pieces, "parquet", numbers.iter_slices(9_999), numbers)
    for content in (whole, pieces.getvalue()):
        file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        groups = [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]
        assert groups == [32_768, 32_768, 32_768, 32_768, 18_928]
        assert pl.read_parquet(io.BytesIO(content)).equals(numbers)


VALUES_OF = {
    pl.UInt32: st.integers(0, 2**32 - 1),
    pl.UInt64: st.integers(0, 2**64 - 1),
    pl.Int64: st.integers(-(2**63), 2**63 - 1),
    pl.Float64: st.floats(),
    pl.String: st.text(st.characters(exclude_categories=["Cs"])),
    pl.Boolean: st.booleans(),
    pl.List(pl.UInt32): st.lists(st.integers(0, 2**32 - 1), max_size=3),
}


@given(st.lists(st.tuples(*(st.none() | values for values in VALUES_OF.values()))), st.integers(1, 5))
def test_any_frame_survives_files(rows, size):
    frame = pl.DataFrame(rows, schema={str(kind): kind for kind in VALUES_OF}, orient="row")
    for form, other_reader in {
        "parquet": pyarrow.parquet.read_table,
        "arrow": pyarrow.feather.read_table,
    }.items():
        file = io.BytesIO()
        write_table(file, form, frame.iter_slices(size), frame)
        read = READERS[form](io.BytesIO(file.getvalue()))
        assert read.schema == frame.schema
        assert read.equals(frame)
        # pyarrow and so pandas read the same
        assert pl.DataFrame(other_reader(io.BytesIO(file.getvalue()))).equals(frame)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_what_the_file_raises_comes_through_the_core(form):
    frame = pl.DataFrame({"number": range(200_000)})

    class Full(io.BytesIO):
        def write(self, content):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        write_table(Full(), form, [frame], frame)


def test_what_is_no_table_cannot_be_written():
    with pytest.raises(AttributeError, match="__arrow_c_stream__"):
        parquet_bytes({"a": 1})


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
    assert not list(complaints(parsed, FLOWS_SCHEMA))
    assert [len(parsed[name]) for name in ("flows", "warnings")] == [6, 2]


@pytest.mark.parametrize(
    "name", ["two-flows.pcapng.gz", "mixed.pcap.zst", "dumbbell.tr.xz", "dccp-ccid3.pcap.gz"]
)
def test_the_json_of_a_sample_trace_is_as_its_schema_says(run, request, complaints, name):
    outcome = run("flows", "--format", "json", request.config.rootpath / "sample_traces" / name)
    parsed = json.loads(outcome.out)
    assert parsed["flows"]
    assert not list(complaints(parsed, FLOWS_SCHEMA))
    msgspec.convert(parsed, FlowsDocument)


def test_the_schema_finds_what_is_wrong(complaints):
    right = {
        "schema_version": 3,
        "tool": {"name": "tfrctrace", "version": "0"},
        "sources": [],
        "flows": [],
        "hops": [],
        "warnings": [],
    }
    assert not list(complaints(right, FLOWS_SCHEMA))
    for wrong in ({"schema_version": 2}, {"flows": [{}]}, {"sources": {}}, {"more": 1}):
        assert list(complaints(right | wrong, FLOWS_SCHEMA))


def test_the_schema_explains_every_column():
    described = FLOWS_SCHEMA["$defs"]["FlowRow"]["properties"]
    assert described.keys() == {column.name for column in FLOWS}
    for column in FLOWS:
        assert column.meaning in described[column.name]["description"]
        assert ({"type": "null"} in described[column.name].get("anyOf", [])) == bool(column.null_when)


# `tfrctrace replay` and `tfrctrace groups` write their tables themselves
@pytest.mark.parametrize(
    "table",
    [
        table
        for table in TABLES
        if table not in {"replay", "one_step", "closed_loop", "groups", "group_buckets"}
    ],
)
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
