"""The history of a gate: what is kept, since which build a quantity is worse, and changes that are meant."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("_undrawn")

RUNS = Path(__file__).resolve().parents[2] / "data" / "study" / "runs"
GOOD, WORSE = str(RUNS / "red-n2-1.tr.xz"), str(RUNS / "red-n4-1.tr.xz")
DAY_NS = 86_400 * 10**9
DELAY, GOODPUT = "mean(delay_p95_ms)", "sum(goodput_bps)"


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    from tfrctrace.gate.history import BUILD_VARIABLES

    for name in BUILD_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def check(run, *words, build="now"):
    return run("check", GOOD, "--history", "h", "--build", build, *words)


@pytest.fixture
def past(run, tmp_path):
    """Write a history of builds before this one, of what one check measured times factors."""

    def write(factors):
        check(run)
        file = tmp_path / "h" / "history.jsonl"
        entry = json.loads(file.read_text())
        draw, lines = random.Random(7), []
        for number, factor in enumerate(factors):
            quantities = {
                name: [value * draw.gauss(1, 0.01) * (factor if name == DELAY else 1) for value in values]
                for name, values in entry["quantities"].items()
            }
            time_ns = entry["time_ns"] - (len(factors) - number) * DAY_NS
            own = {"build": f"b{number + 1}", "time_ns": time_ns, "quantities": quantities}
            lines.append(json.dumps(entry | own))
        file.write_text("".join(f"{line}\n" for line in lines))
        return file

    return write


def trend(outcome, quantity=DELAY):
    (found,) = [one for one in json.loads(outcome.out)["trends"] if one["quantity"] == quantity]
    return found


def test_the_first_build_that_was_worse_is_named(run, past, tmp_path):
    past([0.8] * 12 + [1.0] * 5)
    found = trend(check(run, "--format", "json"))
    assert [build["name"] for build in found["builds"]] == [f"b{number}" for number in range(1, 18)] + ["now"]
    assert found["first_worse"] == "b13"
    (change,) = found["changes"]
    assert change["after"] / change["before"] == pytest.approx(1 / 0.8, rel=0.02)
    assert trend(check(run, "--format", "json"), GOODPUT)["first_worse"] is None
    line = next(one for one in check(run).out.splitlines() if one.startswith(DELAY))
    assert "; worse since build `b13` of " in line
    page = (tmp_path / "h" / "index.html").read_text()
    assert "worse since build" in page
    assert "b13" in page


def test_what_became_better_again_is_not_worse(run, past):
    past([0.8] * 8 + [1.2] * 8 + [1.0] * 8)
    found = trend(check(run, "--format", "json"))
    assert [change["direction"] for change in found["changes"]] == ["worse", "better"]
    assert found["first_worse"] is None


def test_of_many_builds_the_latest_are_followed(run, past, monkeypatch):
    monkeypatch.setattr("tfrctrace.gate.keep_history.MOST_BUILDS", 8)
    past([20.0 + number % 2 for number in range(20)])
    outcome = check(run, "--format", "json")
    assert "note: `h/history.jsonl`: the trend is that of the latest 8 of 21 builds" in outcome.err
    assert [build["name"] for build in trend(outcome)["builds"]][-1] == "now"
    assert len(trend(outcome)["builds"]) == 8


def test_changes_below_the_tolerance_are_left_out(run, past):
    past([0.8] * 12 + [1.0] * 5)
    assert trend(check(run, "--tolerance", "50%", "--format", "json"))["changes"] == []


def test_few_builds_are_too_few(run):
    outcome = check(run, "--require", "min(jain) > 0.5")
    assert outcome.status == 0
    assert "too few builds to find a change (1 of 6)" in outcome.out
    assert "1 of 1 check of 1 run passed" in outcome.out


def test_checks_of_one_build_are_its_runs(run):
    check(run, build="a")
    found = trend(check(run, "--format", "json", build="a"))
    assert [build["name"] for build in found["builds"]] == ["a"]


def test_limits_are_followed_in_their_direction(run):
    found = json.loads(check(run, "--require", "max(delay_p95_ms) < 500", "--format", "json").out)["trends"]
    assert "max(delay_p95_ms)" in {one["quantity"] for one in found}


def test_other_options_and_broken_lines_are_left_out_and_counted(run, past, tmp_path):
    file = past([1.0] * 8)
    check(run, "--window", "2s")
    lines = file.read_text().splitlines()
    bad = ["{", "[]", '{"history_version": 1}', lines[0].replace("b1", "x").replace("[", "[1e999, ")]
    file.write_text("\n".join([*lines, *bad, lines[0][:40]]))
    outcome = check(run, "--format", "json")
    assert len(trend(outcome)["builds"]) == 9
    for number in range(10, 15):
        assert f"`h/history.jsonl:{number}`: is not an entry of a history" in outcome.err
    # what a killed check left is not continued
    assert json.loads((tmp_path / "h" / "history.jsonl").read_text().splitlines()[-1])["build"] == "now"


def test_a_time_that_no_clock_shows_and_a_value_that_is_no_number_make_no_entry(run, past):
    file = past([1.0] * 8)
    first = json.loads(file.read_text().splitlines()[0])
    name = next(iter(first["quantities"]))
    changes = [{"time_ns": 10**300}, {"time_ns": -1}, {"build": 3}]
    changes += [{"quantities": {name: [value]}} for value in (10**400, math.nan, "1", None)]
    bad = [*(json.dumps(first | change) for change in changes), '"text"', "[" * 100_000]
    file.write_text("\n".join([*file.read_text().splitlines(), *bad]) + "\n")
    outcome = check(run, "--format", "json")
    assert outcome.status == 0, outcome.err
    assert len(trend(outcome)["builds"]) == 9
    assert outcome.err.count("is not an entry of a history") == len(bad)


def test_a_history_that_cannot_be_written_is_named(run, tmp_path):
    (tmp_path / "h" / "history.jsonl").mkdir(parents=True)
    outcome = check(run)
    assert outcome.status != 0
    assert "history.jsonl" in outcome.err
    assert "Traceback" not in outcome.err


def test_checks_at_once_keep_their_lines_apart(tmp_path):
    program = (
        "import sys; from tfrctrace.gate.history import append_entry\n"
        "for n in range(50): append_entry('h', {'build': sys.argv[1] * 500, 'n': n})"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, name], cwd=tmp_path) for name in "abcd"]
    assert [one.wait() for one in running] == [0] * 4
    entries = [json.loads(line) for line in (tmp_path / "h" / "history.jsonl").read_text().splitlines()]
    for name in "abcd":
        assert [one["n"] for one in entries if one["build"][0] == name] == list(range(50))


def test_the_server_names_the_build_else_the_user(run, monkeypatch):
    outcome = run("check", GOOD, "--history", "h")
    assert (outcome.status, "a history needs the name of the build" in outcome.err) == (2, True)
    monkeypatch.setenv("GITHUB_SHA", "0123abc")
    found = trend(run("check", GOOD, "--history", "h", "--format", "json"))
    assert found["builds"][0]["name"] == "0123abc"


def test_the_name_of_a_build_is_only_text(run, tmp_path):
    name = "<script>alert(1)</script>\n::error::|`x`"
    outcome = check(run, "--summary", "s.md", build=name)
    assert outcome.status == 0
    assert "<script>alert(1)" not in (tmp_path / "h" / "index.html").read_text()
    assert "::error" not in {line[:7] for line in (tmp_path / "s.md").read_text().splitlines()}


def test_the_summary_has_the_trend(run, past, tmp_path):
    past([0.8] * 12 + [1.0] * 5)
    check(run, "--summary", "s.md")
    assert "❌ mean(delay" in (tmp_path / "s.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--build", "a"], "`--build` needs `--history`"),
        (["--accept"], "`--accept` is about a baseline"),
        (["--tolerance", "1%"], "`--tolerance` is about a baseline"),
    ],
)
def test_options_without_effect_are_refused(run, words, message):
    outcome = run("check", GOOD, "--require", "min(jain) > 0", *words)
    assert (outcome.status, message in outcome.err) == (2, True)


def test_a_change_that_is_meant_is_taken_into_the_baseline(run, tmp_path):
    run("check", GOOD, "--write-baseline", "b.json")
    before = json.loads((tmp_path / "b.json").read_text())
    assert run("check", WORSE, "--baseline", "b.json").status == 1
    outcome = run("check", WORSE, "--baseline", "b.json", "--accept")
    assert outcome.status == 0
    assert "accepted into `b.json`: min(jain) 0.9996 to 0.6555 (-34.4%)" in outcome.err
    assert "accepted into the baseline: -34.4%, 5 % allowed" in outcome.out
    after = json.loads((tmp_path / "b.json").read_text())
    changed = {
        old["quantity"]
        for old, new in zip(before["quantities"], after["quantities"], strict=True)
        if old != new
    }
    # what was not worse keeps its values, so that many small changes do not add up unseen
    assert changed == {"sum(retransmitted_packets) / sum(data_packets)", "mean(plr)", "min(jain)"}
    assert run("check", WORSE, "--baseline", "b.json").status == 0


def test_without_anything_worse_the_baseline_stays(run, tmp_path):
    run("check", GOOD, "--write-baseline", "b.json")
    before = (tmp_path / "b.json").read_bytes()
    assert run("check", GOOD, "--baseline", "b.json", "--accept").status == 0
    assert (tmp_path / "b.json").read_bytes() == before


def test_a_new_quantity_is_accepted(run, tmp_path):
    run("check", GOOD, "--write-baseline", "b.json", "--compare", "min(jain)")
    words = ["check", GOOD, "--baseline", "b.json", "--compare", "min(jain)", "--compare", GOODPUT]
    assert run(*words).status == 1
    assert run(*words, "--accept").status == 0
    assert run(*words).status == 0
    assert len(json.loads((tmp_path / "b.json").read_text())["quantities"]) == 2


def test_a_limit_is_not_accepted(run):
    run("check", GOOD, "--write-baseline", "b.json")
    words = ["check", WORSE, "--baseline", "b.json", "--accept", "--require", "min(jain) > 0.9"]
    assert run(*words).status == 1
