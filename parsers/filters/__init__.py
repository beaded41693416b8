"""Filters of packets: in the syntax of tcpdump, which libpcap compiles; that of Wireshark is translated."""
