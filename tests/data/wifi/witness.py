"""Ask tshark what it sees in the 802.11 captures: `python tests/data/wifi/witness.py`.

Writes `tshark.json` beside the captures; the tests import `ask_tshark` to repeat the question where tshark
is installed.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

FIELDS = (
    "wlan.ta", "wlan.ra", "wlan.fc.type", "wlan.fc.subtype", "wlan.fc.retry", "wlan.seq",
    "frame.len", "radiotap.length",
    "wlan_radio.data_rate", "radiotap.dbm_antsignal", "radiotap.dbm_antnoise", "radiotap.channel.freq",
    "ip.src", "ip.dst", "ip.id",
    "tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport", "tcp.len", "udp.length",
)  # fmt: skip
DATA = "2"
UDP_HEADER_BYTES = 8


def ask_tshark(capture: Path) -> dict[str, Any]:
    """Return tshark's links, and its flows with every IP packet counted once however often it was sent."""
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "occurrence=f"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    frames = [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]
    return {"links": _links(frames), "flows": _flows(frames)}


def _links(frames: list[dict[str, str]]) -> list[dict[str, Any]]:
    of_link: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for frame in frames:
        of_link[frame["wlan.ta"], frame["wlan.ra"]].append(frame)
    return [
        {
            "transmitter": transmitter or None,
            "receiver": receiver,
            "frames": len(of),
            "data_frames": sum(f["wlan.fc.type"] == DATA and int(f["wlan.fc.subtype"]) & 4 == 0 for f in of),
            "retry_frames": sum(f["wlan.fc.retry"] in {"1", "True"} for f in of),
            "bytes": sum(int(f["frame.len"]) - int(f["radiotap.length"] or 0) for f in of),
            "rate_mean_mbps": _mean(of, "wlan_radio.data_rate"),
            "signal_mean_dbm": _mean(of, "radiotap.dbm_antsignal"),
            "noise_mean_dbm": _mean(of, "radiotap.dbm_antnoise"),
            "channel_mhz": int(of[-1]["radiotap.channel.freq"] or 0) or None,
        }
        for (transmitter, receiver), of in sorted(of_link.items())
    ]


def _flows(frames: list[dict[str, str]]) -> list[dict[str, Any]]:
    flows: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    seen: set[tuple[str, ...]] = set()
    for frame in frames:
        transport = "tcp" if frame["tcp.srcport"] else "udp"
        if not frame[f"{transport}.srcport"]:
            continue
        ends = (
            transport, frame["ip.src"], frame[f"{transport}.srcport"],
            frame["ip.dst"], frame[f"{transport}.dstport"],
        )  # fmt: skip
        packet = (*ends, frame["ip.id"], frame["wlan.seq"])
        is_again = packet in seen and frame["wlan.fc.retry"] in {"1", "True"}
        seen.add(packet)
        if is_again:
            flows[ends]["repeated"] += 1
            continue
        payload = (
            int(frame["tcp.len"] or 0) if transport == "tcp" else int(frame["udp.length"]) - UDP_HEADER_BYTES
        )
        flows[ends].update(packets=1, wire_bytes=int(frame["frame.len"]), payload_bytes=payload)
    return [
        {
            "transport": transport,
            "src": src, "src_port": int(src_port), "dst": dst, "dst_port": int(dst_port),
            **{name: counts[name] for name in ("packets", "wire_bytes", "payload_bytes", "repeated")},
        }
        for (transport, src, src_port, dst, dst_port), counts in sorted(flows.items())
    ]  # fmt: skip


def _payload(frame: dict[str, str]) -> int:
    if frame["tcp.srcport"]:
        return int(frame["tcp.len"] or 0)
    return int(frame["udp.length"]) - UDP_HEADER_BYTES


def _mean(frames: list[dict[str, str]], field: str) -> float | None:
    values = [float(frame[field]) for frame in frames if frame[field]]
    return round(sum(values) / len(values), 6) if values else None


def main() -> None:
    """Write what tshark says of every capture here."""
    answers = {capture.name: ask_tshark(capture) for capture in sorted(HERE.glob("*.pcap.gz"))}
    (HERE / "tshark.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
