"""What stands at the place of a result: results are replaced, traces are not."""

import os
import pty
import shutil
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"

COMMANDS = {
    "flows": ["flows", "a.pcap"],
    "metrics": ["metrics", "a.pcap"],
    "groups": ["groups", "a.pcap", "--by", "host"],
    "replay": ["replay", "a.pcap", "--algorithm", "cubic"],
    "convert": ["convert", "a.pcap", "--format", "csv"],
    "report": ["report", "a.pcap"],
    "check": ["check", "a.pcap", "--require", "p95(rtt_ms) < 500"],
    "compare": ["compare", "a.pcap", "a.pcap"],
    "capacity": ["capacity", "--station", "11"],
}


@pytest.fixture
def kept(tmp_path, write_capture, conversation):
    write_capture("a.pcap", conversation(1001))
    return write_capture("kept.pcap", conversation(1002))


@pytest.mark.parametrize("command", COMMANDS)
def test_another_trace_is_not_overwritten(run, kept, command):
    before = kept.read_bytes()
    outcome = run(*COMMANDS[command], "-o", "kept.pcap")
    assert outcome.status == 2
    assert "`kept.pcap` is a trace and is not overwritten" in outcome.err
    assert "--force" in outcome.err
    assert kept.read_bytes() == before


@pytest.mark.parametrize("command", ["flows", "convert", "capacity"])
def test_force_overwrites_it(run, kept, command):
    before = kept.read_bytes()
    assert run(*COMMANDS[command], "-o", "kept.pcap", "--force").status == 0
    assert kept.read_bytes() != before


@pytest.mark.parametrize("sample", ["dumbbell.tr.xz", "dccp-ccid3.pcap.gz"])
def test_traces_of_every_kind_are_kept(run, kept, tmp_path, sample):
    shutil.copy(SAMPLES / sample, tmp_path / sample)
    assert run("flows", "a.pcap", "-o", sample).status == 2
    assert (tmp_path / sample).read_bytes() == (SAMPLES / sample).read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_older_result_is_replaced(run, kept, tmp_path, command):
    for _ in range(2):
        assert run(*COMMANDS[command], "-o", "result.html").status in {0, 1}
    assert (tmp_path / "result.html").stat().st_size


def test_an_input_is_never_overwritten(run, kept, tmp_path):
    before = (tmp_path / "a.pcap").read_bytes()
    outcome = run("flows", "a.pcap", "-o", "a.pcap", "--force")
    assert (outcome.status, "is an input and cannot be overwritten" in outcome.err) == (2, True)
    assert (tmp_path / "a.pcap").read_bytes() == before


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 2)])
def test_on_a_terminal_the_user_is_asked(kept, tmp_path, answer, status):
    before = kept.read_bytes()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "tfrctrace", "flows", "a.pcap", "-o", "kept.pcap"])
    shown = b""
    while b"Overwrite it?" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, f"{answer}\n".encode())
    try:
        while os.read(terminal, 1024):
            pass
    except OSError:  # the other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status
    assert (kept.read_bytes() == before) == (answer == "n")
