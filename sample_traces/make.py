"""Make the sample traces: real Linux TCP between network namespaces, captured at the sender.

    sender s0 ---- m0 [delay_line.py] m1 (token bucket) ---- d0 receiver

Run as root: `python3 sample_traces/make.py [two-flows] [mixed]`. Needs Linux, iproute2 (ip, tc, nstat),
iperf3, dumpcap, tcpdump and zstd. Beside each capture goes `<name>.truth.json`: what the programs,
the kernel and the queue counted for the same run.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
SENDER, MIDDLE, RECEIVER = (f"sample-{os.getpid()}-{role}" for role in ("snd", "mid", "rcv"))
# addresses set aside for documentation: RFC 5737 and RFC 3849
SENDER_4, RECEIVER_4 = "192.0.2.1", "192.0.2.2"
SENDER_6, RECEIVER_6 = "2001:db8::1", "2001:db8::2"
ONE_WAY_DELAY_MS = 20
BOTTLENECK = "tbf rate 5mbit burst 4kb limit 40kb"
SNAP_LENGTH = 96
SETTLE_S = 0.7
KERNEL_COUNTERS = (
    "TcpOutSegs",
    "TcpRetransSegs",
    "TcpExtTCPTimeouts",
    "TcpExtTCPLossProbes",
    "TcpExtTCPFastRetrans",
    "TcpExtTCPSlowStartRetrans",
    "TcpExtTCPDSACKRecv",
    "UdpOutDatagrams",
    "UdpInDatagrams",
)


def run(*command: str) -> str:
    """Run a command to its end and return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed: {done.stdout}{done.stderr}")
    return done.stdout


def inside(namespace: str, *command: str) -> list[str]:
    """Return the command that runs `command` inside `namespace`."""
    return ["ip", "netns", "exec", namespace, *command]


@contextmanager
def background(namespace: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program inside `namespace` until the block ends."""
    process = subprocess.Popen(
        inside(namespace, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(SETTLE_S)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def network(loss: float = 0.0) -> Iterator[None]:
    """Build the three namespaces, their links and addresses, and take them away at the end.

    `loss` is the share of frames towards the receiver that the long link loses.
    """
    names = (SENDER, MIDDLE, RECEIVER)
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        _link("s0", SENDER, "m0", MIDDLE)
        _link("d0", RECEIVER, "m1", MIDDLE)
        _addresses(SENDER, "s0", SENDER_4, SENDER_6)
        _addresses(RECEIVER, "d0", RECEIVER_4, RECEIVER_6)
        run(*inside(MIDDLE, "tc", "qdisc", "add", "dev", "m1", "root", *BOTTLENECK.split()))
        line = ("m0", "m1", str(ONE_WAY_DELAY_MS), str(loss))
        with background(MIDDLE, sys.executable, str(HERE / "delay_line.py"), *line):
            yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def _link(device: str, namespace: str, middle_device: str, middle: str) -> None:
    run("ip", "link", "add", device, "netns", namespace, "type", "veth",
        "peer", "name", middle_device, "netns", middle)  # fmt: skip
    # One segment a packet, as on a wire: no segmentation offload on the sending side.
    run("ip", "-n", namespace, "link", "set", device, "gso_max_segs", "1")
    for name, at in ((device, namespace), (middle_device, middle)):
        run("ip", "-n", at, "link", "set", name, "up")
        run(*inside(at, sys.executable, str(HERE / "delay_line.py"), "--software-checksums", name))


def _addresses(namespace: str, device: str, version_4: str, version_6: str) -> None:
    run("ip", "-n", namespace, "address", "add", f"{version_4}/24", "dev", device)
    run("ip", "-n", namespace, "-6", "address", "add", f"{version_6}/64", "dev", device, "nodad")


def iperf3(port: int, *options: str, address: str = RECEIVER_4) -> subprocess.Popen[str]:
    """Start an iperf3 server for one test and its client; the client's output is the run's JSON."""
    server = inside(RECEIVER, "iperf3", "-s", "-1", "-D", "-p", str(port))
    run(*server)
    time.sleep(SETTLE_S)
    client = inside(
        SENDER, "iperf3", "-c", address, "-p", str(port), "--json", "--repeating-payload", *options
    )
    return subprocess.Popen(client, stdout=subprocess.PIPE, text=True)


def outcome(client: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for an iperf3 client and return its own numbers of the stream."""
    output, _ = client.communicate()
    report = json.loads(output)
    if "error" in report:
        sys.exit(f"iperf3: {report['error']}")
    stream = report["end"]["streams"][0]
    connected = report["start"]["connected"][0]
    facts: dict[str, Any] = {
        "client_port": connected["local_port"],
        "server_port": connected["remote_port"],
        "protocol": report["start"]["test_start"]["protocol"].lower(),
    }
    if "udp" in stream:
        return facts | _picked(stream["udp"], "bytes", "packets", "lost_packets", "jitter_ms", "seconds")
    facts["congestion_control"] = report["end"].get("sender_tcp_congestion")
    facts |= _picked(stream["sender"], "bytes", "retransmits", "seconds", "min_rtt", "mean_rtt", "max_rtt")
    return facts | {"bytes_received": stream["receiver"]["bytes"]}


def _picked(numbers: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: numbers[key] for key in keys}


def counters() -> dict[str, Any]:
    """Return what both kernels and the bottleneck queue counted since they were made."""
    queue = json.loads(run(*inside(MIDDLE, "tc", "-s", "-j", "qdisc", "show", "dev", "m1")))[0]
    facts: dict[str, Any] = {"bottleneck": _picked(queue, "packets", "bytes", "drops")}
    for role, namespace in (("sender", SENDER), ("receiver", RECEIVER)):
        kernel = json.loads(run(*inside(namespace, "nstat", "-asz", "--json")))["kernel"]
        facts[f"{role}_kernel"] = _picked(kernel, *KERNEL_COUNTERS)
    return facts


def versions() -> dict[str, str]:
    """Return the versions of everything that had a part in the run."""
    return {
        "kernel": os.uname().release,
        "iperf3": run("iperf3", "--version").split()[1],
        "iproute2": run("ip", "-Version").strip(),
        "dumpcap": run("dumpcap", "--version").splitlines()[0],
        "tcpdump": subprocess.run(["tcpdump", "--version"], capture_output=True, text=True, check=True)
        .stdout.splitlines()[0],
    }  # fmt: skip


def two_flows(scratch: Path) -> None:
    """CUBIC, then Reno five seconds later, through one bottleneck; pcapng compressed with gzip."""
    capture = scratch / "two-flows.pcapng"
    with network():
        with background(SENDER, "dumpcap", "-q", "-i", "s0", "-s", str(SNAP_LENGTH), "-w", str(capture)):
            cubic = iperf3(5201, "-t", "20", "-C", "cubic")
            time.sleep(5)
            reno = iperf3(5202, "-t", "15", "-C", "reno")
            streams = [outcome(cubic), outcome(reno)]
            time.sleep(SETTLE_S)
        truth = {"iperf3": streams, **counters()}
    with open(HERE / "two-flows.pcapng.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(capture.read_bytes())
    write_truth("two-flows", truth)


def mixed(scratch: Path) -> None:
    """UDP, TCP over IPv6, short connections and unanswered knocks; pcap compressed with zstd."""
    capture = scratch / "mixed.pcap"
    python = (sys.executable, str(HERE / "short_flows.py"))
    sizes = [str(400 * number * number) for number in range(24)]
    with network():
        with ExitStack() as stack:
            stack.enter_context(background(RECEIVER, *python, "serve", RECEIVER_4, "8080"))
            stack.enter_context(background(RECEIVER, *python, "serve", RECEIVER_6, "8080"))
            stack.enter_context(
                background(
                    SENDER,
                    "tcpdump",
                    "-U",
                    "-Z",
                    "root",
                    "-i",
                    "s0",
                    "-s",
                    str(SNAP_LENGTH),
                    "-w",
                    str(capture),
                )
            )
            clients = [
                iperf3(5201, "-u", "-b", "1M", "-l", "1200", "-t", "5"),
                iperf3(5202, "-t", "4", "-C", "cubic", address=RECEIVER_6),
            ]
            fetched = json.loads(run(*inside(SENDER, *python, "ask", RECEIVER_4, "8080", *sizes)))
            fetched += json.loads(run(*inside(SENDER, *python, "ask", RECEIVER_6, "8080", *sizes[::4])))
            knocked = json.loads(run(*inside(SENDER, *python, "knock", RECEIVER_4, "8081")))
            streams = [outcome(client) for client in clients]
            time.sleep(SETTLE_S)
        truth = {"iperf3": streams, "short_flows": fetched, "closed_port": knocked, **counters()}
    run("zstd", "-q", "-19", "-f", str(capture), "-o", str(HERE / "mixed.pcap.zst"))
    write_truth("mixed", truth)


def write_truth(name: str, truth: dict[str, Any]) -> None:
    """Write what was counted beside the capture."""
    setting = {"bottleneck": BOTTLENECK, "one_way_delay_ms": ONE_WAY_DELAY_MS, "snap_length": SNAP_LENGTH}
    text = json.dumps({"versions": versions(), "setting": setting, **truth}, indent=1)
    (HERE / f"{name}.truth.json").write_text(text + "\n")


CASES = {"two-flows": two_flows, "mixed": mixed}


def main() -> None:
    """Make the traces named on the command line, or all."""
    missing = [
        name
        for name in ("ip", "tc", "nstat", "iperf3", "dumpcap", "tcpdump", "zstd")
        if not shutil.which(name)
    ]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        sys.exit("network namespaces need root: run this with sudo")
    for name in sys.argv[1:] or CASES:
        if name not in CASES:
            sys.exit(f"no trace `{name}`; there are {', '.join(CASES)}")
        with tempfile.TemporaryDirectory() as scratch:
            # dumpcap gives up root before it opens its file
            os.chmod(scratch, 0o777)
            CASES[name](Path(scratch))


if __name__ == "__main__":
    main()
