"""Make a capture of WebRTC: a call of aiortc (sound both ways) over a lossy link, seen at the caller.

Run as root, with aiortc in the Python that runs it: `python tests/data/rtp/webrtc.py`. Needs Linux, iproute2
and tcpdump. RTP's headers can be read, media and RTCP are encrypted (SRTP, SRTCP; RFC 3711). Media are cut
off the packets. `webrtc.json` has what both ends counted.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack
from cut_media import without_media

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "sample_traces"))

import make as network  # noqa: E402

SECONDS = 8
LOSS = 0.1


async def description(file: Path) -> RTCSessionDescription:
    """Wait for the other end's description."""
    while not file.exists():
        await asyncio.sleep(0.1)
    return RTCSessionDescription(**json.loads(file.read_text()))


def publish(connection: RTCPeerConnection, file: Path) -> None:
    """Give the own description to the other end."""
    local = connection.localDescription
    whole = file.with_suffix(".part")
    whole.write_text(json.dumps({"sdp": local.sdp, "type": local.type}))
    whole.rename(file)


async def call(role: str, folder: Path) -> dict[str, Any]:
    """Send silence for some seconds, and return what this end counted."""
    connection = RTCPeerConnection()
    connection.addTrack(AudioStreamTrack())
    offer, answer = folder / "offer.json", folder / "answer.json"
    if role == "caller":
        await connection.setLocalDescription(await connection.createOffer())
        publish(connection, offer)
        await connection.setRemoteDescription(await description(answer))
    else:
        await connection.setRemoteDescription(await description(offer))
        await connection.setLocalDescription(await connection.createAnswer())
        publish(connection, answer)
    await asyncio.sleep(SECONDS)
    counted = await connection.getStats()
    await connection.close()
    wanted = {"ssrc", "packetsSent", "packetsReceived", "packetsLost"}
    return {
        report.type: {key: value for key, value in vars(report).items() if key in wanted}
        for report in counted.values()
        if hasattr(report, "ssrc")
    }


def run() -> dict[str, Any]:
    """Run both ends and write what tcpdump saw at the caller."""
    with tempfile.TemporaryDirectory() as scratch, network.network(loss=LOSS):
        file = Path(scratch) / "caller.pcap"
        for place, device in ((network.SENDER, "s0"), (network.RECEIVER, "d0")):
            # ICE would choose IPv6.
            network.run("ip", "-n", place, "-6", "address", "flush", "dev", device)
        watch = ("tcpdump", "-U", "-Z", "root", "-i", "s0", "-w", str(file), "udp")
        with network.background(network.SENDER, *watch):
            ends = [
                subprocess.Popen(
                    network.inside(place, sys.executable, __file__, role, scratch),
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for place, role in ((network.SENDER, "caller"), (network.RECEIVER, "callee"))
            ]
            caller, callee = (json.loads(end.communicate()[0]) for end in ends)
        short = without_media(file.read_bytes())
    (HERE / "webrtc.pcap.gz").write_bytes(gzip.compress(short, 9, mtime=0))
    return {"loss_towards_callee": LOSS, "caller": caller, "callee": callee}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(asyncio.run(call(sys.argv[1], Path(sys.argv[2])))))
    else:
        (HERE / "webrtc.json").write_text(json.dumps(run(), indent=1) + "\n")
