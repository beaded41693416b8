"""Count packets, bytes and flows with dpkt: `dpkt_loop.py CAPTURE`."""

import sys
from collections import Counter

import dpkt

packets: Counter[tuple[bytes, bytes, int, int]] = Counter()
payload = 0
with open(sys.argv[1], "rb") as file:
    for _time, frame in dpkt.pcap.Reader(file):
        ip = dpkt.ethernet.Ethernet(frame).data
        tcp = ip.data
        packets[ip.src, ip.dst, tcp.sport, tcp.dport] += 1
        payload += ip.len - 4 * ip.hl - 4 * tcp.off
print(f"{packets.total()} packets, {len(packets)} directions of flows, {payload} bytes")
