"""Display filters of Wireshark and tshark, to be copied."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfrctrace.reports.flow_rows import FlowRow

_PORTS: Final = {"tcp": "tcp", "udp": "udp", "rtp": "udp", "rtcp": "udp", "quic": "udp", "dccp": "dccp"}
"""Protocols whose ports a filter names, by the transport of a flow."""


def inputs_with_frames(sources: Iterable[Mapping[str, Any]], *, is_one: bool) -> frozenset[str]:
    """Return the inputs of which packets have the numbers that Wireshark gives them.

    Numbers of lines are none, nor those through several captures that are one trace.
    """
    return frozenset(source["source"] for source in sources if source["link_types"] and not is_one)


def frames_filter(frames: str) -> str:
    """Return the filter that shows packets with these numbers in their capture, such as `12, 40`."""
    return f"frame.number in {{{frames}}}"


def display_filter(row: FlowRow) -> str | None:
    """Return the filter that shows one direction of a flow; None if its ends are no IP addresses."""
    protocol = _PORTS.get(row.transport)
    if protocol is None or row.src is None or row.dst is None:
        return None
    try:
        versions = {ipaddress.ip_address(end).version for end in (row.src, row.dst)}
    except ValueError:
        return None  # nodes of a simulation, or names
    network = "ip" if versions == {4} else "ipv6"
    ends = ((row.src, "src", row.src_port), (row.dst, "dst", row.dst_port))
    parts = [f"{network}.{side} == {address}" for address, side, _ in ends]
    parts += [f"{protocol}.{side}port == {port}" for _, side, port in ends if port is not None]
    return " && ".join(parts)
