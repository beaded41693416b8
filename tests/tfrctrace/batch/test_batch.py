"""Batches: what a folder of results holds, whoever made which part of it and however often it was stopped."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import shutil
from pathlib import Path
from tempfile import mkdtemp

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrctrace.batch.merge_results import merge_results
from tfrctrace.batch.results_folder import ResultsFolder
from tfrctrace.batch.run_batch import Shard, chains_of
from tfrctrace.runs.cache import RunInput

ROOT = Path(__file__).parents[3]
NOT_READ = 3
WRONG_USAGE = 2


def batch(run, *arguments, jobs=1):
    return run("batch", *arguments, "-j", str(jobs))


def index_of(folder):
    return json.loads((folder / "index.json").read_text())


def facts_of(folder, name):
    (key,) = (one["key"] for one in index_of(folder)["chains"] if one["name"] == name)
    return json.loads((folder / "chains" / key / "facts.json").read_text()), folder / "chains" / key


def test_each_chain_has_facts_and_tables(run, farm, tmp_path):
    outcome = batch(run, "farm", "-o", "results")
    assert outcome.status == 0, outcome.err
    assert "6 chains" in outcome.err
    chains = index_of(tmp_path / "results")["chains"]
    assert [one["name"] for one in chains] == [f"run-{number}.pcap" for number in range(1, 7)]
    assert [one["packets"] for one in chains] == [6 + 2 * (2 + number) for number in range(6)]
    facts, place = facts_of(tmp_path / "results", "run-3.pcap")
    assert facts["files"][0]["bytes"] == (farm / "run-3.pcap").stat().st_size
    assert facts["rows"] == {
        "flows": 2,
        "groups": 4,
        "group_buckets": pl.read_parquet(place / "group_buckets.parquet").height,
        "rtp_sources": 0,
    }
    flows = pl.read_parquet(place / "flows.parquet")
    assert flows["source"].unique().to_list() == ["run-3.pcap"]
    assert flows["src_port"].to_list() == [40_002, 80]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_option_that_fits_no_chain_is_wrong_usage_and_nothing_is_kept_of_it(run, farm, tmp_path, jobs):
    for name in ("dumbbell.tr.xz", "again.tr.xz"):
        shutil.copy(ROOT / "sample_traces/dumbbell.tr.xz", farm / name)
        with lzma.open(farm / name, "at") as file:
            file.write(f"# {name}\n")  # equal files are one
    outcome = batch(run, "farm", "-o", "results", "--since", "00:00", jobs=jobs)
    assert outcome.status == WRONG_USAGE
    assert "error: a simulation has no time of day\nhint:  write a time since its start" in outcome.err
    facts = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("chains/*/facts.json")]
    assert not any(one["failed"] for one in facts)


def test_a_second_batch_does_what_is_new_and_changes_nothing_else(run, farm, tmp_path, contents):
    batch(run, "farm", "-o", "results")
    before = contents(tmp_path / "results")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "results" / "chains").rglob("*.*")}
    outcome = batch(run, "farm", "-o", "results")
    assert "6 chains, 6 done before" in outcome.err
    assert contents(tmp_path / "results") == before
    assert {path: path.stat().st_mtime_ns for path in times} == times
    shutil.copy(farm / "run-1.pcap", farm / "new.pcap")
    (farm / "new.pcap").write_bytes((farm / "new.pcap").read_bytes()[:-4])
    assert "7 chains, 6 done before" in batch(run, "farm", "-o", "results").err


@pytest.mark.parametrize(
    ("option", "is_new"),
    [
        (["--every", "1min"], True),
        (["--by", "port"], True),
        (["-f", "tcp"], True),
        (["--max-flows", "5"], True),
        (["--quiet"], False),
        (["--strict"], False),
        (["-j", "2"], False),
    ],
)
def test_results_are_of_the_options_that_change_numbers(run, farm, option, is_new, tmp_path):
    for path in sorted(farm.iterdir())[1:]:
        path.unlink()
    keys = []
    for more in ([], option):
        batch(run, "farm", "-o", "results", *more)
        # what a chain had before would count twice in a scan of all tables
        (folder,) = (tmp_path / "results" / "chains").iterdir()
        keys.append(folder.name)
    assert (keys[0] != keys[1]) is is_new


def capture_of(name):
    content = gzip.decompress((ROOT / name).read_bytes())
    assert content[:4] in {b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"}
    return content


CAPTURES = {
    "tcp with losses": "tests/data/captures/linux-one-cubic-rcv.pcap.gz",
    "dccp": "sample_traces/dccp-ccid3.pcap.gz",
}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_chain_is_what_its_concatenation_is(run, tmp_path, rotate, name):
    capture = capture_of(CAPTURES[name])
    rotate(capture, tmp_path / "parts", 7)
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "link.pcap").write_bytes(capture)
    for folder in ("parts", "whole"):
        assert batch(run, folder, "-o", f"results-{folder}").status == 0
    facts, parts = facts_of(tmp_path / "results-parts", "link-*.pcap")
    _, whole = facts_of(tmp_path / "results-whole", "link.pcap")
    assert [one["name"] for one in facts["files"]] == [f"link-{number:03d}.pcap" for number in range(7)]
    flows, expected = (pl.read_parquet(place / "flows.parquet").drop("source") for place in (parts, whole))
    assert flows.equals(expected)
    for table in ("groups.parquet", "group_buckets.parquet"):
        assert (parts / table).read_bytes() == (whole / table).read_bytes()


def rtp_capture(write_capture):
    """Return a call of which every seventh packet is missing, 10 ms apart, with reports of its receiver."""
    from rtp_packets import block, frame, media, receiver_report

    frames = []
    for number in range(3_000):
        if number % 7:
            frames.append(frame(media(number, 160 * number)))
        if number % 50 == 49:
            frames.append(frame(receiver_report(block(highest=number, lost=number // 7)), back=True, ports=1))
    return write_capture("call.pcap", frames).read_bytes()


def delivery_of(folder):
    (chain,) = index_of(folder)["chains"]
    flows = pl.read_parquet(folder / "chains" / chain["key"] / "flows.parquet").sort("packets")
    return flows.select("sent_packets", "received_packets", "lost_packets").row(-1), chain


def test_an_rtp_call_over_files_is_one_call(run, tmp_path, rotate, write_capture):
    capture = rtp_capture(write_capture)
    rotate(capture, tmp_path / "parts", 10)
    rotate(capture, tmp_path / "whole", 1)
    for folder in ("parts", "whole"):
        assert batch(run, folder, "-o", f"results-{folder}").status == 0
    parts, whole = (delivery_of(tmp_path / f"results-{folder}")[0] for folder in ("parts", "whole"))
    assert parts == whole
    assert whole[2] == sum(number % 7 == 0 for number in range(1, 2_999))


@pytest.mark.parametrize("kind", ["rtp", "dccp"])
def test_what_a_missing_file_hides_is_not_lost(run, tmp_path, rotate, write_capture, kind):
    capture = rtp_capture(write_capture) if kind == "rtp" else capture_of(CAPTURES["dccp"])
    paths = rotate(capture, tmp_path / "parts", 10)
    for path in paths[4:6]:
        path.unlink()
    for place in ("before", "behind"):
        (tmp_path / place).mkdir()
    for path in paths[:4]:
        shutil.copy(path, tmp_path / "before")
    for path in paths[6:]:
        shutil.copy(path, tmp_path / "behind")
    for folder in ("parts", "before", "behind"):
        batch(run, folder, "-o", f"results-{folder}", "--chains", "names")
    (both, chain), (before, _), (behind, _) = (
        delivery_of(tmp_path / f"results-{folder}") for folder in ("parts", "before", "behind")
    )
    assert chain["warnings"] >= 1
    # what the last file before the gap and the first one behind it show is sent, and nothing in between
    assert both == tuple(map(sum, zip(before, behind, strict=True)))


def test_a_bad_file_costs_nothing_else(run, farm, tmp_path):
    (farm / "run-2.pcap").write_bytes(b"")
    (farm / "run-4.pcap").write_bytes((farm / "run-4.pcap").read_bytes()[:24] + b"\xff" * 100)
    outcome = batch(run, "farm", "-o", "results")
    assert outcome.status == NOT_READ
    assert "`run-2.pcap`: the file is empty" in outcome.err
    chains = {one["name"]: one for one in index_of(tmp_path / "results")["chains"]}
    assert [name for name, one in chains.items() if one["failed"]] == ["run-2.pcap", "run-4.pcap"]
    assert chains["run-5.pcap"]["packets"] == 18
    assert "6 chains, 6 done before, 2 failed" in batch(run, "farm", "-o", "results").err
    outcome = batch(run, "farm", "-o", "results", "--retry-failed")
    assert (outcome.status, "6 chains, 4 done before, 2 failed" in outcome.err) == (NOT_READ, True)


def test_a_bad_file_of_a_chain_leaves_its_neighbours(run, tmp_path, rotate):
    paths = rotate(capture_of(CAPTURES["tcp with losses"]), tmp_path / "parts", 5)
    paths[2].write_bytes(paths[2].read_bytes()[:24] + b"\xff" * 1_000)
    outcome = batch(run, "parts", "-o", "results", "--chains", "names")
    assert outcome.status == NOT_READ
    (chain,) = index_of(tmp_path / "results")["chains"]
    assert (chain["failed"], chain["errors"]) == (False, 1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda path: path.write_bytes(path.read_bytes() + bytes(16)), "grew"),
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "shrank"),
        (lambda path: path.unlink(), "vanished"),
        (lambda path: os.utime(path, (1, 1)), "was written"),
    ],
)
def test_a_file_that_changes_while_it_is_read_has_no_result(farm, tmp_path, change, word):
    from tfrctrace.base.grouping import parse_grouping
    from tfrctrace.batch.chain_task import BatchPlan
    from tfrctrace.batch.run_batch import perform_batch
    from tfrctrace.runs.workers import processes

    found = chains_of([str(farm)], "auto")
    change(farm / "run-2.pcap")
    plan = BatchPlan(str(tmp_path / "results"), "program", {}, parse_grouping("host", "1min"))
    done = perform_batch(found, plan, processes(1))
    assert [record["failed"] for record in done.records] == [False, True, False, False, False, False]
    assert f"{word} while it was read" in done.records[1]["problems"][0]["message"]


def test_a_changed_file_of_the_same_size_and_time_is_found_by_its_digest(run, farm):
    batch(run, "farm", "-o", "results")
    path = farm / "run-2.pcap"
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "6 done before" in batch(run, "farm", "-o", "results").err
    outcome = batch(run, "farm", "-o", "results", "--verify")
    assert "`run-2.pcap`: has another content than before" in outcome.err
    assert "6 chains, 5 done before" in outcome.err
    assert "6 chains, 6 done before" in batch(run, "farm", "-o", "results", "--verify").err


def test_a_damaged_table_is_made_again(run, farm, tmp_path, contents):
    batch(run, "farm", "-o", "results")
    before = contents(tmp_path / "results")
    _, place = facts_of(tmp_path / "results", "run-2.pcap")
    table = place / "groups.parquet"
    table.write_bytes(table.read_bytes()[:-9])
    (place / "flows.parquet").unlink()
    assert "6 done before" in batch(run, "farm", "-o", "results").err
    outcome = batch(run, "farm", "-o", "results", "--verify")
    assert "`run-2.pcap`: its table `groups.parquet` is missing or damaged" in outcome.err
    assert "`run-2.pcap`: its table `flows.parquet` is missing or damaged" in outcome.err
    assert "6 chains, 5 done before" in outcome.err
    assert contents(tmp_path / "results") == before


def test_workers_shards_and_merged_folders_make_the_same_bytes(run, farm, tmp_path, contents):
    (farm / "empty.pcap").write_bytes(b"")
    (farm / "note.txt").write_text("no capture")
    batch(run, "farm", "-o", "one")
    expected = contents(tmp_path / "one")
    batch(run, "farm", "-o", "two", jobs=2)
    assert contents(tmp_path / "two") == expected
    for number in (1, 2, 3):
        batch(run, "farm", "-o", f"part-{number}", "--shard", f"{number}/3")
        batch(run, "farm", "-o", "shared", "--shard", f"{number}/3")
    order = ["part-1", "part-2", "part-3"]
    for turn in range(3):
        random.Random(turn).shuffle(order)
        assert run("merge", *order, "-o", f"merged-{turn}").status == 0
        assert contents(tmp_path / f"merged-{turn}") == expected
    shared = contents(tmp_path / "shared")
    assert {name: text for name, text in shared.items() if not name.startswith("shards/")} == expected


def test_any_parts_in_any_order_merge_to_the_whole(run, farm, tmp_path, contents):
    (farm / "empty.pcap").write_bytes(b"")
    (farm / "note.txt").write_text("no capture")
    batch(run, "farm", "-o", "one")
    whole = ResultsFolder(str(tmp_path / "one"))
    records, problems, expected = list(whole.records()), whole.index_problems(), contents(tmp_path / "one")
    parts_of = st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=7, max_size=7)

    @given(parts_of, st.permutations(range(3)), st.integers(0, 2))
    @settings(max_examples=25)
    def merged_is_whole(places, order, twice):
        folder = Path(mkdtemp(dir=tmp_path))
        for part in range(3):
            own = ResultsFolder(str(folder / str(part)))
            own.prepare()
            chosen = [record for record, parts in zip(records, places, strict=True) if part in parts]
            for record in chosen:
                own.copy_chain(record["key"], whole)
            own.write_index(chosen, problems)
        merge_results([str(folder / str(part)) for part in (*order, twice)], str(folder / "merged"))
        assert contents(folder / "merged") == expected

    merged_is_whole()


def test_merge_writes_nothing_outside_of_its_folder(run, farm, tmp_path):
    batch(run, "farm", "-o", "one")
    (entry, *_) = json.loads((tmp_path / "one" / "index.json").read_text())["chains"]
    key = "../../precious"
    for path in (tmp_path / "one" / "index.json", tmp_path / "one" / "chains" / entry["key"] / "facts.json"):
        path.write_text(path.read_text().replace(entry["key"], key))
    (tmp_path / "in").mkdir()
    (tmp_path / "one" / "chains" / entry["key"]).rename(tmp_path / "in" / "precious")
    (tmp_path / "one").rename(tmp_path / "in" / "one")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis").touch()
    outcome = run("merge", "in/one", "-o", "merged")
    assert outcome.status == WRONG_USAGE
    assert "lacks the results of" in outcome.err
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["thesis"]


def test_results_that_do_not_fit_are_not_merged(run, farm, tmp_path):
    batch(run, "farm", "-o", "one")
    batch(run, "farm", "-o", "other", "--every", "1min")
    outcome = run("merge", "one", "other", "-o", "merged")
    assert outcome.status == WRONG_USAGE
    assert "`other` was made with other options than `one`" in outcome.err
    for path in (tmp_path / "other").rglob("*.json"):
        path.write_text(path.read_text().replace('"program": "', '"program": "0'))
    assert "made by another version of this program" in run("merge", "one", "other", "-o", "merged").err
    assert run("merge", "farm", "-o", "merged").err.startswith("error: `farm` holds no results of a batch")


def test_a_folder_of_another_version_is_refused(run, farm, tmp_path):
    batch(run, "farm", "-o", "results")
    index = tmp_path / "results" / "index.json"
    index.write_text(index.read_text().replace('"results_version": 2', '"results_version": 1'))
    outcome = batch(run, "farm", "-o", "results")
    assert outcome.status == WRONG_USAGE
    assert "holds results of version 1" in outcome.err


def test_damaged_facts_count_as_missing(run, farm, tmp_path, contents):
    batch(run, "farm", "-o", "results")
    before = contents(tmp_path / "results")
    for number, path in enumerate(sorted((tmp_path / "results" / "chains").rglob("facts.json"))):
        path.write_text(["", "{}", "[]", "{", '{"key": 1}', "null"][number])
    assert "6 chains, 0 done before" in batch(run, "farm", "-o", "results").err
    assert contents(tmp_path / "results") == before


def test_names_of_any_bytes_are_results_like_others(run, farm, tmp_path):
    names = [b"new\nline.pcap", b"\xff\xfe.pcap", b"-o.pcap", b"* [a].pcap", "Ü.pcap".encode()]
    for path, name in zip(sorted(farm.iterdir()), names, strict=False):
        os.rename(os.fsencode(path), os.path.join(os.fsencode(farm), name))
    outcome = batch(run, "farm", "-o", "results")
    assert outcome.status == 0, outcome.err
    shown = [one["name"] for one in index_of(tmp_path / "results")["chains"]]
    assert sorted(shown) == sorted(
        ["new\\nline.pcap", "\\udcff\\udcfe.pcap", "-o.pcap", "* [a].pcap", "Ü.pcap", "run-6.pcap"]
    )
    assert "6 done before" in batch(run, "farm", "-o", "results").err


def test_anonymised_results_name_nobody(run, farm, tmp_path, contents):
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    assert "needs a key that is kept" in batch(run, "farm", "-o", "results", "--anonymize").err
    batch(run, "farm", "-o", "results", "--anonymize-key", "key")
    for path in (tmp_path / "results").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(
                word in content
                for word in (b"192.0.2.1", b"198.51.100.7", b"run-", b"farm", b"0123456789abcdef")
            )
    assert "6 done before" in batch(run, "farm", "-o", "results", "--anonymize-key", "key").err


def test_no_guess_of_a_name_or_a_content_can_be_checked_in_anonymised_results(run, farm, tmp_path, contents):
    from tfrctrace.parsers._native import file_digest

    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    filtered = ["--filter", "host 192.0.2.1", "--jobs", "1"]
    assert run("batch", "farm", "-o", "open", *filtered).status == 0
    assert run("batch", "farm", "-o", "results", *filtered, "--anonymize-key", "key").status == 0
    found = {path.name for path in (tmp_path / "results" / "chains").iterdir()}
    assert not found & {path.name for path in (tmp_path / "open" / "chains").iterdir()}
    # what somebody can compute who has guessed the file and sees the facts
    guesses = {file_digest(str(path)) for path in farm.iterdir()}
    guesses |= {str(path.stat().st_mtime_ns) for path in farm.iterdir()}
    for key in found:
        facts = json.loads((tmp_path / "results" / "chains" / key / "facts.json").read_text())
        for path in farm.iterdir():
            status = path.stat()
            state = (path.name, status.st_size, status.st_mtime_ns)
            options = {**facts["options"], "filter": "host 192.0.2.1"}
            for tried in (options, {name: options[name] for name in options if name != "anonymized"}):
                guesses.add(RunInput(path.name, (str(path),), tried, (state,)).key(facts["program"]))
    text = "".join(str(path) + str(content) for path, content in contents(tmp_path / "results").items())
    assert not [guess for guess in guesses if guess in text]
    assert "192.0.2.1" not in text
    outcome = run("batch", "farm", "-o", "results", *filtered, "--anonymize-key", "key", "--verify")
    assert (outcome.status, "6 done before" in outcome.err) == (0, True), outcome.err


def test_failures_in_anonymised_results_name_nobody(run, farm, tmp_path, contents):
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    outcome = run(
        "batch",
        "farm",
        "-o",
        "results",
        "--filter",
        "wlan addr1 02:00:00:00:00:01 and host 192.0.2.1",
        "--anonymize-key",
        "key",
        "-j",
        "1",
    )
    assert outcome.status == NOT_READ
    text = "".join(str(path) + str(content) for path, content in contents(tmp_path / "results").items())
    assert not [word for word in ("run-", "192.0.2.1", "02:00:00:00:00:01") if word in text]


def test_the_shard_of_an_anonymised_chain_does_not_show_its_name(farm):
    found = chains_of([str(farm)], "none").chains

    def parts(key):
        return [next(number for number in range(1, 41) if Shard(number, 40, key).has(one)) for one in found]

    assert parts(b"a" * 16) == parts(b"a" * 16)
    assert len({tuple(parts(key)) for key in (None, b"a" * 16, b"b" * 16)}) == 3


def test_an_executor_of_the_user_does_the_work(run, farm, tmp_path, contents):
    batch(run, "farm", "-o", "one")
    assert (
        run("batch", "farm", "-o", "two", "--executor", "concurrent.futures:ThreadPoolExecutor").status == 0
    )
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    for text, words in {
        "concurrent.futures:Nothing": "there is no `Nothing`",
        "builtins:dict": "returns a dict, no executor",
        "here": "names no executor",
    }.items():
        outcome = run("batch", "farm", "-o", "three", "--executor", text)
        assert (outcome.status, words in outcome.err) == (WRONG_USAGE, True), outcome.err


@pytest.mark.parametrize(("by", "of"), [("label", "flow"), ("site", "host")])
def test_groups_that_are_made_of_others_are_refused(run, farm, by, of):
    outcome = batch(run, "farm", "-o", "results", "--by", by)
    assert outcome.status == WRONG_USAGE
    assert f"group by `{of}`" in outcome.err


@pytest.mark.parametrize("text", ["0/3", "4/3", "a/3", "3", "3/", "-1/3", "1/0"])
def test_a_shard_that_cannot_be_is_refused(run, farm, text):
    outcome = batch(run, "farm", "-o", "results", "--shard", text)
    assert outcome.status == WRONG_USAGE
    assert "is no part of a batch" in outcome.err


def test_chains_are_listed_without_reading_them(run, farm, tmp_path):
    outcome = run("batch", "farm", "-o", "results", "--list")
    assert outcome.out.splitlines()[0].startswith("run-1.pcap: 1 file, ")
    assert not (tmp_path / "results").exists()


def test_a_chain_that_got_a_file_replaces_what_it_had(run, tmp_path, rotate):
    paths = rotate(capture_of(CAPTURES["tcp with losses"]), tmp_path / "parts", 5)
    last = paths[-1].read_bytes()
    paths[-1].unlink()
    for path in paths[1:4]:
        path.rename(tmp_path / path.name)
    batch(run, "parts", "-o", "results")
    assert [one["name"] for one in index_of(tmp_path / "results")["chains"]] == ["link-000.pcap"]
    for path in paths[1:4]:
        (tmp_path / path.name).rename(path)
    batch(run, "parts", "-o", "results")
    (before,) = (tmp_path / "results" / "chains").iterdir()
    paths[-1].write_bytes(last)
    outcome = batch(run, "parts", "-o", "results")
    (after,) = (tmp_path / "results" / "chains").iterdir()
    assert before != after
    assert "1 continued after earlier files" in outcome.err
    assert "read again" not in batch(run, "parts", "-o", "results").err
    assert "read again" not in batch(run, "parts", "-o", "results", "--every", "1min").err


def test_a_lake_has_each_row_once_by_date_and_link(run, farm, tmp_path, contents):
    (farm / "cut.pcap").write_bytes((farm / "run-1.pcap").read_bytes()[:-5])
    batch(run, "farm", "-o", "results")
    assert "7 chains, 7 new" in run("lake", "results", "-o", "lake").err
    before = contents(tmp_path / "lake")
    for name in ("flows", "groups", "group_buckets"):
        expected = pl.read_parquet(tmp_path / "results/chains/*" / f"{name}.parquet")
        found = pl.scan_parquet(tmp_path / "lake" / name / "**/*.parquet", hive_partitioning=True).collect()
        assert found.columns == [*expected.columns, "date", "link"]
        columns = expected.columns
        assert found.select(columns).sort(columns).equals(expected.sort(columns))
        assert found["link"].n_unique() == 7
        day = pl.from_epoch(pl.col("start_ns"), time_unit="ns").dt.date().cast(pl.String)
        assert found.filter(pl.col("date").cast(pl.String) != day).is_empty()
    assert pl.read_parquet(tmp_path / "lake/warnings/**/*.parquet")["kind"].to_list() == ["truncated"]
    assert "7 chains, 0 new" in run("lake", "results", "-o", "lake").err
    assert contents(tmp_path / "lake") == before
    (farm / "cut.pcap").write_bytes((farm / "run-2.pcap").read_bytes()[:-5])
    batch(run, "farm", "-o", "results")
    assert "7 chains, 1 new" in run("lake", "results", "-o", "lake").err
    run("lake", "results", "-o", "again")
    assert contents(tmp_path / "lake") == contents(tmp_path / "again")


def test_a_lake_takes_links_of_any_name_and_days_as_one_link(run, write_capture, conversation, tmp_path):
    write_capture(f"farm/{'Ü' * 125}.pcap", conversation())
    for number, start_s in enumerate((86_399, 86_400)):
        write_capture(f"farm/a/link-{number}.pcap", conversation(), start_s=start_s)
    batch(run, "farm", "-o", "results", "--chains", "days")
    outcome = run("lake", "results", "-o", "lake")
    assert "3 chains, 3 new" in outcome.err, outcome.err
    found = pl.scan_parquet(tmp_path / "lake/flows/**/*.parquet", hive_partitioning=True).collect()
    days = found.group_by("link").agg(pl.col("date").n_unique()).sort("link")
    assert days["date"].to_list() == [2, 1]
    assert days["link"][0] == "a/link-*.pcap"
    assert sorted(path.name for path in (tmp_path / "lake/flows").iterdir()) == [
        "date=1970-01-01",
        "date=1970-01-02",
        "date=2023-11-14",
    ]


@pytest.mark.parametrize("line", [("batch", "farm", "-o"), ("report", "farm", "--pages")])
def test_results_are_not_written_to_object_stores(run, farm, tmp_path, line):
    outcome = run(*line, "https://store.example.org/results?signature=secret")
    assert outcome.status == WRONG_USAGE
    assert outcome.err.startswith(
        "error: cannot write `https://store.example.org/results`: only captures are"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["farm"]


def test_watching_finds_what_is_new(run, farm, tmp_path, monkeypatch):
    hidden = (farm / "run-6.pcap").rename(tmp_path / "run-6.pcap")

    def wait(length_ns):
        assert length_ns == 5 * 10**9
        if not hidden.exists():
            raise KeyboardInterrupt
        hidden.rename(farm / "run-6.pcap")

    monkeypatch.setattr("tfrctrace.base.interruptible.sleep_ns", wait)
    outcome = run("batch", "farm", "-o", "results", "-j", "1", "--watch", "5s")
    assert outcome.status == 130
    assert "5 chains, 0 done before" in outcome.err
    assert "6 chains, 5 done before" in outcome.err
