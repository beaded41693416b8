"""Files that a user keeps or writes, changed anyhow: a designed status and a sentence, never a traceback."""

from __future__ import annotations

import copy
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from udp_tfrc import LAYOUT, PORT, UdpConnection, write

from tfrctrace.runs.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import DataObject

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "data" / "ns2" / "probes-mixed.tr.gz"
SCENARIO = (ROOT / "sample_traces" / "up-and-down.toml").read_text()
LIMITS = """
[[limit]]
require = "p95(rtt_ms) < 100"
level = "warn"
name = "delay"

[[limit]]
require = "sum(goodput_bps) >= 1M where label web"

[[objective]]
require = "p95(rtt_ms) < 80 ms where direction sent"
severe = "p95(rtt_ms) < 200 ms where direction sent"
by = "host"
every = "1s"
least = 5
target = "99.5 %"

[[compare]]
quantity = "sum(goodput_bps)"
tolerance = "5%"
better = "higher"
"""
DONE, CHECK_FAILED, WRONG_USAGE, NOT_READ = 0, 1, 2, 3

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
"""Examples of each test."""

mutated = settings(max_examples=EXAMPLES, database=None)

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        *("", "\x00", "\u202e", "=1+1", "x" * 300, "../..", "%d{0}", "nan", "inf"),
        *(None, True, 0, -1, 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.5, 1e308, -1e308, 5e-324),
        *([], {}, [None], [[]], {"": 0}, ["x"], [1, "x", None], {"name": "x"}),
    ]
)
TOML_VALUES = st.sampled_from(
    [
        *(
            "",
            '""',
            '"x"',
            "'\u202e'",
            '"5 ms"',
            '"-1s"',
            '"1e999"',
            "true",
            "0",
            "-1",
            "0.0",
            "9e307",
            "nan",
        ),
        *(
            "-inf",
            "9223372036854775807",
            "1" * 5000,
            f"0x{'f' * 5000}",
            "[]",
            "{}",
            "[[0, 1]]",
            "[[1, 2], [0, -1]]",
            '["x", 1]',
        ),
        *("{ offset = 0, width = 9 }", "{ offset = 70, width = 1, is = -1 }", "1979-05-27", "[" * 2000),
    ]
)


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document with each of its keys."""
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, key
            yield from places(document[key])


def mutated_json(document: Any, data: DataObject) -> Any:
    """Change or remove some values of a document, at any depth."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        found = list(places(document))
        if not found:
            break
        container, key = found[data.draw(st.integers(0, len(found) - 1), label="place")]
        if data.draw(st.booleans(), label="remove"):
            del container[key]
        else:
            container[key] = data.draw(VALUES, label="value")
    return document


def mutated_bytes(content: bytes, data: DataObject) -> bytes:
    """Cut a file, or change some of its bytes."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4), label="changes")):
        at = data.draw(st.integers(0, max(len(changed) - 1, 0)), label="at")
        if data.draw(st.booleans(), label="cut"):
            del changed[at : at + data.draw(st.integers(1, 50), label="length")]
        else:
            changed[at : at + 1] = data.draw(st.binary(max_size=3), label="bytes")
    return bytes(changed)


def mutated_toml(text: str, data: DataObject) -> bytes:
    """Change values, remove, repeat and exchange lines of a TOML file; sometimes its bytes."""
    lines = text.splitlines()
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        at = data.draw(st.integers(0, len(lines) - 1), label="line")
        match data.draw(st.sampled_from(["value", "key", "remove", "repeat", "exchange"]), label="change"):
            case "value":
                lines[at] = f"{lines[at].partition('=')[0]}= {data.draw(TOML_VALUES)}"
            case "key":
                lines[at] = f"{data.draw(st.text(max_size=9))} = {lines[at].partition('=')[2]}"
            case "remove" if len(lines) > 1:
                del lines[at]
            case "repeat":
                lines.insert(at, lines[at])
            case _:
                other = data.draw(st.integers(0, len(lines) - 1), label="other line")
                lines[at], lines[other] = lines[other], lines[at]
    content = "\n".join(lines).encode(errors="surrogatepass")
    return mutated_bytes(content, data) if data.draw(st.integers(0, 3), label="bytes too") == 0 else content


def check_ending(outcome: Any, *statuses: int) -> None:
    assert outcome.status in (DONE, NOT_READ, *statuses), outcome.err
    assert "panicked" not in outcome.err
    if outcome.status in (WRONG_USAGE, NOT_READ):
        assert "error" in outcome.err.lower()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, run_in: Callable[..., Any]) -> Path:
    """Return a folder with a trace, saved results, a baseline and a study that was measured."""
    folder = tmp_path_factory.mktemp("mutated")
    for number in (1, 2):
        shutil.copy(TRACE, folder / f"fast-{number}.tr.gz")
    write(folder / "link.pcap", UdpConnection(at_sender=True).run()[:200])
    (folder / "study.toml").write_text(STUDY)
    trace = "fast-1.tr.gz"
    assert run_in(folder, "report", trace, "-o", "report.html", "--results", "results").status == DONE
    assert (
        run_in(
            folder, "check", trace, "-r", "sum(goodput_bps) > 0", "--write-baseline", "baseline.json"
        ).status
        == DONE
    )
    assert run_in(folder, *EXPERIMENT).status in (DONE, CHECK_FAILED)
    return folder


STUDY = """
title = "Fast"
description = "Two runs."

[runs]
files = ["fast-*.tr.gz"]
pattern = "{queue}-{run}.tr.gz"
repetition = "run"

[measure]
window = "500ms"
warmup = "100ms"

[labels]
udp = "transport udp"

[[quantity]]
name = "rate"
metric = "rate_bps"

[[quantity]]
name = "delay"
column = "delay_mean_ms"

[[table]]
name = "rates"
title = "Rate and delay"
rows = ["queue", "group"]
columns = ["rate", "delay"]

[[figure]]
name = "rates"
title = "Rate of a flow"
kind = "bars"
x = "queue"
y = "rate"
"""
EXPERIMENT = ("experiment", "study.toml", "--cache", "cache", "--jobs", "1", "-o", "study")


@mutated
@given(data=st.data())
def test_saved_results(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    results = folder / "changed"
    shutil.rmtree(results, ignore_errors=True)
    shutil.copytree(folder / "results", results)
    path = data.draw(st.sampled_from(sorted(results.iterdir())), label="file")
    content = path.read_bytes()
    if path.suffix == ".json" and data.draw(st.booleans(), label="as JSON"):
        path.write_text(json.dumps(mutated_json(json.loads(content), data)))
    else:
        path.write_bytes(mutated_bytes(content, data))
    check_ending(run_in(folder, "report", "--from", "changed", "-o", "changed.html"))


@pytest.fixture(scope="module")
def batch(folder: Path, run_in: Callable[..., Any]) -> Path:
    """Return results of a batch."""
    trace = "link.pcap"
    arguments = ("-o", "batch", "--by", "host", "--every", "1s", "--jobs", "1")
    assert run_in(folder, "batch", trace, *arguments).status == DONE
    return folder / "batch"


FROM_BATCH = {
    "audit": ("audit", "changed-batch", "-o", "made", "--profile", "quality-of-outcome"),
    "lake": ("lake", "changed-batch", "-o", "made"),
    "merge": ("merge", "changed-batch", "-o", "made"),
    "batch": ("batch", "link.pcap", "-o", "changed-batch", "--by", "host", "--every", "1s", "--jobs", "1"),
}


@mutated
@given(data=st.data())
def test_results_of_a_batch(run_in: Callable[..., Any], folder: Path, batch: Path, data: DataObject) -> None:
    results = folder / "changed-batch"
    for made in (results, folder / "made"):
        shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(batch, results)
    files = sorted(path for path in results.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files), label="file")
    content = path.read_bytes()
    if path.suffix == ".json" and data.draw(st.booleans(), label="as JSON"):
        path.write_text(json.dumps(mutated_json(json.loads(content), data)))
    else:
        path.write_bytes(mutated_bytes(content, data))
    command = data.draw(st.sampled_from(sorted(FROM_BATCH)), label="command")
    check_ending(run_in(folder, *FROM_BATCH[command]), WRONG_USAGE)


@pytest.mark.slow
@mutated
@given(data=st.data())
def test_study_files(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    (folder / "changed.toml").write_bytes(mutated_toml(STUDY, data))
    outcome = run_in(folder, "experiment", "changed.toml", *EXPERIMENT[2:])
    check_ending(outcome, CHECK_FAILED, WRONG_USAGE)


@pytest.mark.slow
@mutated
@given(data=st.data())
def test_cached_records(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    kept = {path: path.read_bytes() for path in (folder / "cache" / "runs").iterdir()}
    path = data.draw(st.sampled_from(sorted(kept)), label="entry")
    record = gzip.decompress(kept[path])[64:]
    if data.draw(st.booleans(), label="with a checksum"):
        key = path.name.partition(".")[0]
        Cache(str(folder / "cache")).put(key, mutated_json(json.loads(record), data))
    else:
        path.write_bytes(mutated_bytes(kept[path], data))
    try:
        check_ending(run_in(folder, *EXPERIMENT), CHECK_FAILED)
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


@mutated
@given(data=st.data())
def test_limits_files(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    (folder / "limits.toml").write_bytes(mutated_toml(LIMITS, data))
    beside = ("--label", "web=transport udp", "--baseline", "baseline.json", "--cache", "cache")
    outcome = run_in(folder, "check", "fast-1.tr.gz", "fast-2.tr.gz", "--limits", "limits.toml", *beside)
    check_ending(outcome, CHECK_FAILED, WRONG_USAGE)


@mutated
@given(data=st.data())
def test_baselines(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    document = json.loads((folder / "baseline.json").read_bytes())
    (folder / "changed.json").write_text(json.dumps(mutated_json(document, data)))
    outcome = run_in(folder, "check", "fast-1.tr.gz", "--baseline", "changed.json", "--cache", "cache")
    check_ending(outcome, CHECK_FAILED, WRONG_USAGE)


@mutated
@given(data=st.data())
def test_scenario_files(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    (folder / "cell.toml").write_bytes(mutated_toml(SCENARIO, data))
    check_ending(run_in(folder, "capacity", "--scenario", "cell.toml"), WRONG_USAGE)


@mutated
@given(data=st.data())
def test_layouts(run_in: Callable[..., Any], folder: Path, data: DataObject) -> None:
    (folder / "layout.toml").write_bytes(mutated_toml(LAYOUT, data))
    outcome = run_in(folder, "flows", "--dissect", f"udp:{PORT}=layout.toml", "link.pcap")
    check_ending(outcome, WRONG_USAGE)


@pytest.mark.parametrize(
    "integer", ["9" * 5000, "9223372036854775808", "-9223372036854775809", f"0x{'f' * 5000}"]
)
def test_an_integer_that_toml_does_not_have_is_an_error_in_the_file(
    run: Callable[..., Any], tmp_path: Path, integer: str
) -> None:
    (tmp_path / "cell.toml").write_text(f"payload_bytes = {integer}\n")
    outcome = run("capacity", "--scenario", "cell.toml")
    assert outcome.status in (WRONG_USAGE, NOT_READ)
    assert "`cell.toml`: not TOML: an integer of more than 64 bits" in outcome.err
