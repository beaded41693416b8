"""Criteria: how they are written, when one decides, and whether a run is of the place that it names."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tfrctrace.base.errors import InputError
from tfrctrace.metrics.results.study import StudyFlow, StudyRecord
from tfrctrace.study.file.study_file import find_study, read_study
from tfrctrace.study.find_runs import Run
from tfrctrace.study.page.criteria_tables import verdict_text
from tfrctrace.study.page.tc_commands import tc_commands
from tfrctrace.study.place_of_run import without_wrong_places
from tfrctrace.study.results.cells import summarise
from tfrctrace.study.results.judge import judge
from tfrctrace.study.results.run_quantities import RunValue

STUDY = Path(__file__).parents[2] / "data" / "study"
INSTALLED = read_study(find_study("bcp133"))

JUDGING = """
[runs]
files = ["*/*/*.pcap"]
pattern = "{controller}/{place}/{run}.*"
repetition = "run"

[labels]
own = ["port 1", "port 2"]

[[quantity]]
name = "loss"
metric = "plr"

[judge]
parameter = "controller"
scenario = "place"
references = ["reno", "cubic"]
least_runs = 3
alone = "home"

[[scenario]]
name = "home"
rate = "10M"
rtt = "40ms"
buffer = 0.5
duration = "10s"
flows = [{ label = "own" }, { label = "own", start = "1s" }]

[[criterion]]
section = "1"
title = "losses"
scenario = "home"
quantity = "loss"
group = "own"
worse = "higher"
margin = 1.5

[[criterion]]
section = "2"
title = "words"
reason = "no run shows it"
"""


@pytest.fixture
def study(tmp_path):
    """Return a function that reads a study from its text."""

    def read(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return read_study(str(path))

    return read


SECTIONS_OF_RFC_9743 = {
    *("5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.2", "5.2.1", "5.2.2", "5.2.3", "5.3.1", "5.3.2"),
    *("6.1", "6.2", "6.3", "6.4", *(f"7.{number}" for number in range(1, 12))),
}


def test_the_installed_study_has_every_section_of_the_rfc():
    assert {criterion.section for criterion in INSTALLED.judging.criteria} == SECTIONS_OF_RFC_9743


def test_each_criterion_is_measured_somewhere_or_says_why_not():
    places = {place.name for place in INSTALLED.judging.places}
    for criterion in INSTALLED.judging.criteria:
        assert bool(criterion.reason) != (criterion.place in places)
    used = {criterion.place for criterion in INSTALLED.judging.criteria}
    assert places <= used


def test_names_that_are_no_study_of_the_program_are_paths():
    assert find_study("other") == "other"
    assert find_study("../bcp133") == "../bcp133"
    assert find_study("bcp133").endswith("bcp133.toml")


FLOWS = '[{ label = "own" }, { label = "own", start = "1s" }]'


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("[judge]", "[judges]", "unknown key `judges`"),
        ('parameter = "controller"', 'parameter = "run"', "`run` is the repetition"),
        ('parameter = "controller"', 'parameter = "queue"', "there is no `queue`"),
        ('alone = "home"', 'alone = "away"', "there is no `away`"),
        ('quantity = "loss"', 'quantity = "delay"', "there is no `delay`"),
        ('scenario = "home"', 'scenario = "away"', "there is no `away`"),
        ('["reno", "cubic"]', "[]", "names none"),
        ('["reno", "cubic"]', '["reno", "reno"]', "more than one reference `reno`"),
        ('group = "own"', "", "needs a `group`"),
        ('group = "own"', 'group = "other"', "there is no `other`"),
        ("margin = 1.5", "margin = 0.5", "`margin` is below 1"),
        ("margin = 1.5", "", "needs a `limit`, or a `margin`"),
        ('reason = "no run shows it"', "", "`reason` must be a non-empty string"),
        ('reason = "no run shows it"', 'quantity = "loss"', "has no `scenario`, so it has no `quantity`"),
        ('["port 1", "port 2"]', '["port 1"]', "has more flows `own` than"),
        ('duration = "10s"', "", "`duration` must be"),
        ("buffer = 0.5", "buffer = nan", "`buffer` must be a number"),
        ('rate = "10M"', 'rate = "0"', "capacity must be above 0"),
        ("buffer = 0.5", 'buffer = 0.5\nqueue = "sfq"', "`queue` cannot be `sfq`"),
        (FLOWS, "[]", "has 0 flows"),
        ('label = "own", start = "1s"', 'label = "own", rtt = "1ms"', "no longer than that of its path"),
        (FLOWS, "[" + '{ label = "own", rtt = "1s" },' * 16 + "]", "more than 15 flows"),
        ("buffer = 0.5", "buffer = 0.5\nclears_marks = true", "without marks"),
    ],
)
def test_what_is_wrong_is_said_before_a_run_is_read(study, old, new, error):
    assert old in JUDGING
    with pytest.raises(InputError, match=error):
        study(JUDGING.replace(old, new))


def test_criteria_need_a_judge(study):
    head, _, rest = JUDGING.partition("[judge]")
    with pytest.raises(InputError, match=r"needs `\[judge\]`"):
        study(head + rest[rest.index("[[scenario]]") :])


def cells_of(**losses):
    """Return the cells of runs of each controller with these losses."""
    found = []
    for controller, values in losses.items():
        for number, value in enumerate(values):
            run = Run("", f"{controller}/home/{number}", {"controller": controller, "place": "home"})
            one = RunValue(quantity="loss", group="own", value=value, unit="", made_of=1)
            found.append((run, one))
    return summarise(found, ("controller", "place"), 0.95)


RENO, CUBIC = (0.010, 0.011, 0.012), (0.020, 0.021, 0.022)


@pytest.mark.parametrize(
    ("values", "verdict", "reason"),
    [
        ((0.100, 0.101, 0.103), "worse", ""),
        # worse than Reno, not than CUBIC
        ((0.020, 0.021, 0.022), "no worse", ""),
        ((0.001, 0.001, 0.001), "no worse", ""),
        ((0.001, 0.100, 0.050), "cannot tell", "runs vary too much"),
        ((0.100, 0.101), "not judged", "new has 2 runs in `home`, and 3 are needed"),
        ((), "not judged", ""),
    ],
)
def test_a_verdict_is_against_the_worse_of_the_references(study, values, verdict, reason):
    judging = study(JUDGING).judging
    found = judge(cells_of(reno=RENO, cubic=CUBIC, new=values), judging, 0.95)
    own = [one for one in found if one.algorithm == "new" and one.criterion.section == "1"]
    if not values:
        assert own == []
        return
    assert (own[0].verdict, own[0].reason) == (verdict, reason)


def test_what_lacks_is_told_of_the_quantity_that_runs_have(study):
    """A reference without runs is the reason, not that captures at the sender show no delay one way."""
    text = JUDGING.replace('quantity = "loss"', 'quantity = ["loss", "delay"]', 1)
    text = text.replace("[judge]", '[[quantity]]\nname = "delay"\ncolumn = "rtt_mean_ms"\n\n[judge]')
    judging = study(text).judging
    cells = cells_of(cubic=CUBIC, new=CUBIC)
    without = RunValue(quantity="delay", group="own", value=None, unit="ms", made_of=0, reason="null if cut")
    runs = [cell.runs[0] for cell in cells]
    cells += summarise([(run, without) for run in runs], ("controller", "place"), 0.95)
    reasons = {one.algorithm: one.reason for one in judge(cells, judging, 0.95) if one.criterion.place}
    assert reasons == dict.fromkeys(("cubic", "new"), "no run of reno in `home`")


def test_without_a_reference_nothing_is_judged(study):
    found = judge(cells_of(reno=RENO, new=RENO), study(JUDGING).judging, 0.95)
    assert {one.verdict for one in found} == {"not judged"}
    assert "no run of cubic in `home`" in {one.reason for one in found}
    assert "no run shows it" in {one.reason for one in found}


def test_the_only_reference_is_compared_with_none(study):
    judging = study(JUDGING.replace('["reno", "cubic"]', '["reno"]')).judging
    found = {
        one.algorithm: one
        for one in judge(cells_of(reno=RENO, new=RENO), judging, 0.95)
        if one.criterion.place
    }
    assert (found["reno"].verdict, found["reno"].reason) == ("not judged", "it is the only reference")
    assert found["new"].verdict == "no worse"


def test_words_of_a_verdict_are_about_harm(study):
    found = judge(cells_of(reno=RENO, cubic=CUBIC, new=(0.1, 0.1, 0.11)), study(JUDGING).judging, 0.95)
    words = {(one.algorithm, one.criterion.section): verdict_text(one) for one in found}
    assert words["new", "1"] == "more harm"
    assert words["reno", "1"] == "no more harm"
    assert words["new", "2"] == "not judged"


def test_runs_that_agree_in_full_decide(study):
    same = {"reno": (0.1,) * 3, "cubic": (0.1,) * 3, "new": (0.1,) * 3}
    found = judge(cells_of(**same), study(JUDGING).judging, 0.95)
    assert {one.verdict for one in found if one.cell is not None} == {"no worse"}


def record_of(*flows, rtt_ms=40.2, lasted_s=10.0, megabytes=6.0):
    numbers = {
        "start_ns": 0,
        "end_ns": round(lasted_s * 1e9),
        "rtt_min_ms": rtt_ms,
        "unique_bytes": megabytes * 1e6,
        "received_bytes": None,
    }
    return StudyRecord(
        failed=False, problems=[], sets=1, set=None, least_packets=1, flows_left_out=0, metrics=[], series={},
        flows=[StudyFlow(number, group, numbers, {}) for number, group in enumerate(flows)],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("place", "record", "wrong"),
    [
        ("home", record_of("own", "own"), None),
        ("away", record_of("own", "own"), "is of no scenario of the study: `away`"),
        ("home", record_of("own"), "it has 1 flow `own`, not 2"),
        ("home", record_of("own", "own", "other"), "it has flows `other`"),
        ("home", record_of("own", "own", rtt_ms=90.0), "its smallest round-trip time is 90.0 ms, not 40 ms"),
        ("home", record_of("own", "own", rtt_ms=None), None),
        ("home", record_of("own", "own", lasted_s=3.0, megabytes=1), "it lasted 3.0 s, not 10 s"),
        ("home", record_of("own", "own", megabytes=9.0), "it carried 14.4 Mbit/s, more than 10 Mbit/s"),
    ],
)
def test_a_run_of_another_place_is_left_out(study, place, record, wrong):
    run = Run("", "new/home/1", {"controller": "new", "place": place})
    kept, problems = without_wrong_places([run], [record], study(JUDGING).judging)
    assert kept == [None if wrong else record]
    assert all(wrong in problem["message"] for problem in problems)
    assert len(problems) == (wrong is not None)


def test_the_nearest_flow_may_show_no_round_trip_time(study):
    far = JUDGING.replace('start = "1s" }]', 'rtt = "160ms" }]')
    run = Run("", "new/home/1", {"controller": "new", "place": "home"})
    for text, rtt_ms, is_kept in ((JUDGING, 160.5, False), (far, 160.5, True), (far, 300.0, False)):
        (kept,), _ = without_wrong_places(
            [run], [record_of("own", "own", rtt_ms=rtt_ms)], study(text).judging
        )
        assert (kept is not None) is is_kept


def test_a_copy_is_no_repetition(study, tmp_path):
    runs = []
    for name in ("new/home/1", "new/home/2", "old/home/1"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"same")
        runs.append(Run(str(path), name, {"controller": name[:3], "place": "home"}))
    record = record_of("own", "own")
    kept, problems = without_wrong_places(runs, [record] * 3, study(JUDGING).judging)
    assert kept == [record, None, record]
    assert ["has the same bytes as" in problem["message"] for problem in problems] == [True]


def test_tc_commands_make_each_place():
    for place in INSTALLED.judging.places:
        commands = tc_commands(place, INSTALLED.judging.ports)
        assert f"htb rate {place.rate_bps / 1e3:g}kbit" in commands[1]
        assert place.queue in commands[2]
        assert sum(" change dev IN " in command for command in commands) == len(place.rates)
        far = [flow.rtt_s for flow in place.flows if flow.rtt_s is not None]
        for rtt_s in far:
            assert any(f" delay {(rtt_s - place.rtt_s / 2) * 1e3:g}ms" in command for command in commands)


def queues_after_each(commands):
    """Return what `tc` shows of OUT after each command, in a network namespace that is gone afterwards."""
    links = [f"ip link add {name} type veth peer name {name.lower()}" for name in ("IN", "OUT", "BACK")]
    shown = "echo; tc -j qdisc show dev OUT"
    steps = [f"{re.sub('^at [0-9.]+ s: ', '', command)} >/dev/null; {shown}" for command in commands]
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-ec", "; ".join([*links, *steps])],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as missing:
        pytest.skip(f"{missing.filename} is not there")
    lacks = ("Operation not permitted", "qdisc kind is unknown", "Unknown device type", "not found")
    if any(reason in done.stderr for reason in lacks):
        pytest.skip(f"this machine cannot: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def delays_and_losses(queues):
    return [
        (
            queue["options"].get("delay", {}).get("delay", 0),
            queue["options"].get("loss-random", {}).get("loss", 0),
        )
        for queue in queues
        if queue["kind"] == "netem"
    ]


@pytest.mark.parametrize(
    ("judging", "place"),
    [
        pytest.param(judging, place, id=place.name)
        for judging in (INSTALLED.judging, read_study(find_study("rfc8867")).judging)
        for place in judging.places
    ],
)
def test_the_kernel_takes_the_commands_of_each_place(judging, place):
    commands = tc_commands(place, judging.ports)
    *_, last = queues_after_each([one for one in commands if not one.startswith("ip link add TUNNEL")])
    # with reordering that of late packets only
    nearest_s, _ = min(delays_and_losses(last))
    assert nearest_s == pytest.approx((place.change or (0, place.rtt_s))[1] - place.rtt_s / 2)


def test_losses_changes_and_outages_are_of_all_receivers_also_of_those_farther_away():
    places = {place.name: place for place in INSTALLED.judging.places}
    place = replace(places["own-far"], loss=0.01, change=(2.0, 0.08), outage=(6.0, 1.0))
    commands = tc_commands(place, INSTALLED.judging.ports)
    assert [one.partition(" s: ")[0] for one in commands if one.startswith("at")] == [
        *("at 2", "at 2"),
        *("at 6", "at 6"),
        *("at 7", "at 7"),
    ]
    *_, begun, _, changed, _, down, _, up = map(delays_and_losses, queues_after_each(commands))
    assert sorted(begun) == [(0.02, 0.01), (0.14, 0.01)]
    assert sorted(changed) == [(0.06, 0.01), (0.18, 0.01)]
    # nothing passes, and the delay stays
    assert sorted(down) == [(0.06, 1), (0.18, 1)]
    assert sorted(up) == sorted(changed)


def test_a_folder_of_runs_must_be_named(run_in, tmp_path):
    done = run_in(tmp_path, "experiment", "bcp133")
    assert done.status == 2
    assert "the study `bcp133` has no runs of its own" in done.err


def test_an_empty_folder_has_no_runs(run_in, tmp_path):
    done = run_in(tmp_path, "experiment", "bcp133", "--runs", tmp_path, "-o", tmp_path / "results")
    assert done.status == 3
    assert "run.py --controller NAME" in done.err


def test_a_run_of_another_study_is_not_judged(perform_study, tmp_path, study_folder):
    place = tmp_path / "runs" / "reno" / "alone" / "1"
    place.mkdir(parents=True)
    trace = next((study_folder / "runs").glob("*.tr.xz"))
    (place / "sender.tr.xz").write_bytes(trace.read_bytes())
    done = perform_study("bcp133", "--runs", tmp_path / "runs", "-o", tmp_path / "results")
    assert done.status == 3
    assert "is not of `alone`: it has 0 flows `newcomer`, not 1, so it is left out" in done.err
    # rows say which scenarios were not run
    assert "fits no flow" not in done.err


def test_groups_that_competed_are_noted(run_in, tmp_path):
    runs = STUDY / "runs"
    done = run_in(
        tmp_path, "compare", f"{runs}/red-n2-*", f"{runs}/red-n2-*", "--groups", "tfrc:tcp",
        "-m", "rate_bps", "--basis", "received", "--cache", "none", "--jobs", "1",
    )  # fmt: skip
    assert done.status == 0
    assert "`tfrc` and `tcp` were active together in 3 of 3 runs" in done.err


def test_groups_of_different_runs_did_not_compete(run_in, tmp_path):
    runs = STUDY / "runs"
    done = run_in(
        tmp_path, "compare", f"{runs}/red-n2-*", f"{runs}/droptail-n2-*", "-m", "rate_bps",
        "--basis", "received", "--cache", "none", "--jobs", "1",
    )  # fmt: skip
    assert done.status == 0
    assert "active together" not in done.err
