"""Links that are drawn by seed have the faults that their truth names, and no other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tfrctrace

if TYPE_CHECKING:
    from tfrctrace.api import Trace

MAKE = Path(__file__).parents[1] / "evaluation" / "links" / "make.py"


def drawn(folder: Path, *options: str) -> tuple[Trace, dict]:
    """Return the capture of a link, and its truth."""
    command = [sys.executable, str(MAKE), "--seed", "11", "--days", "0.25", "-o", str(folder), *options]
    subprocess.run(command, check=True, capture_output=True)
    return tfrctrace.open(sorted(folder.glob("*.pcap")), join=True), json.loads(
        (folder / "truth.json").read_text()
    )


def responses(trace: Trace) -> pl.DataFrame:
    """Return the direction of each connection from the server, with its client."""
    flows = trace.flows.filter(pl.col("transport") == "tcp", pl.col("src_port") == 443)
    return flows.with_columns(pl.col("dst").alias("client"), pl.col("src").alias("server"))


def test_a_link_without_faults_has_neither_losses_nor_failures(tmp_path):
    trace, truth = drawn(tmp_path, "--fault", "none")
    assert truth["faults"] == []
    flows = responses(trace)
    assert flows.height > 200
    assert flows["retransmitted_packets"].sum() == flows["lost_before_capture"].sum() == 0
    assert set(flows["state"]) == {"closed"}
    for client, rtt_ms in zip(flows["client"], flows["rtt_min_ms"], strict=True):
        # a delay is half the round-trip time, and up to a few tenths longer
        assert rtt_ms / 1e3 == pytest.approx(truth["hosts"][client]["rtt_s"], rel=0.3)


def test_lost_packets_are_those_of_the_hosts_or_servers_that_the_truth_names(tmp_path):
    trace, truth = drawn(tmp_path, "--fault", "loss")
    (fault,) = truth["faults"]
    begin_ns = trace.zero_ns
    lossy = responses(trace).filter(pl.col("retransmitted_packets") + pl.col("lost_before_capture") > 0)
    assert lossy.height > 3
    assert set(lossy["client"]) <= set(fault["hosts"] or lossy["client"])
    assert set(lossy["server"]) <= set(fault["servers"] or lossy["server"])
    begins_s = (lossy["start_ns"] - begin_ns) / 1e9
    assert begins_s.min() > fault["since_s"] - 60
    assert begins_s.max() < fault["until_s"]


@pytest.mark.slow
def test_planted_stretches_are_found_and_no_others():
    script = MAKE.with_name("evaluate.py")
    # a full queue, losses (too short for the intervals) and an outage
    options = ("--first", "11", "--links", "3", "--days", "0.25", "--jobs", "1")
    done = subprocess.run([sys.executable, str(script), *options], check=True, capture_output=True, text=True)
    rows = [[cell.strip() for cell in row.split("|")] for row in done.stdout.splitlines()[2:]]
    planted, found, false = ([int(row[place]) for row in rows] for place in (2, 3, 7))
    assert planted == found
    assert sum(planted) >= 2
    assert sum(false) == 0


@pytest.mark.slow
def test_an_audit_finds_planted_faults_and_names_their_places():
    script = MAKE.with_name("evaluate_audit.py")
    # a link without a fault but with a far client, and two with two faults each
    kinds = ("bufferbloat", "loss", "outage", "dead capture", "slow server", "bad station")
    options = ("--first", "18", "--links", "3", "--days", "0.25", "--jobs", "1")
    options += tuple(word for kind in kinds for word in ("--fault", kind))
    done = subprocess.run([sys.executable, str(script), *options], check=True, capture_output=True, text=True)
    rows = [[cell.strip() for cell in row.split("|")] for row in done.stdout.splitlines()[2:]]
    planted, _, found, _, false, place = map(int, rows[-1][2:8])
    assert (found, place, false) == (planted, planted, 0)
    assert planted >= 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_no_segment_that_was_not_captured(tmp_path):
    drawn(tmp_path, "--fault", "bad station")
    fields = ["-T", "fields", "-e", "tcp.analysis.ack_lost_segment", "-e", "tcp.analysis.retransmission"]
    lost = repeated = 0
    for capture in tmp_path.glob("*.pcap"):
        command = ["tshark", "-r", str(capture), "-Y", "tcp.analysis.flags", *fields]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            lost += bool(line.split("\t")[0])
            repeated += bool(line.split("\t")[1])
    assert lost < 5  # those of connections that a file's end cuts
    assert repeated > 5
