"""Records in the form of M-Lab's tcp-info are what `ss` reads of the same socket.

`tests/data/logs/tcp-info` has a connection that sends 100 kB each second: what `sock_diag` answers while it
waits, and what `ss -tinO` prints then.
"""

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

LOGS = Path(__file__).resolve().parent.parent.parent / "data" / "logs" / "tcp-info"
RECORDS = LOGS / "records.jsonl.gz"


def rows(*paths: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        _native.analyse([str(path) for path in paths], ReadSettings()).table("variables").rows()
    )
    return found


def by_sample(path: Path) -> list[dict[str, float]]:
    """Return the values of each sample, in order of time."""
    samples: dict[int, dict[str, float]] = {}
    for row in rows(path):
        assert (row["src"], row["dst"], row["dst_port"]) == ("10.9.1.1", "10.9.1.2", 5999)
        samples.setdefault(row["time_ns"], {})[row["name"]] = row["value"]
    return [samples[time] for time in sorted(samples)]


def test_every_variable_is_what_ss_prints() -> None:
    ours, theirs = by_sample(RECORDS), by_sample(LOGS / "ss.txt.gz")
    assert len(ours) == len(theirs) == 4
    compared = set()
    for own, printed in zip(ours, theirs, strict=True):
        for name in own.keys() & printed.keys():
            # `ss` prints six digits of an RTT and whole bits of a rate
            assert own[name] == pytest.approx(printed[name], rel=1e-5), name
            compared.add(name)
        # what no capture of the sample had yet, ss leaves out
        assert all(own[name] == 0 for name in own.keys() - printed.keys())
    assert compared >= {"cwnd", "ssthresh", "srtt", "rttvar", "minrtt", "rto", "mss", "retransmits"}
    assert compared >= {
        "bytes_sent",
        "bytes_acked",
        "bytes_retrans",
        "pacing_rate",
        "delivery_rate",
        "snd_wnd",
    }


def test_times_are_those_of_the_records() -> None:
    lines = gzip.decompress(RECORDS.read_bytes()).decode().splitlines()
    theirs = [datetime.fromisoformat(json.loads(line)["Timestamp"]) for line in lines[1:]]
    ours = sorted({row["time_ns"] for row in rows(RECORDS)})
    assert [time / 1e9 for time in ours] == [time.timestamp() for time in theirs]


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    log = tmp_path / "records.jsonl"
    log.write_bytes(gzip.decompress(RECORDS.read_bytes()) + b'{"Timestamp":"soon","RawIDM":"AgEA"}\n')
    messages = [str(problem["message"]) for problem in _native.analyse([str(log)], ReadSettings()).problems]
    assert any("tcp-info" in message for message in messages)
