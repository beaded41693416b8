"""Chains that grow: each batch reads the new files only, and its results are those of one batch over all."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tfrctrace.base.grouping import parse_grouping
from tfrctrace.batch.chain_task import BatchPlan
from tfrctrace.batch.run_batch import chains_of, perform_batch
from tfrctrace.runs.workers import processes

ROOT = Path(__file__).parents[3]
CAPTURES = {
    "tcp with losses": "tests/data/captures/linux-one-cubic-rcv.pcap.gz",
    "dccp": "sample_traces/dccp-ccid3.pcap.gz",
    "rtp": "tests/data/rtp/gstreamer-sender.pcap.gz",
}
MIDNIGHT_S = 1_700_006_400
MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
MONTH_NS = 30 * 24 * HOUR_NS


def batch(run, *more):
    outcome = run("batch", "parts", "-o", "results", "-j", "1", *more)
    assert outcome.status == 0, outcome.err
    return outcome.err


def results(folder):
    """Return what is in a folder of results, but for checkpoints, and the names of these."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    kept = [path.name for path in files.values() if path.suffix == ".checkpoint"]
    return {name: path.read_bytes() for name, path in files.items() if path.suffix != ".checkpoint"}, kept


def checkpoint_in(folder):
    (path,) = folder.glob("chains/*/*.checkpoint")
    return path


def batch_plan(folder):
    return BatchPlan(str(folder), "program", {}, parse_grouping("host", "1min"))


@pytest.fixture
def parts(tmp_path, rotate):
    """Return the files of a capture that was rotated, beside the folder that a batch reads."""

    def make(name, files):
        capture = gzip.decompress((ROOT / CAPTURES[name]).read_bytes())
        (tmp_path / "parts").mkdir()
        return rotate(capture, tmp_path / "coming", files)

    return make


def come(tmp_path, *paths, age_ns=HOUR_NS):
    """Let files that were written before a time come to the folder that a batch reads."""
    for path in paths:
        set_age(Path(shutil.copy(path, tmp_path / "parts")), age_ns)


def set_age(path, age_ns):
    time_ns = time.time_ns() - age_ns
    os.utime(path, ns=(time_ns, time_ns))


def spoil(path):
    """Change the inside of a file, but neither its size nor its time."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def expected(run, tmp_path):
    """Return the results of one batch over all files."""
    shutil.rmtree(tmp_path / "whole", ignore_errors=True)
    assert run("batch", "parts", "-o", "whole", "-j", "1").status == 0
    return results(tmp_path / "whole")[0]


@pytest.mark.parametrize("name", CAPTURES)
def test_a_chain_that_grows_file_by_file_is_one_chain(run, tmp_path, parts, name):
    for count, path in enumerate(parts(name, 6), 1):
        come(tmp_path, path)
        said = batch(run)
        assert ("were read again" in said) == (count == 2)
        found, checkpoints = results(tmp_path / "results")
        assert found == expected(run, tmp_path)
        assert checkpoints == ([f"{count}.checkpoint"] if count > 1 else [])
        assert ("1 continued after earlier files" in said) == (count > 2)
    assert "of a single file no checkpoint is kept" not in batch(run)


def test_files_before_are_not_read(run, tmp_path, parts):
    paths = parts("tcp with losses", 6)
    come(tmp_path, *paths)
    whole = expected(run, tmp_path)
    here = [tmp_path / "parts" / path.name for path in paths]
    for path in here[4:]:
        path.rename(tmp_path / path.name)
    batch(run)
    spoil(here[1])
    for path in here[4:]:
        (tmp_path / path.name).rename(path)
    assert "read again" not in batch(run)
    assert results(tmp_path / "results")[0] == whole


def test_verify_reads_the_files_before(run, tmp_path, parts):
    paths = parts("tcp with losses", 6)
    come(tmp_path, *paths[:4])
    batch(run)
    spoil(tmp_path / "parts" / paths[1].name)
    come(tmp_path, *paths[4:])
    assert "`link-001.pcap`: has another content than before" in batch(run, "--verify")
    assert results(tmp_path / "results")[0] == expected(run, tmp_path)


def another_build(tmp_path):
    path = checkpoint_in(tmp_path / "results").with_name("facts.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "program": "another"}))


def earlier_time(tmp_path):
    os.utime(tmp_path / "parts" / "link-001.pcap", (1, 1))


def of_others(tmp_path):
    checkpoint_in(tmp_path / "results").chmod(0o666)


def lost(tmp_path):
    checkpoint_in(tmp_path / "results").unlink()


def link(tmp_path):
    path = checkpoint_in(tmp_path / "results")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")


def cut_short(tmp_path):
    path = checkpoint_in(tmp_path / "results")
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (another_build, "another build of this program had read them"),
        (earlier_time, "one of them changed, or a new file is not after them"),
        (of_others, "others may have written the checkpoint"),
        (link, "others may have written the checkpoint"),
        (lost, "there is no checkpoint"),
        (cut_short, "the checkpoint is damaged"),
    ],
)
def test_what_does_not_fit_is_read_from_the_start(run, tmp_path, parts, change, why):
    paths = parts("tcp with losses", 6)
    come(tmp_path, *paths[:5])
    batch(run)
    change(tmp_path)
    come(tmp_path, paths[5])
    said = batch(run)
    assert f"were read again, as their chains have new files: {why}" in said
    assert results(tmp_path / "results")[0] == expected(run, tmp_path)


def test_a_last_file_that_grows_is_read_again_alone(run, tmp_path, parts):
    paths = parts("tcp with losses", 6)
    whole = paths[4].read_bytes()
    paths[4].write_bytes(whole[: 24 + 16 + int.from_bytes(whole[32:36], "little")])
    come(tmp_path, *paths[:4])
    come(tmp_path, paths[4], age_ns=MINUTE_NS)
    batch(run)
    assert results(tmp_path / "results")[1] == ["4.checkpoint"]
    paths[4].write_bytes(whole)
    come(tmp_path, paths[4], age_ns=MINUTE_NS)
    said = batch(run)
    assert "1 continued after earlier files" in said
    assert "read again" not in said
    assert results(tmp_path / "results") == (expected(run, tmp_path), ["4.checkpoint"])
    come(tmp_path, paths[5])
    assert "1 continued after earlier files" in batch(run)
    assert results(tmp_path / "results") == (expected(run, tmp_path), ["6.checkpoint"])


def test_a_last_file_that_grows_while_it_is_read_costs_itself_alone(run, tmp_path, parts):
    paths = parts("tcp with losses", 5)
    come(tmp_path, *paths[:4])
    come(tmp_path, paths[4], age_ns=MINUTE_NS)
    last = tmp_path / "parts" / paths[4].name
    content = last.read_bytes()

    def grow():
        return last.write_bytes(content + content[24 : 40 + int.from_bytes(content[32:36], "little")])

    plan = batch_plan(tmp_path / "results")
    found = chains_of([str(tmp_path / "parts")], "auto")
    grow()
    (record,) = perform_batch(found, plan, processes(1)).records
    assert record["failed"]
    assert "grew while it was read" in record["problems"][0]["message"]
    assert results(tmp_path / "results")[1] == ["4.checkpoint"]
    (record,) = perform_batch(chains_of([str(tmp_path / "parts")], "auto"), plan, processes(1)).records
    assert not record["failed"]
    assert record["goes_on"]
    found = results(tmp_path / "results")[0]
    shutil.rmtree(tmp_path / "results")
    perform_batch(chains_of([str(tmp_path / "parts")], "auto"), plan, processes(1))
    assert results(tmp_path / "results")[0] == found


def test_anonymised_results_have_no_checkpoint(run, tmp_path, parts):
    come(tmp_path, *parts("dccp", 3))
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    batch(run, "--anonymize-key", "key")
    assert not results(tmp_path / "results")[1]


def test_days_have_a_checkpoint_of_the_last_one(run, tmp_path, write_capture, conversation):
    (tmp_path / "parts").mkdir()
    for number in range(4):
        frames = conversation(port=40_000, data_packets=3)
        write_capture(f"parts/link-{number}.pcap", frames, start_s=MIDNIGHT_S - 2 + number)
    assert "2 chains" in batch(run, "--chains", "days")
    assert results(tmp_path / "results")[1] == ["1.checkpoint"]


def test_a_file_between_others_has_all_read(run, tmp_path, parts):
    paths = parts("dccp", 6)
    come(tmp_path, *paths[:2], *paths[3:5])
    batch(run, "--chains", "names")
    come(tmp_path, paths[2])
    assert "a new file is not after them" in batch(run, "--chains", "names")
    come(tmp_path, paths[5])
    assert "read again" not in batch(run, "--chains", "names")
    assert results(tmp_path / "results")[0] == expected(run, tmp_path)


def test_options_and_shards_have_checkpoints_of_their_own(run, tmp_path, parts):
    paths = parts("dccp", 6)
    come(tmp_path, *paths[:3])
    batch(run, "--shard", "1/1")
    for path in paths[3:5]:
        come(tmp_path, path)
        said = batch(run, "--every", "1min")
        assert ("they were read with other options" in said) == (path is paths[3])
    (tmp_path / "results").rename(tmp_path / "sharded")
    for path in (None, paths[5]):
        come(tmp_path, *filter(None, [path]))
        for shard in ("1/2", "2/2"):
            assert "read again" not in batch(run, "--shard", shard)
    assert results(tmp_path / "results")[0].keys() >= {"index.json", "shards/1-of-2.json"}
    assert len(results(tmp_path / "results")[1]) == 1


def test_only_chains_that_may_grow_have_a_checkpoint(run, tmp_path, parts):
    come(tmp_path, *parts("dccp", 3))
    batch(run)
    assert len(results(tmp_path / "results")[1]) == 1
    for path in (tmp_path / "parts").iterdir():
        set_age(path, MONTH_NS)
    batch(run)
    assert not results(tmp_path / "results")[1]


def test_checkpoints_are_no_results(run, tmp_path, parts):
    come(tmp_path, *parts("dccp", 3))
    batch(run)
    assert run("merge", "results", "-o", "merged").status == 0
    found, checkpoints = results(tmp_path / "merged")
    assert found == results(tmp_path / "results")[0]
    assert not checkpoints


def test_a_full_disk_costs_the_checkpoint_alone(run, tmp_path, parts, monkeypatch):
    @contextmanager
    def full(folder):
        yield "/dev/full"

    paths = parts("dccp", 4)
    come(tmp_path, *paths[:3])
    monkeypatch.setattr("tfrctrace.batch.chain_task.temporary_file", full)
    batch(run)
    found, checkpoints = results(tmp_path / "results")
    assert found == expected(run, tmp_path)
    assert not checkpoints
    come(tmp_path, paths[3])
    assert "there is no checkpoint" in batch(run)
