"""Scenarios of the farm of kernels, and the sums of its logs."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import tfrctrace

FARM = Path(__file__).resolve().parents[1] / "evaluation" / "kernel_farm"


@pytest.fixture(autouse=True)
def _programs_of_the_farm(monkeypatch):
    monkeypatch.syspath_prepend(str(FARM))
    yield
    for name in (
        "scenario",
        "tcp_info",
        "truth",
        "run",
        "boot",
        "network",
        "endpoints",
        "judge",
        "judge_names",
        "judge_models",
        "judge_loops",
        "judge_swaps",
        "judge_bottlenecks",
    ):
        sys.modules.pop(name, None)


def test_a_seed_and_a_number_make_the_same_scenario_everywhere():
    from scenario import draw

    first, second = draw(7, 4), draw(7, 4)
    assert first == second
    assert first != draw(7, 5)
    assert first != draw(8, 4)
    # CPython's generator is the same on every machine and release
    assert (first.name, first.sender.controller, round(first.rate_bps)) == (
        "7-0004-send_buffer-westwood",
        "westwood",
        first.rate_bps,
    )


def test_a_draw_has_every_controller_with_every_limit():
    from scenario import CONTROLLERS, LIMITS, draw

    drawn = {
        (s.limit, s.sender.controller) for s in (draw(1, n) for n in range(len(LIMITS) * len(CONTROLLERS)))
    }
    assert len(drawn) == len(LIMITS) * len(CONTROLLERS)


def test_a_scenario_is_read_as_it_was_written():
    from scenario import LIMITS, draw, scenario_of

    for number in range(len(LIMITS)):
        scenario = draw(3, number)
        assert scenario_of(json.loads(json.dumps(scenario.as_dict()))) == scenario


def test_what_holds_a_flow_back_is_in_its_scenario():
    from scenario import draw

    for number in range(170):
        scenario = draw(2, number)
        path_bytes = scenario.rate_bps * scenario.base_rtt_s / 8
        match scenario.limit:
            case "receiver":
                assert scenario.sender.receive_buffer < path_bytes
            case "send_buffer":
                assert scenario.sender.send_buffer < path_bytes
            case "policer":
                assert scenario.policer[0] < scenario.rate_bps
            case "shared":
                assert scenario.competitors
            case "paced":
                application = scenario.sender.application
                assert application.size * 8 / application.pause_s < 0.7 * scenario.rate_bps


def test_tcp_info_is_what_the_kernel_writes():
    from tcp_info import LOGGED, logged

    listening = socket.create_server(("127.0.0.1", 0))
    connection = socket.create_connection(listening.getsockname())
    other, _ = listening.accept()
    with listening, connection, other:
        connection.sendall(bytes(100_000))
        while other.recv(65_536, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b"":
            pass
        values = dict(zip(LOGGED, logged(connection), strict=True))
        taken = 0
        while taken < 100_000:
            taken += len(other.recv(65_536))
        values = dict(zip(LOGGED, logged(connection), strict=True))
    assert values["state"] == 1
    assert values["bytes_acked"] in (100_000, 100_001)
    assert values["bytes_sent"] == 100_000
    assert 500 < values["snd_mss"] <= 65_483
    assert values["snd_cwnd"] >= 1


def _samples(*rows):
    from tcp_info import LOGGED

    zeros = dict.fromkeys(LOGGED, 0) | {"snd_cwnd": 10}
    return [zeros | {"time_ns": round(at_s * 1e9)} | more for at_s, more in rows]


def _states(*changes):
    return [{"time_ns": round(at_s * 1e9), "state": state} for at_s, state in changes]


def test_a_flow_waits_for_its_application_while_there_is_nothing_to_send():
    from truth import truth_of

    samples = _samples((0, {}), (1, {"notsent_bytes": 900, "unacked": 10}), (2, {"unacked": 10}), (4, {}))
    truth = truth_of(samples, _states((0.0, "writes"), (0.9, "idle")))
    # what was not sent at 1 s was the network's until 2 s, though the application had no more
    assert (truth.life_s, truth.application_s, truth.network_s) == (4, 2.1, 1.9)
    assert truth.largest == "application"


def test_a_flow_waits_for_its_send_buffer_while_all_of_it_is_in_flight_below_the_window():
    from truth import truth_of

    samples = _samples(*((at_s, {"unacked": 6}) for at_s in range(5)), (5, {"unacked": 10}))
    truth = truth_of(samples, _states((0.0, "writes")))
    assert truth.send_buffer_s == 4
    assert truth.application_s == 0
    assert truth.network_s == 1


def test_the_receiver_is_the_kernels_own_clock():
    from truth import truth_of

    samples = _samples(
        (0, {}), (10, {"rwnd_limited_us": 7_000_000, "total_retrans": 3, "min_rtt_us": 20_500})
    )
    truth = truth_of(samples, _states((0.0, "writes")))
    assert (truth.receiver_s, truth.network_s, truth.largest) == (7, 3, "receiver")
    assert (truth.retransmitted, truth.min_rtt_ms) == (3, 20.5)


def test_a_pacing_sender_with_a_full_receive_window_waits_for_the_receiver():
    from truth import truth_of

    full = {"unacked": 20, "snd_mss": 1448, "snd_wnd": 28_960}
    # BBR: while the pace is waited for, the kernel's clock stands
    truth = truth_of(_samples((0, full), (4, full), (5, full | {"unacked": 10})), _states((0.0, "writes")))
    assert (truth.receiver_s, truth.network_s, truth.largest) == (4, 1, "receiver")


def test_between_samples_that_are_far_apart_a_full_receive_window_is_an_upper_bound():
    from truth import truth_of

    full = {"unacked": 20, "snd_mss": 1448, "snd_wnd": 28_960}
    samples = _samples(
        (0, full), (1, full), (2, full | {"bytes_sent": 9_000, "rwnd_limited_us": 300_000}), (2.02, full)
    )
    truth = truth_of(samples, _states((0.0, "writes")))
    # nothing was sent in the first second
    assert (truth.receiver_least_s, truth.receiver_s) == (pytest.approx(1.32), pytest.approx(2.02))


def test_while_losses_are_repaired_neither_application_nor_send_buffer_hold_a_flow_back():
    from truth import truth_of

    recovers = {"unacked": 6, "lost": 1}
    samples = _samples((0, {"unacked": 6}), (1, recovers), (2, recovers), (3, {"unacked": 6}))
    truth = truth_of(samples, _states((0.0, "idle")))
    assert (truth.application_s, truth.send_buffer_s, truth.network_s) == (2, 0, 1)


def test_causes_are_judged_by_what_the_kernel_counted():
    from judge import judge

    judged = judge(FARM.parents[1] / "tests" / "data" / "causes" / "0006-interactive-illinois", "sender")
    assert judged.true_s["application"] == pytest.approx(19.99, abs=0.01)
    assert all(judged.within.values())
    assert judged.is_known
    assert judged.is_right


def test_names_are_judged_by_what_sent():
    from judge_names import judge, matrix, table

    runs = FARM.parents[1] / "tests" / "data" / "causes"
    judged = [judge(runs / name, "sender") for name in ("0000-bottleneck-reno", "0002-receiver-vegas")]
    reno, vegas = judged
    assert (reno.controller, reno.is_right) == ("reno", True)
    assert (vegas.names, vegas.is_right) == ((), False)
    assert table("limit", judged, lambda one: one.scenario.limit)[-1].startswith("| all | 2 | 1 | 1 |")
    assert "| vegas |  |  |  |  |  | 1 |" in matrix(judged)


def test_predicted_windows_are_judged_by_the_kernel_s():
    from judge_models import decisions, table

    runs = FARM.parents[1] / "tests" / "data" / "causes"
    judged = list(decisions(runs / "0000-bottleneck-reno"))
    assert sum(one.is_right for one in judged) > 0.98 * len(judged)
    assert sum(one.is_seen for one in judged) > 0.98 * len(judged)
    [_, _, reno, every] = table("controller", judged, "controller")
    assert reno.startswith(f"| reno | 1 | {len(judged)} | 99.")
    assert every.startswith(f"| all | 1 | {len(judged)} |")
    assert not list(decisions(runs / "0009-server-nv"))


def test_closed_loops_are_judged_by_what_the_kernel_received():
    from judge_loops import judge, table

    runs = FARM.parents[1] / "tests" / "data" / "causes"
    reno = judge(runs / "0000-bottleneck-reno")
    assert reno.received == pytest.approx(1, abs=0.1)
    assert reno.rtt == pytest.approx(1, abs=0.2)
    assert table([reno])[-1].startswith("| 0000-bottleneck-reno | red |  | 0 % | 1.")
    assert judge(runs / "0002-receiver-vegas") is None


def test_bottlenecks_are_judged_by_settings_and_counters():
    from judge_bottlenecks import described, judge, lines

    runs = FARM.parents[1] / "tests" / "data" / "bottlenecks"
    judged = [judge(folder, "sender") for folder in sorted(runs.iterdir())]
    assert [one.true.discipline for one in judged] == ["tail_drop", "aqm", "tail_drop", "aqm"]
    table = lines(judged)
    assert "| capacity | 3 of 4 (75 %) | 3 of 3 (100 %) |" in table[2]
    assert "| buffer | 1 of 1 (100 %) | 1 of 1 (100 %) |" in table[3]
    assert table[5] == "| policer | 0 of 0 | 0 false of 4 | |"
    assert "drops" not in described(judged[0])


def test_a_missing_kernel_is_named_with_how_to_get_it(tmp_path):
    done = subprocess.run(
        [sys.executable, FARM / "run.py", tmp_path / "runs", "--kernel", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "apt-get download user-mode-linux" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kernel_without_simulated_time_is_refused_where_it_is_asked_for(tmp_path):
    from boot import find_kernel

    image = tmp_path / "usr/bin/linux.uml"
    image.parent.mkdir(parents=True)
    says = "#!/bin/sh\necho '# CONFIG_UML_TIME_TRAVEL_SUPPORT is not set'\n"
    image.write_text(says)
    image.chmod(0o755)
    assert not find_kernel(tmp_path).simulated_time
    with pytest.raises(SystemExit, match=r"build_kernel\.sh"):
        find_kernel(tmp_path, simulated_time=True)
    image.write_text(says.replace("# ", "").replace(" is not set", "=y"))
    assert find_kernel(tmp_path, simulated_time=True).simulated_time
    image.write_text(f"{says}echo CONFIG_MODULES=y\n")
    with pytest.raises(SystemExit, match="apt-get download user-mode-linux"):
        find_kernel(tmp_path)  # its modules are missing


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "number", "offload"), [(1, 0, False), (2, 17, True)])
def test_segments_are_those_that_the_kernel_counts(tmp_path, seed, number, offload):
    from boot import find_kernel
    from truth import read, rows

    try:
        find_kernel(None)
    except SystemExit:
        pytest.skip("user-mode-linux is not there")
    done = subprocess.run(
        [
            *(sys.executable, FARM / "run.py", tmp_path, "--duration", "3", "--runs", "1"),
            *("--seed", str(seed), "--first", str(number)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "not done after" in done.stderr:
        pytest.skip("this machine is too busy for a kernel of 3 s: " + done.stderr)
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("*/done")
    scenario, truth = read(run.parent)
    assert scenario.queue in json.loads((run.parent / "counters.json").read_text())["after"]["queues"]
    assert scenario.offload == offload
    flows = tfrctrace.open(run.parent / "sender.pcap.gz").flows
    (flow,) = flows.filter(flows["data_segments"] > 0).to_dicts()
    sent = rows(run.parent / "flow.tcp_info.csv.gz")[-1]["data_segs_out"]
    assert (flow["retransmitted_segments"], flow["data_segments"]) == (truth.retransmitted, sent)
    assert truth.retransmitted > 0
    # packets longer than the wire carries are what offload shows
    assert (flow["data_packets"] < sent, flow["super_segments"] > 0) == (offload, offload)


def test_another_congestion_control_is_predicted_from_the_run_with_one(tmp_path):
    from judge_swaps import by_path, pairs, swap

    bbr = FARM.parents[1] / "tests" / "data" / "congestion_controls" / "17-0000-bbr"
    facts = json.loads((bbr / "scenario.json").read_text())
    folders = [tmp_path / name for name in ("bbr", "reno", "elsewhere")]
    for folder in folders:
        shutil.copytree(bbr, folder)
    sender = facts["sender"] | {"controller": "reno"}
    (folders[1] / "scenario.json").write_text(json.dumps(facts | {"sender": sender}))
    (folders[2] / "scenario.json").write_text(json.dumps(facts | {"rate_bps": 1.0}))
    together, alone = by_path(folders)
    assert [folder.name for folder, _ in together] == ["bbr", "reno"]
    assert not list(pairs(alone))
    predicted = [swap(*pair) for pair in pairs(together)]
    assert [one.told.sender.controller for one in predicted] == ["reno", "bbr"]
    # both logs are of the kernel that ran BBR
    assert predicted[1].rate == pytest.approx(1, abs=0.1)
    assert predicted[0].rate < predicted[1].rate


def test_windows_of_nv_are_predicted_as_the_kernel_had_them():
    from judge_models import decisions

    runs = FARM.parents[1] / "tests" / "data" / "congestion_controls"
    judged = list(decisions(runs / "77-0008-bottleneck-nv"))
    assert len(judged) > 200
    assert sum(one.is_right for one in judged) > 0.95 * len(judged)
    # it shrinks, too
    assert sum(one.predicted < one.kernel[1] and one.event != "loss" for one in judged) > 0


def test_swaps_are_told_by_path_with_what_is_answered_and_why_others_are_not(tmp_path):
    from judge_swaps import Refusal, Sent, Swap, summary, table
    from scenario import Sender, draw

    def sent(controller, rtt_s, beside=()):
        scenario = replace(
            draw(1, 0),
            rate_bps=10e6,
            delays_s=(rtt_s, 0.0, 0.0, 0.0),
            queue="bfifo",
            buffer_bytes=50_000,
            sender=Sender(controller, 0.0, 1, 2),
            competitors=tuple(Sender(name, 0.0, 3, 4) for name in beside),
        )
        return Sent(tmp_path, scenario, scenario.sender, 4e6, 50.0)

    def swap(seen, told, rate_bps, rtt_p95_ms):
        ends = ("received_low_bps", "received_high_bps", "rtt_p95_low_ms", "rtt_p95_high_ms")
        predicted = {"received_mean_bps": rate_bps, "rtt_p95_ms": rtt_p95_ms}
        return Swap(seen, told, SimpleNamespace(**predicted, **dict.fromkeys(ends)))

    judged = [
        swap(sent("bbr", 0.0392), sent("cubic", 0.0392), 3.6e6, 40.0),
        swap(sent("reno", 0.0408), sent("cubic", 0.0408), 4.4e6, 50.0),
        swap(sent("vegas", 0.0408), sent("cubic", 0.0408), 6e6, 100.0),
        Refusal(sent("vegas", 0.0408), sent("cubic", 0.0408), "the buffer is not known: nothing was lost"),
        Refusal(sent("reno", 0.04, ["cubic"]), sent("bbr", 0.04, ["cubic"]), "the buffer is not known: so"),
    ]
    path = "10 Mbit/s, 40 ms, bfifo of 1 paths"
    assert table(judged)[2:] == [
        f"| {path}, alone | cubic | 4 | 3 | 10% | 1.50 from vegas | 20% | 2.00 from vegas |",
        f"| {path}, beside cubic | bbr | 1 | 0 |  |  |  |  |",
    ]
    first, *_, last = summary("all", judged)
    assert first == "all: 5 swaps, 3 answered"
    assert last == "  2 without an answer: the buffer is not known"
