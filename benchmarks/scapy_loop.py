"""Count packets, bytes and flows with scapy: `scapy_loop.py CAPTURE`."""

import sys
from collections import Counter

from scapy.layers.inet import IP, TCP
from scapy.utils import PcapReader

packets: Counter[tuple[str, str, int, int]] = Counter()
payload = 0
with PcapReader(sys.argv[1]) as reader:
    for frame in reader:
        ip, tcp = frame[IP], frame[TCP]
        packets[ip.src, ip.dst, tcp.sport, tcp.dport] += 1
        payload += ip.len - 4 * ip.ihl - 4 * tcp.dataofs
print(f"{packets.total()} packets, {len(packets)} directions of flows, {payload} bytes")
