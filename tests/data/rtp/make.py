"""Make the RTP captures: GStreamer's rtpbin over a bottleneck between network namespaces, seen at both ends.

Run as root: `python3 tests/data/rtp/make.py`. Needs Linux, iproute2, tcpdump, and of Debian's packages
gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad (rtpmanager), python3-gi and gir1.2-gst-plugins-base-1.0.
`truth.json` holds what both ends and the bottleneck's queue counted. Media are cut off the packets.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "sample_traces"))

import make as network  # noqa: E402
from cut_media import without_media  # noqa: E402

PYTHON = "/usr/bin/python3"
"""The system's, which has GStreamer's bindings."""
SECONDS = 12
BOTTLENECK = "tbf rate 250kbit burst 3kb limit 4kb"


def run() -> dict[str, Any]:
    """Run both ends and write what tcpdump saw at each."""
    client = (PYTHON, str(HERE / "client.py"))
    network.BOTTLENECK = BOTTLENECK
    with tempfile.TemporaryDirectory() as scratch, network.network():
        files = {place: f"{scratch}/{place}.pcap" for place in ("sender", "receiver")}
        watch = [
            ("tcpdump", "-U", "-Z", "root", "-i", device, "-w", files[place], "udp")
            for place, device in (("sender", "s0"), ("receiver", "d0"))
        ]
        with network.background(network.SENDER, *watch[0]), network.background(network.RECEIVER, *watch[1]):
            receive = network.inside(network.RECEIVER, *client, "receive", network.SENDER_4, str(SECONDS + 3))
            send = network.inside(network.SENDER, *client, "send", network.RECEIVER_4, str(SECONDS))
            receiver = subprocess.Popen(receive, stdout=subprocess.PIPE, text=True)
            time.sleep(1)  # until it listens, which GStreamer does not report
            sent = network.run(*send)
            received, _ = receiver.communicate()
        queue = json.loads(
            network.run(*network.inside(network.MIDDLE, "tc", "-s", "-j", "qdisc", "show", "dev", "m1"))
        )[0]
        for place, file in files.items():
            short = without_media(Path(file).read_bytes())
            (HERE / f"gstreamer-{place}.pcap.gz").write_bytes(gzip.compress(short, 9, mtime=0))
    return {
        "bottleneck": {"setting": BOTTLENECK, "drops": queue["drops"]},
        "sender": json.loads(sent),
        "receiver": json.loads(received),
    }


if __name__ == "__main__":
    (HERE / "truth.json").write_text(json.dumps(run(), indent=1) + "\n")
