"""Linux' `struct tcp_info` (include/uapi/linux/tcp.h) as a program reads it with `getsockopt`."""

from __future__ import annotations

import socket
import struct
from typing import Final

TCP_INFO: Final = 11
TCP_CC_INFO: Final = 26

_BYTES: Final = ("state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "app_limited")
_WORDS: Final = (
    "rto_us", "ato_us", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets",
    "last_data_sent_ms", "last_ack_sent_ms", "last_data_recv_ms", "last_ack_recv_ms", "pmtu",
    "rcv_ssthresh", "rtt_us", "rttvar_us",
    "snd_ssthresh", "snd_cwnd", "advmss", "reordering", "rcv_rtt_us", "rcv_space", "total_retrans",
)  # fmt: skip
_LONGS: Final = ("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received")
_MORE_WORDS: Final = ("segs_out", "segs_in", "notsent_bytes", "min_rtt_us", "data_segs_in", "data_segs_out")
_TIMES: Final = ("delivery_rate", "busy_us", "rwnd_limited_us", "sndbuf_limited_us")
_DELIVERED: Final = ("delivered", "delivered_ce")
_SENT: Final = ("bytes_sent", "bytes_retrans")
_LAST: Final = ("dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd")

_FORMAT: Final = struct.Struct(f"=8B{len(_WORDS)}I4Q6I4Q2I2Q4I")
FIELDS: Final = (*_BYTES, *_WORDS, *_LONGS, *_MORE_WORDS, *_TIMES, *_DELIVERED, *_SENT, *_LAST)

LOGGED: Final = (
    "state", "ca_state", "app_limited", "rto_us", "snd_mss", "unacked", "sacked", "lost", "retrans", "rtt_us",
    "rttvar_us", "snd_ssthresh", "snd_cwnd", "reordering", "total_retrans", "pacing_rate", "bytes_acked",
    "notsent_bytes", "min_rtt_us", "delivery_rate", "busy_us", "rwnd_limited_us", "sndbuf_limited_us",
    "delivered", "delivered_ce", "bytes_sent", "bytes_retrans", "reord_seen", "snd_wnd", "data_segs_out",
)  # fmt: skip
_PLACES: Final = tuple(FIELDS.index(name) for name in LOGGED)


def logged(connection: socket.socket) -> list[int]:
    """Return the fields of `LOGGED`."""
    content = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, _FORMAT.size)
    values = _FORMAT.unpack(content.ljust(_FORMAT.size, b"\0"))
    return [values[place] for place in _PLACES]


def bbr_gains(connection: socket.socket) -> list[int]:
    """Return BBR's bandwidth in bytes a second, least RTT, and gains of pacing and window (256 is 1)."""
    content = connection.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 20)
    if len(content) < 20:
        return [0, 0, 0, 0]
    low, high, least_rtt_us, pacing_gain, cwnd_gain = struct.unpack("=5I", content)
    return [(high << 32) + low, least_rtt_us, pacing_gain, cwnd_gain]
