"""An outage of seconds, and losses of a link, which only pings and probes show."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data/captures"
BEGIN_S = 1_767_571_200
OUTAGE = range(5_000, 5_005)


def pings(path: Path, seconds: int = 3 * 3_600) -> None:
    """Write a ping each second, of which those of five seconds have no reply."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 64, 101)]
    ends = (bytes((10, 0, 0, 1)), bytes((192, 0, 2, 1)))
    for number in range(seconds):
        for kind, (src, dst), at_us in ((8, ends, 0), (0, ends[::-1], 30_000)):
            if kind == 0 and number in OUTAGE:
                continue
            # of three words that are not 0 (RFC 1071); tshark follows no other requests
            total = (kind << 8) + 7 + number
            icmp = struct.pack(">BBHHH", kind, 0, ~(total + (total >> 16)) & 0xFFFF, 7, number) + bytes(24)
            packet = struct.pack(">BBHHHBBH", 0x45, 0, 52, 0, 0, 64, 1, 0) + src + dst + icmp
            records.append(struct.pack("<IIII", BEGIN_S + number, at_us, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(records))


def test_five_lost_pings_in_a_row_are_an_incident_on_the_side_of_the_server(run, tmp_path):
    pings(tmp_path / "a.pcap")
    assert run("audit", "a.pcap", "-o", "audit").status == 0
    found = json.loads((tmp_path / "audit" / "audit.json").read_text())
    (incident,) = found["incidents"]
    (stretch,) = incident["stretches"]
    assert (stretch["objective"], stretch["group"], stretch["n"]) == ("short outages", "192.0.2.1", 300)
    assert stretch["value"] == pytest.approx(5 / 300)
    assert incident["begin_ns"] <= (BEGIN_S + OUTAGE.start) * 10**9
    assert incident["end_ns"] >= (BEGIN_S + OUTAGE.stop) * 10**9
    assert incident["end_ns"] - incident["begin_ns"] == 300 * 10**9
    # of a link with pings alone the page says what it cannot judge
    page = (tmp_path / "audit" / "index.html").read_text()
    assert "no data of TCP was captured" in page
    assert "no DNS query was captured" in page


def test_a_link_of_probes_alone_is_judged_by_what_the_firewall_dropped(run, tmp_path):
    """What `nft` counted while irtt sent 995 probes: `tests/data/README.md`."""
    shutil.copy(CAPTURES / "linux-irtt-rtr.pcap.gz", tmp_path / "a.pcap.gz")
    assert run("audit", "a.pcap.gz", "-o", "audit").status == 0
    found = json.loads((tmp_path / "audit" / "audit.json").read_text())
    (incident,) = found["incidents"]
    stretches = {one["objective"]: (one["n"], one["value"]) for one in incident["stretches"]}
    assert stretches["loss from hosts"] == (995, pytest.approx(31 / 995))
    assert stretches["short outages"] == (995 - 31, pytest.approx((19 + 27) / (995 - 31)))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_misses_the_same_replies(tmp_path):
    pings(tmp_path / "a.pcap")
    command = [
        "tshark",
        # a reply is known in the second pass only
        "-2",
        "-r",
        "a.pcap",
        "-Y",
        "icmp.type == 8 && !icmp.resp_in",
        "-T",
        "fields",
        "-e",
        "icmp.seq",
    ]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert [int(line.split(",")[0]) for line in done.stdout.split()] == list(OUTAGE)
