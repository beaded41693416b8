"""Events of the kernel are what `ss` reads of the same sockets, and what Python reads in their lines.

`tests/data/logs/kernel-events` has a connection of iperf3 between namespaces: a capture at its sender,
ftrace's `tcp_probe` with the clock `tai`, and samples of `ss -tinO`.
"""

import gzip
import re
from bisect import bisect
from pathlib import Path
from typing import Any

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

LOGS = Path(__file__).resolve().parent.parent.parent / "data" / "logs" / "kernel-events"
PROBE = LOGS / "probe.txt.gz"
FIELDS = re.compile(
    r"([0-9.]+): tcp_probe: .* src=\S*?([0-9.]+):(\d+)\S* .* snd_cwnd=(\d+) .* srtt=(\d+) ", re.ASCII
)


def rows(*paths: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        _native.analyse([str(path) for path in paths], ReadSettings()).table("variables").rows()
    )
    return found


def test_the_table_has_what_the_lines_have() -> None:
    theirs = []
    for line in gzip.decompress(PROBE.read_bytes()).decode().splitlines():
        found = FIELDS.search(line.replace("]:", ":"))
        if found:
            time, _, port, cwnd, srtt = found.groups()
            theirs.append((round(float(time) * 1e6), int(port), int(cwnd), int(srtt) / 1e3))
    ours = rows(PROBE)
    assert len(theirs) > 200
    cwnds = [(row["time_ns"] // 1000, row["src_port"], row["value"]) for row in ours if row["name"] == "cwnd"]
    srtts = [row["value"] for row in ours if row["name"] == "srtt"]
    assert cwnds == [(time, port, cwnd) for time, port, cwnd, _ in theirs]
    assert srtts == [srtt for *_, srtt in theirs]


def test_ss_saw_the_same_windows() -> None:
    ends = ("src", "src_port", "dst", "dst_port")
    probes: dict[Any, list[tuple[int, float]]] = {}
    for row in rows(PROBE):
        if row["name"] == "cwnd":
            probes.setdefault(tuple(row[end] for end in ends), []).append((row["time_ns"], row["value"]))
    compared = 0
    for row in rows(LOGS / "ss.txt.gz"):
        own = probes.get(tuple(row[end] for end in ends), [])
        after = bisect(own, (row["time_ns"], 0.0))
        if row["name"] == "cwnd" and 0 < after < len(own):
            # ss ran some time after the date in its log
            nearby = [value for _, value in own[after - 1 : after + 40]]
            assert min(nearby) <= row["value"] <= max(nearby)
            compared += 1
    assert compared >= 1


def test_events_belong_to_the_captured_connection() -> None:
    found = [row for row in rows(LOGS / "sender.pcap.gz", PROBE) if row["name"] == "cwnd"]
    assert {row["direction"] for row in found if row["flow"]} == {"fwd", "rev"}
    assert all(row["flow"] for row in found if row["src"] == "10.77.0.1")


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    log = tmp_path / "retransmissions.txt"
    line = "01:55:05 0      4  10.0.0.1:22    R> 10.0.0.2:34619   ESTABLISHED\n"
    log.write_text(line * 3 + "what is this\n")
    analysis = _native.analyse([str(log)], ReadSettings())
    values = [(row["name"], row["value"]) for row in analysis.table("variables").rows()]
    assert values == [("retransmits", 1.0), ("retransmits", 2.0), ("retransmits", 3.0)]
    messages = [str(problem["message"]) for problem in analysis.problems]
    assert any("no date" in message for message in messages)
    assert any("tcp_probe" in message for message in messages)
