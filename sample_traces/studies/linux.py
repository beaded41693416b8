"""Make the traces of `de-cicco-mascolo/linux.toml`: Linux's TCP between network namespaces, repeated.

    sudo python3 sample_traces/studies/linux.py

The network is that of `sample_traces/make.py` with a token bucket each way, captured where data arrive, with
headers only. `linux/truth.json` has what iperf3 counted, and the versions of the kernel and the programs. No
two tests are the same: that is what repetitions are for.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import make as samples

FOLDER = Path(__file__).resolve().parent / "de-cicco-mascolo" / "linux"
PORTS = {"reno": 5201, "cubic": 5202, "bbr": 5203}
BACK_PORT = 5209
BUCKET = "tbf rate 2mbit burst 4kb limit 30kb"
DURATION_S = 8
REPETITIONS = 3


def main() -> None:
    """Make all tests: each algorithm alone and two together, with and without traffic the other way."""
    mixes = {"reno": ["reno"], "cubic": ["cubic"], "bbr": ["bbr"], "both": ["reno", "cubic"]}
    FOLDER.mkdir(exist_ok=True)
    truth: dict[str, Any] = {
        "versions": samples.versions(),
        "setting": {"bucket": BUCKET, "one_way_delay_ms": samples.ONE_WAY_DELAY_MS, "duration_s": DURATION_S},
    }
    for (mix, algorithms), back, test in product(
        mixes.items(), ("quiet", "reverse"), range(1, REPETITIONS + 1)
    ):
        name = f"{mix}-{back}-{test}"
        capture, truth[name] = measured(algorithms, is_busy=back == "reverse")
        packed = lzma.compress(capture, preset=9 | lzma.PRESET_EXTREME)
        (FOLDER / f"{name}.pcap.xz").write_bytes(packed)
        print(f"{name}: {len(packed):,} bytes")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(facts)}" for name, facts in truth.items())
    (FOLDER / "truth.json").write_text("{\n" + lines + "\n}\n")


def measured(algorithms: list[str], *, is_busy: bool) -> tuple[bytes, list[dict[str, Any]]]:
    """Run one test; return its capture, and what iperf3 says of each of its flows."""
    with tempfile.TemporaryDirectory() as scratch, samples.network():
        for device in ("m0", "m1"):
            command = ("tc", "qdisc", "replace", "dev", device, "root", *BUCKET.split())
            samples.run(*samples.inside(samples.MIDDLE, *command))
        file = Path(scratch, "test.pcap")
        # else the last second may still be in the kernel when tcpdump ends
        tcpdump = ("tcpdump", "--immediate-mode", "-U", "-Z", "root", "-i", "d0")
        kept = ("-s", str(samples.SNAP_LENGTH), "-w", str(file), "tcp")
        with samples.background(samples.RECEIVER, *tcpdump, *kept):
            time_s = ("-t", str(DURATION_S))
            others = [samples.iperf3(BACK_PORT, *time_s, "-C", "cubic", "-R")] if is_busy else []
            flows = [samples.iperf3(PORTS[one], *time_s, "-C", one) for one in algorithms]
            streams = [samples.outcome(flow) for flow in flows]
            for other in others:
                samples.outcome(other)
            time.sleep(samples.SETTLE_S)
        return file.read_bytes(), streams


if __name__ == "__main__":
    main()
