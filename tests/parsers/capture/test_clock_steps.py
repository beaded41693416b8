"""Where a clock was set within a file is said by the timestamps of senders, and no time is measured across.

The packets are those of Linux kernels; editcap moves their times.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"
LOSSY = CAPTURES / "linux-relay-loss-snd.pcap.gz"
FIRST = 1_200
"""Packets before the step."""
S = 10**9


@pytest.fixture(scope="module")
def editcap() -> str:
    if not (found := shutil.which("editcap")):
        pytest.skip("editcap is not installed")
    return found


def moved(folder: Path, editcap: str, step: str) -> Path:
    """Return the capture with a clock that is set by `step` seconds after its first packets."""
    whole, first, rest = (folder / name for name in ("whole.pcap", "first.pcap", "rest.pcap"))
    whole.write_bytes(gzip.decompress(LOSSY.read_bytes()))
    subprocess.run([editcap, "-r", "-F", "pcap", whole, first, f"1-{FIRST}"], check=True)
    subprocess.run([editcap, "-F", "pcap", "-t", step, whole, rest, f"1-{FIRST}"], check=True)
    path = folder / "moved.pcap"
    path.write_bytes(first.read_bytes() + rest.read_bytes()[24:])
    return path


@pytest.mark.parametrize(
    ("step", "words"), [("2", "ahead by 2.00 s"), ("-2", "back by 2.00 s"), ("3600", "ahead by 3600 s")]
)
def test_a_step_within_a_file_is_said_and_no_time_is_measured_across(
    step: str, words: str, editcap: str, tmp_path: Path
) -> None:
    whole, stepped = tfrctrace.open(LOSSY), tfrctrace.open(moved(tmp_path, editcap, step))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", TfrctraceWarning)
        flows = stepped.flows.to_dicts()
    assert any(words in str(one.message) for one in said)
    (problem,) = [one for one in stepped.warnings if one["kind"] == "clock_step"]
    assert problem["packet"] == FIRST + 1
    ((found,),) = [source["clock_steps"] for source in stepped.sources]
    assert found["packet"] == FIRST + 1
    assert found["step_ns"] == pytest.approx(int(step) * S, abs=0.1 * S)
    for flow, same in zip(whole.flows.to_dicts(), flows, strict=True):
        for name in ("rtt_p50_ms", "rtt_max_ms", "sender_rtt_p50_ms"):
            assert (same[name] or 0) <= (flow[name] or 0) * 1.1, name


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("linux-*.gz")), ids=lambda path: path.name)
def test_clocks_that_run_on_are_not_doubted(path: Path) -> None:
    trace: Any = tfrctrace.open(path)
    assert [one["kind"] for one in trace.warnings if one["kind"].startswith("clock")] == []
