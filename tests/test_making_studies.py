"""The runner of the five studies: its lists of runs, and that it goes on wherever it was stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from patience import PATIENCE_S
from study_truth import truth_of

from tfrctrace.study.file.study_file import read_study

STUDIES = Path(__file__).parents[1] / "sample_traces" / "studies"
NAMES = sorted(path.parent.name for path in STUDIES.glob("*/runs.py"))

# What `ns` does as far as the runner sees: a trace, what the agents counted, and a word of its own.
FAKE_NS = """#!{python}
import os, sys, time
script, topology, trace, folder, *options = sys.argv[1:]
options = dict(zip(options[::2], options[1::2]))
if "fail" in os.environ and f"seed {{os.environ['fail']}}" == f"seed {{options['seed']}}":
    print("warning: nobody listens")
    sys.exit("invalid command name")
with open(os.environ["made"], "a") as made:
    made.write(options["seed"] + "\\n")
while int(options["seed"]) > 5 and os.path.exists(os.environ.get("hold", "")):
    time.sleep(0.01)
open(trace, "w").write("+ 1 0 1 tcp 40\\n" * 1000)
if "variables 1" in options["flows"]:
    open(folder + "/tcp1.txt", "w").write("0.0 cwnd_ 1\\n")
open(folder + "/truth.json", "w").write('{{"1": {{"kind": "tfrc"}}}}')
"""


@pytest.fixture
def make(tmp_path):
    """Return a function that runs `make.py` with a fake `ns`; `made` says which seeds it simulated."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ns").write_text(FAKE_NS.format(python=sys.executable))
    (programs / "ns").chmod(0o755)
    made = tmp_path / "made"
    made.touch()
    out = tmp_path / "out"

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(STUDIES / "make.py"), "--out", str(out), "--no-pages", *arguments],
            env={**os.environ, "PATH": f"{programs}:/usr/bin:/bin", "made": str(made), **environment},
            stderr=subprocess.PIPE,
            text=True,
        )

    start.out = out
    start.made = lambda: made.read_text().split()
    return start


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, told = process.communicate(timeout=PATIENCE_S)
    return process.returncode, told


TEN = ("lillis", "--only", "loss1-veno-*", "--jobs", "2")


def test_what_is_done_is_not_made_again(make):
    status, told = finished(make(*TEN))
    assert (status, "10 of 10 runs" in told) == (0, True)
    assert sorted(make.made(), key=int) == [str(seed) for seed in range(1, 11)]
    folder = make.out / "lillis"
    run = folder / "traces" / "loss1-veno-0-3"
    assert sorted(path.name for path in run.iterdir()) == [
        "loss1-veno-0-3.tcp1.txt.xz",
        "loss1-veno-0-3.tr.xz",
    ]
    assert truth_of(folder)["loss1-veno-0-3"] == {"1": {"kind": "tfrc"}}
    shutil.rmtree(run)
    assert finished(make(*TEN))[0] == 0
    assert make.made()[10:] == ["3"]


def test_a_failed_run_keeps_its_message_and_is_tried_again(make):
    status, told = finished(make(*TEN, fail="4"))
    assert status == 1
    assert "1 failed" in told
    failure = make.out / "lillis" / "traces" / "loss1-veno-0-4.failed"
    assert "nobody listens" in failure.read_text()
    assert "invalid command name" in failure.read_text()
    assert len(make.made()) == 9
    assert finished(make(*TEN))[0] == 0
    assert make.made()[9:] == ["4"]
    assert not failure.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_killed_anywhere_it_goes_on(make, how, tmp_path):
    hold = tmp_path / "hold"
    hold.touch()
    process = make(*TEN, hold=str(hold))
    while len(make.made()) < 6 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(how)
    process.wait(PATIENCE_S)
    hold.unlink()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode in {130, -signal.SIGKILL}
    done = [path.stem.rpartition("-")[2] for path in (make.out / "lillis" / ".runs").glob("*.json")]
    assert 0 < len(done) < 10
    assert finished(make(*TEN))[0] == 0
    # a simulation whose runner was killed goes on by itself, and is made again
    assert [make.made().count(seed) for seed in done] == [1] * len(done)
    assert len(list((make.out / "lillis" / ".runs").glob("*.json"))) == 10
    assert not list((make.out / "lillis" / ".runs").glob("making-*"))


def test_a_run_whose_definition_changed_is_made_again_and_one_that_is_gone_is_deleted(make):
    assert finished(make(*TEN))[0] == 0
    records = make.out / "lillis" / ".runs"
    old = json.loads((records / "loss1-veno-0-1.json").read_text())
    old["definition"]["options"]["queue"] = 1
    (records / "loss1-veno-0-1.json").write_text(json.dumps(old))
    (records / "loss1-hstcp-0-1.json").write_text("{}")
    gone = make.out / "lillis" / "traces" / "loss1-hstcp-0-1.tr.xz"
    own = gone.with_name("mine.tr.xz")
    for path in (gone, own):
        path.touch()
    assert finished(make(*TEN))[0] == 0
    assert make.made()[10:] == ["1"]
    assert (gone.exists(), own.exists()) == (False, True)


def test_without_ns_it_says_what_is_missing(make, tmp_path):
    status, told = finished(make("lillis", PATH=str(tmp_path)))
    assert status == 2
    assert "apt install ns2" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "there is no study `nobody`"),
        (["--jobs", "0"], "--jobs: at least 1"),
        ([], "--out FOLDER is missing"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments, words):
    done = subprocess.run(
        [sys.executable, str(STUDIES / "make.py"), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr


def test_a_study_file_at_full_scale_has_the_paper_s_times(load_script):
    make = load_script(STUDIES / "make.py")
    text = '[values]\nwarmup = "4s"  # of 14 s\nlate = "8s"\n\n[runs]\nwarmup = "1s"\n'
    full = make.full_study(text, {"warmup": "60s"})
    assert full == '[values]\nwarmup = "60s"  # of 14 s\nlate = "8s"\n\n[runs]\nwarmup = "1s"\n'
    assert make.full_study("[runs]\n", {"warmup": "60s"}) == "[runs]\n"


@pytest.mark.parametrize("study", NAMES)
def test_each_study_file_can_be_read_at_full_scale(load_script, study, tmp_path):
    make = load_script(STUDIES / "make.py")
    (tmp_path / "traces").symlink_to(STUDIES / study / "traces")
    values = make.load_study(study).FULL_VALUES
    file = tmp_path / "study.toml"
    file.write_text(make.full_study((STUDIES / study / "study.toml").read_text(), values))
    assert all(f'"{value}"' in file.read_text() for value in values.values())
    read_study(str(file))


@pytest.fixture
def full_runs(load_script):
    make = load_script(STUDIES / "make.py")
    return lambda study: make.load_study(study).runs(small=False)


@pytest.mark.parametrize(
    ("study", "least"),
    [("casoni-merani", 8), ("de-cicco-mascolo", 12), ("lillis", 10), ("rao-janani-reddy", 10), ("zhang", 10)],
)
def test_each_setting_is_repeated_as_often_as_the_paper_says_or_ten_times(full_runs, study, least):
    repeated = Counter(run.name.rpartition("-")[0] for run in full_runs(study))
    assert min(repeated.values()) == least


def test_settings_are_those_of_the_papers(full_runs):
    cells = [run for run in full_runs("casoni-merani") if run.name.startswith("mix-")]
    # three minutes
    assert {run.options["duration"] - 1 - 100 for run in cells} == {180}
    assert {tuple(run.name.split("-")[2:4]) for run in cells} >= {("10", "10"), ("3", "1"), ("10", "1")}
    hops = [run for run in full_runs("casoni-merani") if run.name.startswith("hops-second-")]
    assert {run.options["bandwidths"] for run in hops} == {"4Mb 1Mb 1Mb"}
    assert {(run.options["queue"], run.flows[-1]["start"], run.flows[0]["size"]) for run in hops} == {
        (20, 35, 500)
    }
    # table 1: windows and rates
    windows = {
        (run.flows[0]["window"], run.flows[0]["rate"])
        for run in full_runs("rao-janani-reddy")
        if run.name.startswith("window-6-tcp")
    }
    assert windows == {(10 * i, f"{160 + i}kb") for i in range(1, 8)}
    # traffic from 15 s, stations that come nearer at 80 s, and the buffers
    (first, *_) = [run for run in full_runs("zhang") if run.name.startswith("scenario1-")]
    assert all(15 <= flow["start"] <= 16 for flow in first.flows)
    assert (first.options["change_at"], first.options["duration"]) == (80, 200)
    assert (first.options["station_buffer"], first.options["access_buffer"]) == (256_000 // 8, 20_000)


@pytest.mark.parametrize("study", NAMES)
def test_shipped_traces_are_those_of_the_list(load_script, study):
    runs = load_script(STUDIES / "make.py").load_study(study).runs(small=True)
    shipped = {path.name.removesuffix(".tr.xz") for path in (STUDIES / study / "traces").iterdir()}
    assert shipped == {run.name for run in runs}
    assert set(truth_of(STUDIES / study)) == shipped


def test_bounds_of_the_mtfrc_runs_are_what_their_cells_carry(run, load_script):
    def payload_kbps(name, *arguments):
        told = run("capacity", "--preset", "paper", "--payload", "1024", *arguments, "--format", "json")
        # the preset counts whole frames
        return json.loads(told.out)["bounds"][name] * 8192 / 8614 / 1e3

    zhang = load_script(STUDIES / "make.py").load_study("zhang")
    far, near = ("--station", "2x11", "--station", "2x5.5"), ("--station", "4x11")
    assert payload_kbps("x_t_bps", *far) == pytest.approx(zhang.X_T_KBPS["far"], abs=0.05)
    assert payload_kbps("x_t_bps", *near) == pytest.approx(zhang.X_T_KBPS["near"], abs=0.05)
    second = ("--station", "11", "--station", "2", "--ap-rate", "5.5", "--downloads", "3")
    assert payload_kbps("x_fair_bps", *second) == pytest.approx(zhang.X_FAIR_KBPS["scenario2"], abs=0.05)
    for count in (1, 2, 3):
        each = ("--station", f"{count}x11", "--downloads", count)
        assert payload_kbps("x_fair_bps", *each) == pytest.approx(zhang.X_FAIR_KBPS[count], abs=0.05)


def test_uploads_of_mtfrc_send_no_more_than_their_bound(load_script):
    truth = truth_of(STUDIES / "zhang")
    looked_at = 0
    for one in load_script(STUDIES / "make.py").load_study("zhang").runs(small=True):
        for flow in one.flows:
            if "bounds" in flow:
                changes = flow["bounds"].strip("{}").split()
                times = [max(float(time_s), flow["start"]) for time_s in changes[::2]] + [flow["stop"]]
                rates = [float(rate.removesuffix("kb")) * 1e3 for rate in changes[1::2]]
                stretches = zip(rates, times, times[1:], strict=False)
                allowed_bits = sum(rate * (until - since) for rate, since, until in stretches)
                # a packet at once, and one more may wait when the time is over
                assert truth[one.name][str(flow["id"])]["sent_packets"] <= allowed_bits / 8192 + 2
                looked_at += 1
    assert looked_at == 2 * (4 + 2) + 3


@pytest.mark.skipif(shutil.which("ns") is None, reason="needs ns-2")
@pytest.mark.parametrize(
    ("study", "name"),
    [
        ("lillis", "loss5-vegas-0-1"),
        ("rao-janani-reddy", "window-14-tcp-10-base-2"),
        ("zhang", "slow-2-tfrc-1"),
    ],
)
def test_ns_2_makes_what_is_shipped(study, name, tmp_path):
    command = [sys.executable, str(STUDIES / "make.py"), "--scale", "small", "--out", str(tmp_path), study]
    subprocess.run([*command, "--only", name], check=True, capture_output=True)
    made = truth_of(tmp_path / study)
    shipped = truth_of(STUDIES / study)
    assert made == {name: shipped[name]}
    (trace,) = (tmp_path / study / "traces").rglob(f"{name}.tr.xz")
    (known,) = (STUDIES / study / "traces").rglob(f"{name}.tr.xz")
    assert trace.read_bytes() == known.read_bytes()
