"""Make the traces of `*/linux.toml`: Linux's TCP between network namespaces.

    sudo python3 sample_traces/studies/linux.py [STUDY ...]

The network is that of `sample_traces/make.py`, captured with headers only. `linux/truth.json.xz` has what
iperf3 counted, and the versions of the kernel and the programs. No two tests are the same: that is what
repetitions are for.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import make as samples
from write_truth import write_truth

HERE = Path(__file__).resolve().parent
PORTS = {"reno": 5201, "cubic": 5202, "bbr": 5203}
OTHER_PORT = 5209
REPETITIONS = 3


def de_cicco_mascolo(folder: Path) -> dict[str, Any]:
    """Make all tests: each algorithm alone and two together, with and without reverse traffic.

    Captured where data arrive, with a token bucket each way.
    """
    bucket, duration_s = "tbf rate 2mbit burst 4kb limit 30kb", 8
    mixes = {"reno": ["reno"], "cubic": ["cubic"], "bbr": ["bbr"], "both": ["reno", "cubic"]}
    truth: dict[str, Any] = {
        "setting": {"bucket": bucket, "one_way_delay_ms": samples.ONE_WAY_DELAY_MS, "duration_s": duration_s}
    }
    time_s = ("-t", str(duration_s))
    for (mix, algorithms), back, test in product(
        mixes.items(), ("quiet", "reverse"), range(1, REPETITIONS + 1)
    ):
        name = f"{mix}-{back}-{test}"
        with samples.network():
            narrow(bucket, "m0", "m1")
            with captured(samples.RECEIVER, "d0", folder / f"{name}.pcap.xz"):
                is_busy = back == "reverse"
                others = [samples.iperf3(OTHER_PORT, *time_s, "-C", "cubic", "-R")] if is_busy else []
                flows = [samples.iperf3(PORTS[one], *time_s, "-C", one) for one in algorithms]
                truth[name] = [samples.outcome(flow) for flow in flows]
                for other in others:
                    samples.outcome(other)
    return truth


def lillis(folder: Path) -> dict[str, Any]:
    """Run each algorithm beside UDP through a narrow link, and on a link that loses frames by itself.

    Captured at the sender, beside what `ss` says of its congestion window.
    """
    paths = {"congested": ("tbf rate 2mbit burst 4kb limit 30kb", 0.0), "lossy": (samples.BOTTLENECK, 0.01)}
    duration_s = 6
    truth: dict[str, Any] = {
        "setting": {"paths": paths, "one_way_delay_ms": samples.ONE_WAY_DELAY_MS, "duration_s": duration_s}
    }
    for (path, (bucket, loss)), algorithm in product(paths.items(), PORTS):
        name = f"{path}-{algorithm}"
        (folder / name).mkdir(exist_ok=True)
        with samples.network(loss):
            narrow(bucket, "m1")
            log = folder / name / f"{name}.ss.txt.xz"
            capture = captured(samples.SENDER, "s0", folder / name / f"{name}.pcap.xz")
            with capture, watched(PORTS[algorithm], log):
                time_s = ("-t", str(duration_s))
                udp = ("-u", "-b", "1M", "-l", "1200")
                others = [samples.iperf3(OTHER_PORT, *time_s, *udp)] if path == "congested" else []
                truth[name] = [samples.outcome(samples.iperf3(PORTS[algorithm], *time_s, "-C", algorithm))]
                for other in others:
                    samples.outcome(other)
    return truth


def narrow(bucket: str, *devices: str) -> None:
    """Put a token bucket before what leaves the middle by `devices`."""
    for device in devices:
        command = ("tc", "qdisc", "replace", "dev", device, "root", *bucket.split())
        samples.run(*samples.inside(samples.MIDDLE, *command))


@contextmanager
def captured(namespace: str, device: str, place: Path) -> Iterator[None]:
    """Capture TCP until the block ends, and write it compressed to `place`."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "test.pcap")
        # else the last second may still be in the kernel when tcpdump ends
        tcpdump = ("tcpdump", "--immediate-mode", "-U", "-Z", "root", "-i", device)
        kept = ("-s", str(samples.SNAP_LENGTH), "-w", str(file), "tcp")
        with samples.background(namespace, *tcpdump, *kept):
            yield
            time.sleep(samples.SETTLE_S)
        packed = _packed(file.read_bytes())
    place.write_bytes(packed)
    print(f"{place.name}: {len(packed):,} bytes")


@contextmanager
def watched(port: int, place: Path) -> Iterator[None]:
    """Ask `ss` every tenth of a second for the sender's connections to `port` until the block ends."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "ss.txt")
        asking = f"while :; do date +%s.%N; ss -tin dport = :{port}; sleep 0.1; done > {file}"
        with samples.background(samples.SENDER, "sh", "-c", asking):
            yield
        packed = _packed(file.read_bytes())
    place.write_bytes(packed)


def _packed(content: bytes) -> bytes:
    return lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)


STUDIES = {"de-cicco-mascolo": de_cicco_mascolo, "lillis": lillis}


def main() -> None:
    """Make the tests of the studies that are named, or of all."""
    for study in sys.argv[1:] or STUDIES:
        folder = HERE / study / "linux"
        folder.mkdir(exist_ok=True)
        truth = {"versions": samples.versions(), **STUDIES[study](folder)}
        write_truth(folder, truth)


if __name__ == "__main__":
    main()
