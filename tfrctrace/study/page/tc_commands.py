"""The commands that make the path of a scenario of two routers, for runs of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.study.criteria import Place

_NETEM: Final = "netem limit 200000 delay"


def tc_commands(place: Place, ports: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the commands that make a place; `ports` has those of the receivers by label."""
    rate, packets = _kbit(place.rate_bps), max(place.buffer_bytes // 1514, 5)
    queue = f"{place.queue} limit {place.buffer_bytes if place.queue == 'bfifo' else packets}"
    if place.queue == "red":
        queue = f"red limit {place.buffer_bytes} avpkt 1000 bandwidth {rate} probability 0.1"
    # netem lets packets that are not late pass without its delay
    back_ms = place.rtt_s * (1000 if place.reordering else 500)
    found = [
        "tc qdisc add dev IN root handle 1: htb default 1",
        f"tc class add dev IN parent 1: classid 1:1 htb rate {rate}",
        f"tc qdisc add dev IN parent 1:1 {queue}{' ecn' if place.ecn else ''}",
        *_towards_receivers(place, ports),
        f"tc qdisc add dev BACK root {_NETEM} {back_ms:g}ms",
    ]
    if place.ecn:
        found.append("sysctl -w net.ipv4.tcp_ecn=1")
    if place.clears_marks:
        clear = "pedit ex munge ip dsfield set 0 retain 0x3 pipe action csum ip4h"
        found.append("tc qdisc add dev OUT clsact")
        found.append(f"tc filter add dev OUT egress protocol ip matchall action {clear}")
    if place.tunnel:
        found.append("ip link add TUNNEL type ipip local ROUTER remote NEXT, and the same back")
    return [*found, *_changes(place)]


def _kbit(rate_bps: float) -> str:
    return f"{rate_bps / 1e3:g}kbit"


def _towards_receivers(place: Place, ports: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the commands of the delay and what happens there; some receivers may be farther away."""
    near = f"{_NETEM} {place.rtt_s * 500:g}ms"
    near += f" loss random {place.loss:.3%}" if place.loss else ""
    near += f" reorder {1 - place.reordering:.3%} 25%" if place.reordering else ""
    far = place.far_ports(ports)
    if not far:
        return [f"tc qdisc add dev OUT root {near}"]
    # what no filter takes goes to the first band
    found = ["tc qdisc add dev OUT root handle 1: prio bands 16 priomap" + " 0" * 16]
    found.append(f"tc qdisc add dev OUT parent 1:1 {near}")
    for number, (port, more_s) in enumerate(far, start=2):
        delay_ms = (place.rtt_s / 2 + more_s) * 1e3
        match = f"match ip dport {port} 0xffff flowid 1:{number:x}"
        found.append(f"tc qdisc add dev OUT parent 1:{number:x} {_NETEM} {delay_ms:g}ms")
        found.append(f"tc filter add dev OUT parent 1: protocol ip u32 {match}")
    return found


def _changes(place: Place) -> list[str]:
    """Return the commands of what happens under way."""
    found = [
        f"at {at_s:g} s: tc class change dev IN parent 1: classid 1:1 htb rate {_kbit(rate_bps)}"
        for at_s, rate_bps in place.rates
    ]
    if place.change is not None:
        at_s, rtt_s = place.change
        delay_ms = max((rtt_s - place.rtt_s / 2) * 1e3, 0)
        found.append(f"at {at_s:g} s: tc qdisc change dev OUT root {_NETEM} {delay_ms:g}ms")
    if place.outage is not None:
        at_s, lasts_s = place.outage
        lose = "tc qdisc change dev OUT root netem loss 100%"
        found.append(f"at {at_s:g} s: {lose}; {lasts_s:g} s later: back")
    return found
