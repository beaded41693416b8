"""The commands that make the path of a scenario of two routers, for runs of one's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

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
    if place.ecn or place.queue == "fq_codel":  # which marks unless told not to
        queue += " ecn" if place.ecn else " noecn"
    found = [
        "tc qdisc add dev IN root handle 1: htb default 1",
        f"tc class add dev IN parent 1: classid 1:1 htb rate {rate}",
        f"tc qdisc add dev IN parent 1:1 {queue}",
        *_bands(place, ports),
        *_towards_receivers(place, ports),
        *_back(place),
    ]
    if place.ecn:
        found.append("sysctl -w net.ipv4.tcp_ecn=1")
    if place.clears_marks:
        clear = "pedit ex munge ip dsfield set 0 retain 0x3 pipe action csum ip4h"
        found.append("tc qdisc add dev OUT clsact")
        found.append(f"tc filter add dev OUT egress protocol ip matchall action {clear}")
    if place.tunnel:
        found.append("ip link add TUNNEL type ipip local ROUTER remote NEXT, and the same back")
    return [*found, *_changes(place, ports)]


def _kbit(rate_bps: float) -> str:
    return f"{rate_bps / 1e3:g}kbit"


def _bands(place: Place, ports: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the commands that give receivers which are farther away bands of their own."""
    far = place.far_ports(ports)
    if not far:
        return []
    # what no filter takes goes to the first band
    return [
        "tc qdisc add dev OUT root handle 1: prio bands 16 priomap" + " 0" * 16,
        *(
            f"tc filter add dev OUT parent 1: protocol ip u32 match ip dport {port} 0xffff flowid 1:{band:x}"
            for band, (port, _) in enumerate(far, start=2)
        ),
    ]


def _towards_receivers(
    place: Place,
    ports: Mapping[str, Sequence[int]],
    verb: Literal["add", "change"] = "add",
    *,
    rtt_s: float | None = None,
    loss: float | None = None,
) -> list[str]:
    """Return the commands of the delay to all receivers, and of what happens there.

    A change names all parameters: netem takes those that are left out for its defaults.
    """
    loss = place.loss if loss is None else loss
    more = f" loss random {100 * loss:g}%" if loss else ""
    more += f" reorder {100 * (1 - place.reordering):g}% 25%" if place.reordering else ""
    way_s = max((place.rtt_s if rtt_s is None else rtt_s) - place.rtt_s / 2, 0.0)
    far = place.far_ports(ports)
    bands = enumerate((0.0, *(more_s for _, more_s in far)), start=1)
    return [
        f"tc qdisc {verb} dev OUT {f'parent 1:{band:x}' if far else 'root'} {_NETEM} "
        f"{(way_s + more_s) * 1e3:g}ms{more}"
        for band, more_s in bands
    ]


def _back(place: Place) -> list[str]:
    """Return the commands of the way back: its delay, and after it the first of its rates."""
    # netem lets packets that are not late pass without its delay
    delay_ms = place.rtt_s * (1000 if place.reordering else 500)
    handle = "handle 1: " if place.back_rates else ""
    return [
        f"tc qdisc add dev BACK root {handle}{_NETEM} {delay_ms:g}ms",
        *(_back_rate("add", place, rate_bps) for _, rate_bps in place.back_rates[:1]),
    ]


def _back_rate(verb: Literal["add", "change"], place: Place, rate_bps: float) -> str:
    limit = f"burst 3028 limit {place.buffer_bytes}"
    return f"tc qdisc {verb} dev BACK parent 1:1 handle 2: tbf rate {_kbit(rate_bps)} {limit}"


def _changes(place: Place, ports: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the commands of what happens under way."""
    found = [
        f"at {at_s:g} s: tc class change dev IN parent 1: classid 1:1 htb rate {_kbit(rate_bps)}"
        for at_s, rate_bps in place.rates
    ]
    for at_s, rate_bps in place.back_rates[1:]:
        found += _at(at_s, [_back_rate("change", place, rate_bps)])
    changed_s, rtt_s = place.change or (math.inf, place.rtt_s)
    if place.change is not None:
        found += _at(changed_s, _towards_receivers(place, ports, "change", rtt_s=rtt_s))
    if place.outage is not None:
        begins_s, lasts_s = place.outage
        for at_s, loss in ((begins_s, 1.0), (begins_s + lasts_s, place.loss)):
            is_changed = at_s >= changed_s
            own_s = rtt_s if is_changed else place.rtt_s
            found += _at(at_s, _towards_receivers(place, ports, "change", rtt_s=own_s, loss=loss))
    return found


def _at(time_s: float, commands: Sequence[str]) -> list[str]:
    return [f"at {time_s:g} s: {command}" for command in commands]
