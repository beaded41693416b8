"""Requests without answers between namespaces, captured at the router: `make.py FOLDER` (root, Linux).

Writes `hangs.pcap.gz`, `vanished.pcap.gz` (the same behind netfilter), and `truth.json`: how long clients
waited, and what netfilter dropped.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CLIENT, FAR_CLIENT, SERVER = "10.78.1.10", "10.78.1.11", "10.78.2.10"
ANSWERS, SILENT = 8080, 8081
WAITS_S = 16.0
"""Longer than six timeouts of Linux, from 0.2 s on."""
CHAIN = ("add table ip t", "add chain ip t f { type filter hook forward priority 0; }")


def sh(command: str) -> str:
    """Run a command."""
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


async def serve() -> None:
    """Answer `SECONDS BYTES` after so long with so many bytes; at the other port never."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            wait_s, size = line.split()[:2]
            await asyncio.sleep(float(wait_s))
            writer.write(bytes(int(size)))
        writer.close()

    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 16):
            pass
        await asyncio.sleep(WAITS_S)
        writer.close()

    await asyncio.start_server(answer, SERVER, ANSWERS)
    await asyncio.start_server(be_silent, SERVER, SILENT)
    await asyncio.sleep(300)


async def ask(source: str, port: int, requests: list[tuple[float, float, int]]) -> list[float]:
    """Ask on one connection, each request after a pause; return the seconds until each answer began."""
    reader, writer = await asyncio.open_connection(SERVER, port, local_addr=(source, 0))
    times = []
    for pause_s, wait_s, size in requests:
        await asyncio.sleep(pause_s)
        begin = time.monotonic()
        writer.write(f"{wait_s} {size}\n".encode())
        try:
            await asyncio.wait_for(reader.readexactly(1), WAITS_S)
            times.append(time.monotonic() - begin)
            await asyncio.wait_for(reader.readexactly(size - 1), WAITS_S)
        except TimeoutError:
            times.append(-1.0)
            break
    writer.close()
    return times


async def clients() -> None:
    """Ask, and print what came of it by kind."""
    kinds: dict[str, list[Any]] = {
        "answered": [ask(CLIENT, ANSWERS, [(0.5 * n, 0.1, 500), (0.2, 3.0, 500)]) for n in range(10)],
        "late": [ask(CLIENT, ANSWERS, [(n, 12.0, 500)]) for n in range(3)],
        "accepted and not served": [ask(CLIENT, SILENT, [(n, 0.1, 500)]) for n in range(5)],
        "only small packets": [ask(FAR_CLIENT, ANSWERS, [(n, 0.1, 500)]) for n in range(4)],
        "large packets dropped": [ask(FAR_CLIENT, ANSWERS, [(n, 0.1, 6_000)]) for n in range(6)],
    }
    found = {kind: await asyncio.gather(*each) for kind, each in kinds.items()}
    held = [
        asyncio.create_task(ask(CLIENT, ANSWERS, [(0, 0.1, 500), (4.0 + n / 4, 0.1, 500)])) for n in range(5)
    ]
    await asyncio.sleep(3)
    print("drop", flush=True)
    await asyncio.sleep(14)
    print("pass", flush=True)
    found["during an outage"] = await asyncio.gather(*held)
    print(json.dumps(found), flush=True)


def main(folder: Path) -> None:
    """Make the namespaces, ask, and write what was captured."""
    captures = {"w2": folder / "hangs.pcap", "w1": folder / "vanished.pcap"}
    for name in ("hanga", "hangm", "hangb"):
        sh(f"ip netns add {name}")
    for number, (end, addresses) in enumerate((("hanga", (CLIENT, FAR_CLIENT)), ("hangb", (SERVER,))), 1):
        sh(f"ip link add v{number} netns {end} type veth peer name w{number} netns hangm")
        for address in addresses:
            sh(f"ip -n {end} addr add {address}/24 dev v{number}")
        sh(f"ip -n hangm addr add 10.78.{number}.1/24 dev w{number}")
        for name, device in ((end, f"v{number}"), ("hangm", f"w{number}")):
            sh(f"ip -n {name} link set {device} up")
            sh(f"ip -n {name} link set {device} gso_max_segs 1")
        sh(f"ip -n {end} route add default via 10.78.{number}.1")
    sh("ip netns exec hangm sysctl -q net.ipv4.ip_forward=1")
    for rule in (*CHAIN, f"add rule ip t f ip daddr {FAR_CLIENT} ip length > 1000 counter drop"):
        subprocess.run(["ip", "netns", "exec", "hangm", "nft", rule], check=True)
    capturing = ("ip", "netns", "exec", "hangm", "tcpdump", "-Z", "root", "-s", "80", "tcp")
    seeing = [
        subprocess.Popen([*capturing, "-i", device, "-w", str(path)]) for device, path in captures.items()
    ]
    serving = subprocess.Popen(["ip", "netns", "exec", "hangb", sys.executable, __file__, "serve"])
    time.sleep(1)
    asking = ["ip", "netns", "exec", "hanga", sys.executable, __file__, "clients"]
    with subprocess.Popen(asking, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "drop\n":
                rule = f"add rule ip t f ip saddr {SERVER} counter drop"
                subprocess.run(["ip", "netns", "exec", "hangm", "nft", rule], check=True)
            elif line == "pass\n":
                rules = sh("ip netns exec hangm nft list ruleset")
                sh("ip netns exec hangm nft flush chain ip t f")
            else:
                asked = json.loads(line)
    time.sleep(14)
    for one in (serving, *seeing):
        one.terminate()
        one.wait()
    for name in ("hanga", "hangm", "hangb"):
        sh(f"ip netns del {name}")
    dropped = [int(number) for number in re.findall(r"counter packets (\d+)", rules)]
    truth = {"waited_s": asked, "dropped_large": dropped[0], "dropped_of_all": dropped[1]}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    for capture in captures.values():
        with gzip.GzipFile(f"{capture}.gz", "wb", mtime=0) as file:
            file.write(capture.read_bytes())
        capture.unlink()


if __name__ == "__main__":
    if sys.argv[1] in {"serve", "clients"}:
        asyncio.run({"serve": serve, "clients": clients}[sys.argv[1]]())
    else:
        main(Path(sys.argv[1]))
