"""The runs of the study of RFC 9743: how they are made, and what the study says of small ones."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tfrctrace.study.file.study_file import find_study, read_study

ROOT = Path(__file__).resolve().parents[1]
JUDGING = read_study(find_study("bcp133")).judging
PLACES = {place.name: place for place in JUDGING.places}

SMALL_STUDY = """
[runs]
files = ["*/*/*/sender.tr.xz"]
pattern = "{controller}/{scenario}/{run}/sender.*"
repetition = "run"

[measure]
only_labelled = true
least_packets = 1

[labels]
newcomer = ["port 5201", "port 5202"]

[[quantity]]
name = "loss_rate"
metric = "retransmission_ratio"
flows = "weighted"

[[quantity]]
name = "delay"
column = "rtt_mean_ms"

[judge]
parameter = "controller"
scenario = "scenario"
references = ["reno", "cubic"]
least_runs = 3

[[scenario]]
name = "small"
rate = "2M"
rtt = "40ms"
buffer = 2.0
duration = "8s"
flows = [{ label = "newcomer" }, { label = "newcomer" }]

[[criterion]]
section = "5.1.2"
title = "queue"
scenario = "small"
quantity = "delay"
group = "newcomer"
worse = "higher"
margin = 1.1

[[criterion]]
section = "5.1.3"
title = "losses"
scenario = "small"
quantity = "loss_rate"
group = "newcomer"
worse = "higher"
margin = 1.25
"""


@pytest.fixture
def program(monkeypatch):
    """Return the program that makes runs; its modules have names that other tests use too."""
    folder = ROOT / "evaluation" / "bcp133"
    for path in (ROOT / "sample_traces" / "studies", ROOT / "evaluation" / "kernel_farm", folder):
        monkeypatch.syspath_prepend(str(path))
    names = ("kernels", "simulations", "simulation", "boot", "scenario")
    for name in names:
        sys.modules.pop(name, None)
    import kernels
    import simulations

    yield kernels, simulations
    for name in names:
        sys.modules.pop(name, None)


def test_each_place_is_a_scenario_of_the_farm(program):
    kernels, _ = program
    for place in JUDGING.places:
        scenario = kernels.scenario_of(place, "vegas", JUDGING.ports, 1)
        senders = (scenario.sender, *scenario.competitors)
        assert len(senders) == len(place.flows)
        assert scenario.base_rtt_s == pytest.approx(place.rtt_s, rel=0.031)
        assert {one.server_port for one in senders} <= {
            port for own in JUDGING.ports.values() for port in own
        }
        assert len({one.server_port for one in senders}) == len(senders)
        newcomers = [one for one in place.flows if one.controller is None]
        assert sum(one.controller == "vegas" for one in senders) == len(newcomers)


def test_a_seed_makes_the_same_run_and_another_seed_another(program):
    kernels, simulations = program
    place = PLACES["beside-cubic"]
    first, again, other = (
        (
            kernels.scenario_of(place, "bbr", JUDGING.ports, seed),
            simulations.run_of(place, "bic", JUDGING.ports, seed, []),
        )
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_scenario_is_read_as_it_was_written(program):
    kernels, _ = program
    from scenario import scenario_of

    for place in JUDGING.places:
        scenario = kernels.scenario_of(place, "bbr", JUDGING.ports, 1)
        assert scenario_of(json.loads(json.dumps(scenario.as_dict()))) == scenario
        assert scenario.rates == place.rates
        assert scenario.outage == (place.outage and (place.outage[0], sum(place.outage)))
    assert kernels.scenario_of(PLACES["far-newcomer"], "bbr", JUDGING.ports, 1).far_ports == ((5201, 0.12),)


def test_a_path_becomes_longer_before_its_bottleneck(program):
    kernels, _ = program
    scenario = kernels.scenario_of(PLACES["longer-path"], "bbr", JUDGING.ports, 1)
    at_s, delay_s = scenario.change
    assert at_s == 6.0
    assert sum(scenario.delays_s[1:]) + delay_s == pytest.approx(0.08, rel=0.04)


@pytest.mark.parametrize(("pause_s", "is_kept"), [(0.1, True), (0.6, False)])
def test_a_run_whose_kernel_had_no_processor_is_set_aside(program, tmp_path, pause_s, is_kept):
    kernels, _ = program
    (tmp_path / "sender.pcap.gz").write_bytes(b"")
    with gzip.open(tmp_path / "flow.tcp_info.csv.gz", "wt") as log:
        rows = csv.writer(log)
        rows.writerow(["time_ns"])
        rows.writerows([[round(time_s * 1e9)] for time_s in (0, 0.02, 0.04, 0.04 + pause_s)])
    assert kernels.set_aside(tmp_path) is not is_kept
    assert (tmp_path / "sender.pcap.gz").exists() is is_kept
    assert (tmp_path / "sender.pcap.gz.failed").exists() is not is_kept


def test_what_ns_2_does_not_have_is_not_simulated(program):
    _, simulations = program
    lacking = {name: simulations.lacks(place, "vegas") for name, place in PLACES.items()}
    assert lacking["beside-cubic"] is None
    assert lacking["codel"] == "queue `codel`"
    assert lacking["reordering"] == "reordering"
    assert lacking["outage"] is None
    assert lacking["beside-bbr"] == "BBR"
    assert simulations.lacks(PLACES["own-short"], "tfrc") == "transfer of TFRC that ends"


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    """Return the path of a study of one small place."""
    path = tmp_path_factory.mktemp("small") / "study.toml"
    path.write_text(SMALL_STUDY)
    return path


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 simulates the runs")
def test_simulated_runs_are_judged_by_what_ns_2_counted(program, run_in, tmp_path, small_study):
    """A loss-based sender that does not back off loses more; Vegas leaves the queue empty."""
    _, simulations = program
    judging = read_study(str(small_study)).judging
    place = judging.places[0]
    for name, algorithm, parameters in (
        ("reno", "reno", []),
        ("cubic", "cubic", []),
        ("vegas", "vegas", []),
        ("broken", "bic", ["beta=1020"]),
    ):
        folders = {
            tmp_path / "runs" / name / "small" / str(seed): (place, algorithm, seed) for seed in (1, 2, 3)
        }
        assert simulations.make_runs(folders, judging, parameters) == 0
    # runs that are there are not made again
    assert simulations.make_runs(folders, judging, parameters) == 0
    folders = ("--runs", tmp_path / "runs", "-o", tmp_path / "results", "--cache", tmp_path / "cache")
    done = run_in(tmp_path, "experiment", small_study, *folders, "--jobs", "1", "--pages")
    assert done.status == 0
    criteria = json.loads((tmp_path / "results/study.json").read_text())["criteria"]
    found = {(one["algorithm"], one["section"]): one for one in criteria}
    assert found["broken", "5.1.3"]["verdict"] == "worse"
    assert found["vegas", "5.1.2"]["verdict"] == "no worse"
    assert found["vegas", "5.1.3"]["verdict"] == "no worse"
    for name in ("reno", "cubic", "vegas", "broken"):
        ratios = []
        for seed in (1, 2, 3):
            counted = json.loads((tmp_path / "runs" / name / "small" / str(seed) / "truth.json").read_text())
            sent = sum(flow["sent_packets"] for flow in counted.values())
            ratios.append(sum(flow["retransmitted_packets"] for flow in counted.values()) / sent)
        assert found[name, "5.1.3"]["value"] == pytest.approx(sum(ratios) / 3, rel=0.01)
    for form in ("criteria.md", "criteria.tex", "criteria.csv", "report.html", "figures/profile.svg"):
        assert (tmp_path / "results" / form).stat().st_size > 0
    assert "more harm" in (tmp_path / "results/criteria.md").read_text()
    page = (tmp_path / "results/report.html").read_text()
    pages = re.findall(r'href="\./(runs/\d+\.html)"', page)
    assert len(pages) == len(set(pages)) == 12
    assert all("../report.html" in (tmp_path / "results" / path).read_text() for path in pages)
    # each row leads to the first of its runs
    assert {"run-1", "run-4", "run-7", "run-10"} == set(re.findall(r'href="#(run-\d+)"', page))
    assert max(map(len, done.out.splitlines())) <= 80
    assert "broken: worse 1" in done.out


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 simulates the runs")
def test_what_happens_to_a_simulated_path_is_in_the_trace_of_ns_2(program, tmp_path, small_study):
    """Count what ns-2 itself wrote: packets at receivers by second, and round trips of first packets."""
    _, simulations = program
    judging = read_study(str(small_study)).judging
    near, far = judging.places[0].flows
    place = replace(
        judging.places[0],
        rates=((4.0, 500_000.0),),
        outage=(6.0, 1.0),
        flows=(near, replace(far, rtt_s=0.16)),
    )
    assert simulations.make_runs({tmp_path / "1": (place, "reno", 1)}, judging, []) == 0
    arrived_bits, first_s = Counter(), {}
    with lzma.open(tmp_path / "1" / "sender.tr.xz", "rt") as lines:
        for line in lines:
            event, time_s, _, _, kind, size, _, flow, *_ = line.split()
            if event == "r" and kind == "tcp":
                arrived_bits[int(float(time_s))] += int(size) * 8
            first_s.setdefault((event, kind, flow), float(time_s))
    assert 1.8e6 <= arrived_bits[2] <= 2.1e6
    assert 4.5e5 <= arrived_bits[5] <= 5.2e5
    # what the last link held is still delivered
    assert arrived_bits[6] < 5e4 < arrived_bits[7] + arrived_bits[8]
    for flow, rtt_s in (("1", 0.04), ("2", 0.16)):
        there_and_back_s = first_s["r", "ack", flow] - first_s["+", "tcp", flow]
        assert there_and_back_s == pytest.approx(rtt_s, rel=0.15)
