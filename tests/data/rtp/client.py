"""One end of an RTP session, by GStreamer's rtpbin, and what it counted itself.

`client.py send|receive PEER SECONDS` prints JSON. Sound (PCMU) goes to port 5004 with its RTCP on 5005 and
5007; pictures (JPEG) go to port 5010, where RTCP shares the port both ways (RFC 5761) and transport-wide
congestion control is agreed on.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtp", "1.0")
from gi.repository import GLib, Gst, GstRtp  # noqa: E402

TWCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
SOUND = "application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0"
PICTURES = (
    "application/x-rtp,media=video,clock-rate=90000,encoding-name=JPEG,payload=26,"
    f"extmap-3=(string){TWCC},rtcp-fb-transport-cc=(boolean)true"
)

SENDER = """
rtpbin name=bin rtp-profile=avpf
audiotestsrc is-live=true wave=silence ! mulawenc ! rtppcmupay min-ptime=20000000 max-ptime=20000000
  ! bin.send_rtp_sink_0
bin.send_rtp_src_0 ! udpsink host={peer} port=5004 bind-port=5004 sync=false async=false
bin.send_rtcp_src_0 ! udpsink host={peer} port=5005 bind-port=5005 sync=false async=false
udpsrc port=5007 ! bin.recv_rtcp_sink_0
videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=320,height=240,framerate=15/1
  ! jpegenc quality=60 ! rtpjpegpay name=pictures mtu=1200 ! bin.send_rtp_sink_1
bin.send_rtp_src_1 ! udpsink name=out host={peer} port=5010 sync=false async=false
bin.send_rtcp_src_1 ! udpsink name=reports host={peer} port=5010 sync=false async=false
udpsrc name=back port=5011 ! bin.recv_rtcp_sink_1
"""

RECEIVER = """
rtpbin name=bin rtp-profile=avpf
udpsrc port=5004 caps="{sound}" ! bin.recv_rtp_sink_0
udpsrc port=5005 ! bin.recv_rtcp_sink_0
bin.send_rtcp_src_0 ! udpsink host={peer} port=5007 sync=false async=false
udpsrc name=back port=5010 caps="{pictures}" ! bin.recv_rtp_sink_1
bin.send_rtcp_src_1 ! udpsink name=reports host={peer} port=5011 sync=false async=false
"""


FIELD = re.compile(r"([\w-]+)=\((?:u?int|u?int64|guint64|gint64|boolean)\)([\w-]+)")


def counts_of(bin: Gst.Element, session: int, ssrc: int) -> dict[str, Any]:
    """Return the whole numbers and flags of what a session says of a source."""
    source = bin.emit("get-internal-session", session).emit("get-source-by-ssrc", ssrc)
    fields = FIELD.findall(source.get_property("stats").to_string())
    return {name: value == "true" if value in {"true", "false"} else int(value) for name, value in fields}


def main() -> None:
    """Run one end."""
    role, peer, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    Gst.init(None)
    text = SENDER if role == "send" else RECEIVER
    escaped = {"sound": SOUND, "pictures": PICTURES.replace('"', '\\"')}
    pipeline = Gst.parse_launch(text.format(peer=peer, **escaped))
    bin = pipeline.get_by_name("bin")
    # pictures and reports leave and come by one socket, as RFC 5761 wants it
    back = pipeline.get_by_name("back")
    back.set_state(Gst.State.READY)
    for name in ("out", "reports"):
        if (sink := pipeline.get_by_name(name)) is not None:
            sink.set_property("bind-port", 0)
            sink.set_property("socket", back.get_property("used-socket"))
            sink.set_property("close-socket", False)
    if role == "send":
        extension = GstRtp.RTPHeaderExtension.create_from_uri(TWCC)
        extension.set_id(3)
        pipeline.get_by_name("pictures").emit("add-extension", extension)
    else:
        bin.connect("pad-added", lambda _, pad: swallow(pipeline, pad))
    known: list[list[int]] = [[], []]
    bin.connect("on-new-ssrc", lambda _, session, ssrc: known[session].append(ssrc))
    pipeline.set_state(Gst.State.PLAYING)
    loop = GLib.MainLoop()
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message::error", lambda _, message: sys.exit(str(message.parse_error())))
    GLib.timeout_add(int(seconds * 1000), loop.quit)
    loop.run()
    statistics = {
        name: [counts_of(bin, at, ssrc) for ssrc in known[at]]
        for at, name in enumerate(("sound", "pictures"))
    }
    print(json.dumps(statistics, indent=1))
    pipeline.set_state(Gst.State.NULL)


def swallow(pipeline: Gst.Pipeline, pad: Gst.Pad) -> None:
    """Give what arrives to nobody."""
    sink = Gst.ElementFactory.make("fakesink", None)
    sink.set_property("async", False)
    pipeline.add(sink)
    sink.sync_state_with_parent()
    pad.link(sink.get_static_pad("sink"))


if __name__ == "__main__":
    main()
