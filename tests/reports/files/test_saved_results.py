"""Saved results: the same page without the trace, and a plain word for what is not there."""

import base64
import hashlib
import io
import json
import shutil
import zlib

import msgspec
import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import InputError
from tfrctrace.metrics.results.saved import SavedResults
from tfrctrace.metrics.results.schemas import schema_of
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.files.saved_results import load
from tfrctrace.reports.page.html import render

TRACES = {
    "capture": ["sample_traces/two-flows.pcapng.gz"],
    "simulation with TFRC": ["tests/data/ns2/tfrc/mixed.tr.xz"],
    "802.11": ["tests/data/wifi/ns3-wifi-radiotap-veno-udp-2-1.pcap.gz"],
    "cut capture": ["tests/data/captures/variant-truncated-last-record.pcap.gz"],
}

PAIR = ["tests/data/captures/linux-relay-loss-snd.pcap.gz", "tests/data/pair/linux-relay-loss-rcv.pcap.gz"]


@pytest.fixture(scope="module")
def saved(request, tmp_path_factory):
    """Return a function that saves the results of a trace, and gives the trace and their folder."""

    def save(paths, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(request.config.rootpath)
            trace = tfrctrace.open(paths, **options)
            return trace, trace.save_results(tmp_path_factory.mktemp("results"), title="a title")

    return save


@pytest.fixture(scope="module")
def simulation(saved):
    return saved(TRACES["simulation with TFRC"])[1]


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
@pytest.mark.parametrize("paths", TRACES.values(), ids=TRACES)
def test_the_page_of_saved_results_is_that_of_the_trace_to_the_byte(saved, paths):
    trace, folder = saved(paths)
    results, title = load(str(folder))
    assert render(build_report(results, title=title)) == trace.report_html(title="a title")


def test_a_pair_of_captures_keeps_its_clock(saved):
    trace, folder = saved(PAIR, pair=True)
    results, title = load(str(folder))
    assert results.clock is not None
    assert render(build_report(results, title=title)) == trace.report_html(title="a title")


def test_saving_twice_writes_the_same_bytes(saved, simulation):
    one, (_, two) = simulation, saved(TRACES["simulation with TFRC"])
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in two.iterdir())
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name


def test_tables_as_csv_hold_what_those_of_parquet_do(request, tmp_path):
    tfrctrace.open(request.config.rootpath / "sample_traces/dumbbell.tr.xz").save_results(tmp_path, csv=True)
    tables = sorted(tmp_path.glob("*.parquet"))
    assert (
        {path.stem for path in tables} == {path.stem for path in tmp_path.glob("*.csv")} > {"flows", "bins"}
    )
    for path in tables:
        table = pl.read_parquet(path)
        assert pl.read_csv(path.with_suffix(".csv"), schema=table.schema).equals(table), path.stem


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
@pytest.mark.parametrize("paths", [*TRACES.values(), PAIR], ids=[*TRACES, "pair"])
def test_the_facts_are_as_their_schema_says(saved, complaints, paths):
    _, folder = saved(paths, pair=paths is PAIR)
    facts = json.loads((folder / "results.json").read_text())
    schema = schema_of(SavedResults, "results")
    assert not list(complaints(facts, schema))
    assert set(facts["tables"].values()) | {"results.json"} == {path.name for path in folder.iterdir()}
    # what the schema accepts, the types do, and they write the same again
    again = msgspec.to_builtins(msgspec.convert(facts, SavedResults))
    assert json.loads(json.dumps(again)) == facts


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts | {"joined": "no"},
        lambda facts: facts | {"more": 1},
        lambda facts: {name: value for name, value in facts.items() if name != "digests"},
        lambda facts: facts | {"sources": [facts["sources"][0] | {"packets": -1}]},
        lambda facts: facts | {"sources": [facts["sources"][0] | {"more": 1}]},
        lambda facts: facts | {"warnings": [{}]},
        lambda facts: facts | {"metrics": {}},
    ],
)
def test_schema_and_types_refuse_the_same(simulation, complaints, change):
    wrong = change(json.loads((simulation / "results.json").read_text()))
    assert list(complaints(wrong, schema_of(SavedResults, "results")))
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, SavedResults)


def frame_bytes(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def changed_table(folder, name, content):
    """Write other content of a table, and its digest into the facts."""
    (folder / f"{name}.parquet").write_bytes(content)
    facts = folder / "results.json"
    document = json.loads(facts.read_text())
    document["digests"][name] = hashlib.sha256(content).hexdigest()
    facts.write_text(json.dumps(document))


def spoiled(folder, name):
    """Spoil saved results in one way."""
    facts = folder / "results.json"
    document = json.loads(facts.read_text())
    match name:
        case "missing":
            facts.unlink()
        case "not JSON":
            facts.write_text("{")
        case "a list":
            facts.write_text("[]")
        case "of version 2":
            facts.write_text(json.dumps(document | {"schema_version": 2}))
        case "without sources":
            facts.write_text(json.dumps({key: value for key, value in document.items() if key != "sources"}))
        case "a table from elsewhere":
            facts.write_text(json.dumps(document | {"tables": {**document["tables"], "../flows": "x"}}))
        case "a table missing":
            (folder / "bins.parquet").unlink()
        case "a table cut":
            (folder / "flows.parquet").write_bytes(b"PAR1")
        case "brackets in brackets":
            facts.write_text("[" * 100_000)
        case "a table cut, as the facts have it":
            changed_table(folder, "flows", b"PAR1")
        case "other columns":
            changed_table(folder, "flows", frame_bytes(pl.DataFrame({"a": [1]})))


def without_packets(document):
    del document["sources"][0]["packets"]


def beyond_all_clocks(document):
    document["sources"][0]["start_ns"] = 10**30


def with_a_clock(document):
    known = dict.fromkeys(("is_given", "has_delays"), True) | dict.fromkeys(
        ("reference_ns", "offset_ns", "packets"), 1
    )
    unknown = ("offset_low_ns", "offset_high_ns", "drift_ppm", "drift_low_ppm", "drift_high_ppm")
    document["clock"] = known | dict.fromkeys(unknown)


FACTS_SPOILED = {
    "packets missing": (without_packets, r"missing required field `packets` - at `\$.sources\[0\]`"),
    "time": (beyond_all_clocks, r"Expected `int` <= 9223372036854775807 - at `\$.sources\[0\].start_ns`"),
    "title": (lambda document: document.update(title=5), r"Expected `str`, got `int` - at `\$.title`"),
    "metric of nobody": (
        lambda document: document["metrics"]["metrics"][0].update(flows=[999]),
        "metrics of flows that are not in the table of flows",
    ),
    "metric of no number": (
        lambda document: document["metrics"]["metrics"][0].update(value=float("nan")),
        "not JSON: `NaN` is no number",
    ),
    "clock of one": (with_a_clock, "a clock needs two inputs"),
}

TABLES_SPOILED = {
    "flow": ("flows", pl.lit(None, dtype=pl.UInt32).alias("flow"), "a required value is missing"),
    "rate": ("flows", pl.lit(float("inf")).alias("goodput_bps"), "a number is not finite"),
    "width": ("bins", pl.lit(0, dtype=pl.Int64).alias("width_ns"), "a bin without a width"),
    "samples": ("rtt_quantiles", pl.lit(1).alias("more"), "columns differ from those of this release"),
}


SPOILED = {
    "missing": "no such file or directory",
    "not JSON": "not JSON",
    "a list": "results of version None, expected 3",
    "of version 2": "results of version 2, expected 3",
    "without sources": "missing required field `sources`",
    "a table from elsewhere": "not a table of a report",
    "a table missing": "cannot be read",
    "a table cut": "differs from what was saved",
    "a table cut, as the facts have it": "cannot be read",
    "other columns": "columns differ from those of this release",
    "brackets in brackets": "not JSON",
}


@pytest.fixture(scope="module")
def whole(saved):
    return saved(TRACES["802.11"])[1]


@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_results_are_refused_with_a_word(whole, tmp_path, name):
    folder = shutil.copytree(whole, tmp_path / "results")
    spoiled(folder, name)
    with pytest.raises(InputError, match=SPOILED[name]):
        load(str(folder))


@pytest.mark.parametrize("name", FACTS_SPOILED)
def test_facts_that_anybody_has_changed_are_refused_and_not_drawn(whole, tmp_path, name):
    folder = shutil.copytree(whole, tmp_path / "results")
    spoil, words = FACTS_SPOILED[name]
    document = json.loads((folder / "results.json").read_text())
    spoil(document)
    (folder / "results.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=words):
        load(str(folder))


@pytest.mark.parametrize("name", TABLES_SPOILED)
def test_tables_that_anybody_has_changed_are_refused_and_not_drawn(whole, tmp_path, name):
    folder = shutil.copytree(whole, tmp_path / "results")
    table, column, words = TABLES_SPOILED[name]
    changed_table(
        folder, table, frame_bytes(pl.read_parquet(folder / f"{table}.parquet").with_columns(column))
    )
    with pytest.raises(InputError, match=words):
        load(str(folder))


def packed(content):
    deflating = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return base64.b64encode(deflating.compress(content) + deflating.flush()).decode()


GRAPHS_SPOILED = {
    "markup": (pl.concat_str("tile", pl.lit("</script><b>")), "is damaged"),
    "markup after the end": (pl.lit(packed(b"\0")[:-1] + "=</script><b>"), "is damaged"),
    "nothing": (pl.lit(""), "cut off or too large"),
    "no value": (pl.lit(None, dtype=pl.String), "lacks a value"),
    "a cut end": (pl.lit(packed(b"\0\0")), "is damaged"),
    "gigabytes": (pl.lit(packed(bytes(50_000_000))), "cut off or too large"),
    "a number without end": (pl.lit(packed(b"\xff" * 100_000)), "too long|of an unknown class"),
    "many points": (pl.lit(2**32 - 1, dtype=pl.UInt32).alias("count"), "too large"),
    "no points": (pl.lit(0, dtype=pl.UInt32).alias("count"), "lacks a value"),
    "an end of time": (pl.lit(2**63 - 1).alias("start_ns"), "lacks a value"),
    "another flow": (pl.lit(77, dtype=pl.UInt32).alias("flow"), "not in the table of flows"),
    "another direction": (pl.lit("<b>").alias("direction"), "not in the table of flows"),
}


@pytest.fixture(scope="module")
def graphed(saved):
    return saved(TRACES["capture"])[1]


@pytest.mark.parametrize("name", GRAPHS_SPOILED)
def test_graphs_that_anybody_has_changed_are_refused_and_not_drawn(graphed, tmp_path, name):
    folder = shutil.copytree(graphed, tmp_path / "results")
    column, words = GRAPHS_SPOILED[name]
    column = column.alias("tile") if column.meta.output_name() in {"literal", "tile"} else column
    sequence = pl.read_parquet(folder / "sequence.parquet")
    changed_table(folder, "sequence", frame_bytes(sequence.with_columns(column)))
    with pytest.raises(InputError, match=words):
        load(str(folder))


@pytest.mark.parametrize("name", GRAPHS_SPOILED)
def test_a_tile_below_the_overview_is_checked_as_that_is(graphed, tmp_path, name):
    folder = shutil.copytree(graphed, tmp_path / "results")
    column, words = GRAPHS_SPOILED[name]
    column = column.alias("tile") if column.meta.output_name() in {"literal", "tile"} else column
    sequence = pl.read_parquet(folder / "sequence.parquet").with_row_index("place")
    points = sequence.filter(level=0)
    assert len(points) > 1, "the overview is a level above the points"
    spoiled = sequence.filter(place=points["place"][-1]).with_columns(column)
    changed = pl.concat([sequence.filter(pl.col("place") != points["place"][-1]), spoiled]).drop("place")
    changed_table(folder, "sequence", frame_bytes(changed))
    with pytest.raises(InputError, match=words):
        load(str(folder))


def test_each_class_of_a_segment_has_a_name(graphed, tmp_path):
    folder = shutil.copytree(graphed, tmp_path / "results")
    sequence = pl.read_parquet(folder / "sequence.parquet")
    points = pl.col("level") == 0
    one, tile = pl.lit(1, dtype=pl.UInt32), pl.lit(packed(b"\0\x0f" + bytes(20)))
    spoiled = sequence.with_columns(
        count=pl.when(points).then(one).otherwise("count"), tile=pl.when(points).then(tile).otherwise("tile")
    )
    changed_table(folder, "sequence", frame_bytes(spoiled))
    with pytest.raises(InputError, match="of an unknown class"):
        load(str(folder))


def test_a_graph_needs_a_level_that_is_one_tile(graphed, tmp_path):
    folder = shutil.copytree(graphed, tmp_path / "results")
    sequence = pl.read_parquet(folder / "sequence.parquet")
    changed_table(folder, "sequence", frame_bytes(pl.concat([sequence, sequence])))
    with pytest.raises(InputError, match="no level of a graph is one tile"):
        load(str(folder))
