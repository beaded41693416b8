"""Logs of TCP variables whose content does not say whose they are, as libnetmeas writes them."""

from __future__ import annotations

import lzma
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import UsageError

RUN = Path(__file__).parents[2] / "sample_traces" / "studies" / "lillis" / "linux" / "congested-reno"
CAPTURE = RUN / "congested-reno.pcap.xz"
SEGMENT_BYTES = 1448


def windows(trace: tfrctrace.Trace) -> pl.DataFrame:
    return trace.variables.filter(pl.col("name") == "cwnd").sort("time_ns")


@pytest.fixture
def kernel_s():
    """Return the windows that `ss` printed of the connection with most samples, and its ends."""
    logged = windows(tfrctrace.open([CAPTURE, RUN / "congested-reno.ss.txt.xz"]))
    ends = ["src", "src_port", "dst", "dst_port"]
    (most,) = logged.group_by(ends).len().sort("len").tail(1).iter_rows(named=True)
    own = logged.filter(*(pl.col(end) == most[end] for end in ends))
    connection = f"{most['src']}:{most['src_port']},{most['dst']}:{most['dst_port']}"
    return own, connection


@pytest.fixture
def log(kernel_s, tmp_path):
    """Write these windows as libnetmeas does: in bytes, since the time that is in the name of the file."""
    own, _ = kernel_s
    begin_s = own["time_ns"].min() // 10**9
    lines = ["Time CurCwnd CurSsthresh"]
    for time_ns, packets in own.select("time_ns", "value").iter_rows():
        lines.append(f"{(time_ns - begin_s * 10**9) / 1e9:.9f} {packets * SEGMENT_BYTES:.0f} 2147483647")
    path = tmp_path / f"tcp_7_{begin_s}.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_log_is_attached_to_the_connection_that_is_named(kernel_s, log):
    own, connection = kernel_s
    found = windows(tfrctrace.open([CAPTURE, log], log_of={log.name: connection}))
    for column in ("flow", "direction", "src", "src_port", "dst", "dst_port"):
        assert found[column].to_list() == own[column].to_list()
    assert found["unit"].unique().to_list() == ["bytes"]
    assert (found["value"] / SEGMENT_BYTES).to_list() == own["value"].to_list()
    assert (found["time_ns"] - own["time_ns"]).abs().max() < 1000


def test_without_the_option_it_is_nobody_s_and_has_the_time_of_its_name(kernel_s, log):
    own, _ = kernel_s
    found = windows(tfrctrace.open([CAPTURE, log]))
    assert found["flow"].null_count() == found.height == own.height
    assert (found["time_ns"] - own["time_ns"]).abs().max() < 1000


def test_the_command_attaches_it_too(run, kernel_s, log, tmp_path):
    own, connection = kernel_s
    packed = log.with_name(f"{log.name}.xz")
    packed.write_bytes(lzma.compress(log.read_bytes()))
    out = tmp_path / "variables.csv"
    done = run(
        "convert", "--what", "variables", CAPTURE, packed, f"--log-of={packed}={connection}", "-o", out
    )
    assert done.status == 0, done.err
    assert pl.read_csv(out)["flow"].to_list() == own["flow"].to_list()


@pytest.mark.parametrize(
    "connection",
    [
        "",
        "10.0.0.1:5000",
        "10.0.0.1,10.0.0.2",
        "10.0.0.1:5000,[fe80::1]:80",
        "10.0.0.1:99999,10.0.0.2:80",
        "a:1,b:2",
    ],
)
def test_what_is_no_connection_is_refused(log, connection):
    with pytest.raises(UsageError, match="does not name a log and its connection"):
        tfrctrace.open([CAPTURE, log], log_of={log.name: connection})


def test_a_log_that_is_not_read_is_refused(log):
    with pytest.raises(UsageError, match="is none of the inputs"):
        tfrctrace.open([CAPTURE, log], log_of={"tcp_8_1.txt": "10.0.0.1:5000,10.0.0.2:80"})
