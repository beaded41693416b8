"""Replay rate algorithms offline on recorded flows and report the rates they would have allowed.

`recordings` holds one flow's reports (p, round-trip time, receive rate) and what it sent. `controller`
defines the interface of an algorithm, `algorithms` finds one by name, and `drive` feeds it a recording.
TFRC's state machines are in the core (`tfrc`); MTFRC limits them to what the MAC can carry (`mtfrc`).

Internal units are those of the RFCs (seconds, bytes, bytes per second), and time 0 is the flow's first
packet. Result frames have ns, ms and bit/s.
"""
