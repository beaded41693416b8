"""Ask tcptrace and tshark what they count in the captures: `python tests/data/witness.py [CAPTURE...]`.

Writes `expected/<capture>.json` for each file of `captures/` (or those named); the tests import
`ask_tcptrace` and `ask_tshark` to repeat the question where the programs are installed.
"""

from __future__ import annotations

import csv
import ipaddress
import json
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

Ends = tuple[str, str, int, str, int]
"""Transport, source and its port, destination and its port."""

TCPTRACE_COLUMNS = {
    "total_packets": "packets",
    "resets_sent": "resets",
    "unique_bytes_sent": "unique_bytes",
    "actual_data_pkts": "data_packets",
    "actual_data_bytes": "payload_bytes",
    "rexmt_data_pkts": "retransmitted_packets",
    "rexmt_data_bytes": "retransmitted_bytes",
    "outoforder_pkts": "out_of_order_packets",
    "zwnd_probe_pkts": "zero_window_probes",
    "zero_win_adv": "zero_windows",
    "mss_requested": "mss",
    "RTT_samples": "rtt_samples",
    "RTT_min": "rtt_min_ms",
    "RTT_max": "rtt_max_ms",
    "RTT_avg": "rtt_mean_ms",
    "RTT_stdev": "rtt_std_ms",
    "RTT_from_3WHS": "syn_rtt_ms",
}
"""What is kept of tcptrace's columns (each ends in `_a2b` or `_b2a`), and the name it gets here."""

TSHARK_FIELDS = (
    "ip.src", "ipv6.src", "tcp.srcport", "udp.srcport",
    "ip.dst", "ipv6.dst", "tcp.dstport", "udp.dstport",
    "frame.len", "tcp.len", "udp.length", "tcp.seq_raw", "tcp.flags.syn", "tcp.flags.fin",
)  # fmt: skip
UDP_HEADER_BYTES = 8


def unpack(capture: Path, folder: Path) -> Path:
    """Return an uncompressed copy of a capture; what a cut gzip stream still gives is kept."""
    path = folder / capture.name.removesuffix(".gz").removesuffix(".zst")
    packed = capture.read_bytes()
    if capture.suffix == ".gz":
        path.write_bytes(zlib.decompressobj(wbits=31).decompress(packed))
    elif capture.suffix == ".zst":
        subprocess.run(["zstd", "-dqf", str(capture), "-o", str(path)], check=True)
    else:
        path.write_bytes(packed)
    return path


def tcptrace_directions(capture: Path) -> list[tuple[tuple[str, int, str, int], dict[str, str]]] | None:
    """Return tcptrace's fields for each direction of each connection; None if it cannot read the file.

    A field is named without the direction, which tcptrace puts at its end.
    """
    done = subprocess.run(
        ["tcptrace", "-n", "-l", "-r", "-W", "--csv", str(capture)],
        capture_output=True, text=True, check=False, errors="replace",
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.count(",") > len(TCPTRACE_COLUMNS)]
    if not lines:
        return [] if "0 TCP packets traced" in done.stdout or not done.returncode else None
    directions = []
    for row in csv.DictReader(lines, skipinitialspace=True):
        for here, there, way in (("a", "b", "a2b"), ("b", "a", "b2a")):
            fields: dict[str, str] = {
                # one name of tcptrace's has a blank in it
                name.strip().replace(" ", "_").removesuffix(f"_{way}"): (text or "").strip()
                for name, text in row.items()
                if name and name.endswith(way)
            }
            source = _address(row[f"host_{here}"]), int(row[f"port_{here}"])
            destination = _address(row[f"host_{there}"]), int(row[f"port_{there}"])
            directions.append(((*source, *destination), fields))
    return directions


def ask_tcptrace(capture: Path) -> list[dict[str, Any]] | None:
    """Return tcptrace's numbers for each direction of each connection; None if it cannot read the file."""
    directions = tcptrace_directions(capture)
    if directions is None:
        return None
    asked = []
    for ends, fields in directions:
        direction: dict[str, Any] = dict(zip(("src", "src_port", "dst", "dst_port"), ends, strict=True))
        for theirs, name in TCPTRACE_COLUMNS.items():
            direction[name] = float(fields[theirs]) if "." in fields[theirs] else int(fields[theirs])
        syns, fins = fields["SYN/FIN_pkts_sent"].split("/")
        asked.append(direction | {"syns": int(syns), "fins": int(fins)})
    return asked


def ask_tshark(capture: Path) -> list[dict[str, Any]]:
    """Return what tshark sees in each direction between two ports."""
    # Fragments stay apart and quoted headers in ICMP errors are no packets of the flow.
    command = ["tshark", "-n", "-r", str(capture), "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
    command += ["-Y", "(tcp or udp) and not icmp and not icmpv6", "-T", "fields", "-E", "occurrence=f"]
    for field in TSHARK_FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts: dict[Ends, Counter[str]] = {}
    control_seen: set[tuple[Ends, int]] = set()
    for line in done.stdout.splitlines():
        packet = dict(zip(TSHARK_FIELDS, line.split("\t"), strict=True))
        ends = _ends(packet)
        count = counts.setdefault(ends, Counter())
        payload = _payload(packet)
        count.update(packets=1, wire_bytes=int(packet["frame.len"]), payload_bytes=payload)
        # tshark prints a flag as 1 or, since 4.2, as True
        if {packet["tcp.flags.syn"], packet["tcp.flags.fin"]} & {"1", "True"}:
            control = (ends, int(packet["tcp.seq_raw"]) + payload)
            count["repeated_empty_control"] += control in control_seen and not payload
            control_seen.add(control)
    names = ("packets", "wire_bytes", "payload_bytes", "repeated_empty_control")
    return [
        dict(zip(("transport", "src", "src_port", "dst", "dst_port"), ends, strict=True))
        | {name: counts[ends][name] for name in names}
        for ends in sorted(counts)
    ]


def _ends(packet: dict[str, str]) -> Ends:
    transport = "tcp" if packet["tcp.srcport"] else "udp"
    return (
        transport,
        packet["ip.src"] or packet["ipv6.src"],
        int(packet[f"{transport}.srcport"]),
        packet["ip.dst"] or packet["ipv6.dst"],
        int(packet[f"{transport}.dstport"]),
    )


def _payload(packet: dict[str, str]) -> int:
    if packet["tcp.srcport"]:
        return int(packet["tcp.len"] or 0)
    return int(packet["udp.length"]) - UDP_HEADER_BYTES


def _address(text: str) -> str:
    # tcptrace pads the groups of an IPv6 address with zeros.
    return str(ipaddress.ip_address(text.strip()))


def versions() -> dict[str, str]:
    """Return which programs answered."""
    tshark = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout
    tcptrace = subprocess.run(["tcptrace", "-v"], capture_output=True, text=True, check=False)
    banner = next(
        line for line in (tcptrace.stdout + tcptrace.stderr).splitlines() if "version" in line.lower()
    )
    return {"tcptrace": banner.strip(), "tshark": tshark.splitlines()[0]}


def main() -> None:
    """Write the expectations of the captures named, or of all."""
    named = [Path(name) for name in sys.argv[1:]] or sorted((HERE / "captures").iterdir())
    for program in ("tcptrace", "tshark"):
        if shutil.which(program) is None:
            sys.exit(f"`{program}` is not installed")
    answered = versions()
    with tempfile.TemporaryDirectory() as scratch:
        for capture in named:
            plain = unpack(capture, Path(scratch))
            answers = {
                "capture": capture.name,
                "versions": answered,
                "tcptrace": ask_tcptrace(plain),
                "tshark": ask_tshark(plain),
            }
            (HERE / "expected" / f"{capture.name}.json").write_text(json.dumps(answers, indent=1) + "\n")
            print(capture.name)


if __name__ == "__main__":
    main()
