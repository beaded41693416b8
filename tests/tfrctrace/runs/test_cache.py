"""Records that are kept: found again by what they were made of, and made again if they are damaged."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.runs import cache as caches
from tfrctrace.runs.cache import Cache, RunInput, default_folder, program_digest, program_files
from tfrctrace.runs.engine import measure_runs
from tfrctrace.runs.workers import processes
from tfrctrace.study.definition import MeasuringPlan
from tfrctrace.study.find_runs import Run
from tfrctrace.study.run_record import StudyTask, study_tasks

RECORD = {"failed": False, "problems": [], "metrics": [{"value": 0.1}, {"value": None}]}
KEY = "ab" * 32


def key_of(run, measuring, series):
    return StudyTask(run, measuring, tuple(series)).source.key(program_digest.__wrapped__())


@pytest.fixture
def entry(tmp_path):
    Cache(str(tmp_path)).put(KEY, RECORD)
    (path,) = tmp_path.glob("runs/*")
    return path


def test_what_was_kept_is_found_again(tmp_path, entry):
    assert Cache(str(tmp_path)).get(KEY) == RECORD
    assert Cache(str(tmp_path)).get("cd" * 32) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-9],
        lambda content: b"x" * 100,
        lambda content: content[:30] + b"\x00\x00\x00" + content[33:],
        lambda content: gzip.compress(b"0" * 64 + b"{}"),
        lambda content: gzip.compress(gzip.decompress(content).replace(b"0.1", b"0.2")),
    ],
)
def test_a_damaged_entry_counts_as_not_there(tmp_path, entry, damage):
    entry.write_bytes(damage(entry.read_bytes()))
    assert Cache(str(tmp_path)).get(KEY) is None


def test_the_entry_of_another_key_counts_as_not_there(tmp_path, entry):
    entry.rename(entry.with_name(f"{'cd' * 32}.json.gz"))
    assert Cache(str(tmp_path)).get("cd" * 32) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda record: [],
        lambda record: {},
        lambda record: {**record, "problems": [{}]},
        lambda record: {**record, "metrics": [{**record["metrics"][0], "value": "0.1"}]},
        lambda record: {**record, "flows": [{"flow": 1}]},
        lambda record: {**record, "series": {"rate": [{"flow": 1}]}},
        lambda record: {**record, "set": 1},
        lambda record: {**record, "more": 1},
    ],
)
def test_an_entry_that_no_run_has_is_measured_again(tmp_path, change):
    runs = Path(__file__).parents[2] / "data" / "study" / "runs"
    path = sorted(runs.iterdir())[0]
    (task,) = study_tasks([Run(str(path), path.name, {})], MeasuringPlan(), ("rate",))
    cache = Cache(str(tmp_path))
    whole = measure_runs([task], workers=processes(1), store=cache)
    assert measure_runs([task], workers=processes(1), store=cache).cached == 1
    (record,) = whole.records
    cache.put(task.source.key(program_digest()), change(json.loads(json.dumps(record))))
    again = measure_runs([task], workers=processes(1), store=cache)
    assert again.cached == 0
    assert again.records == whole.records


def test_a_key_changes_with_all_that_matters_and_with_nothing_else(tmp_path):
    (tmp_path / "a").write_text("one")
    run, measuring = Run(str(tmp_path / "a"), "a", {"x": 1}), MeasuringPlan()
    key = key_of(run, measuring, ["rate"])
    assert key_of(replace(run, parameters={"x": 2}), measuring, ["rate"]) == key
    os.utime(tmp_path / "a", (0, 0))
    key, before = key_of(run, measuring, ["rate"]), key
    assert key != before
    assert key_of(run, measuring, []) != key
    assert key_of(run, MeasuringPlan(window="2s"), ["rate"]) != key
    assert key_of(run, MeasuringPlan(tfrc={"df": 0.9}), ["rate"]) != key
    (tmp_path / "a").write_text("two")
    assert key_of(run, measuring, ["rate"]) != key


def test_the_key_of_a_folder_is_that_of_all_its_files(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a").write_text("one")
    run = Run(str(tmp_path / "run"), "run", {})
    keys = [key_of(run, MeasuringPlan(), [])]
    (tmp_path / "run" / "b").write_text("two")
    keys.append(key_of(run, MeasuringPlan(), []))
    (tmp_path / "run" / "b").rename(tmp_path / "run" / "c")
    keys.append(key_of(run, MeasuringPlan(), []))
    assert len(set(keys)) == 3


def test_an_input_that_can_be_read_only_once_has_no_key(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), str(tmp_path / "missing"), "-"):
        assert RunInput(name, (name,), {}).key("") is None


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file"))
    cache.put(KEY, RECORD)
    assert cache.get(KEY) is None
    cache.trim()


def test_the_entries_that_were_not_used_for_longest_are_removed(tmp_path):
    cache = Cache(str(tmp_path))
    keys = [f"{number:064d}" for number in range(4)]
    for number, key in enumerate(keys):
        cache.put(key, RECORD)
        os.utime(tmp_path / "runs" / f"{key}.json.gz", (number, number))
    cache.get(keys[0])
    size = (tmp_path / "runs" / f"{keys[0]}.json.gz").stat().st_size
    cache.trim(2 * size)
    assert [cache.get(key) is not None for key in keys] == [True, False, False, True]


@pytest.mark.parametrize(
    ("value", "folder"), [("/var/cache/x", "/var/cache/x/tfrctrace"), ("relative", None), ("", None)]
)
def test_entries_are_where_the_xdg_specification_puts_them(monkeypatch, value, folder):
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert default_folder() == (folder or os.path.expanduser("~/.cache/tfrctrace"))


def test_a_key_changes_with_what_measures_a_run(tmp_path, monkeypatch):
    package = tmp_path / "tfrctrace"
    for room in ("parsers", "metrics", "study", "gate"):
        (package / room).mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(caches, "PROGRAM", str(package))
    (tmp_path / "a").write_text("one")
    run = Run(str(tmp_path / "a"), "a", {})
    keys = [key_of(run, MeasuringPlan(), [])]
    for room in ("parsers", "metrics", "study", "gate"):
        (package / room / "new.py").write_text("")
        keys.append(key_of(run, MeasuringPlan(), []))
    assert len(set(keys)) == 5


def test_a_record_depends_on_all_that_reads_replays_and_measures():
    root = Path(tfrctrace.__file__).parent
    files = {os.path.relpath(file, root) for file in program_files()}
    for name in (
        "trace/tables.py",
        "parsers/schema.py",
        "replay/tcp/timer.py",
        "wlan/cell.py",
        "metrics/sets/up_down.py",
    ):
        assert name in files
    assert any(name.startswith("parsers/_native.") and name.endswith(".so") for name in files)
    assert not any(name.startswith(("reports/", "parsers/native/")) for name in files)


def test_an_entry_too_deep_for_python_counts_as_not_there(tmp_path, entry):
    text = b"[" * 100_000
    entry.write_bytes(gzip.compress(hashlib.sha256(text).hexdigest().encode() + text))
    assert Cache(str(tmp_path)).get(KEY) is None


def test_a_key_changes_with_the_content_of_a_layout(tmp_path):
    (tmp_path / "a").write_text("one")
    layout = tmp_path / "layout.toml"
    run, measuring = Run(str(tmp_path / "a"), "a", {}), MeasuringPlan(dissect=(f"udp:9000={layout}",))
    layout.write_text("[data]\nsequence = { offset = 0, width = 4 }")
    key = key_of(run, measuring, [])
    layout.write_text("[data]\nsequence = { offset = 4, width = 4 }")
    assert key_of(run, measuring, []) != key
