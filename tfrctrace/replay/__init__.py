"""Rate algorithms run offline against what a trace shows of a flow, and what each would have allowed.

`recording` is what is known of one flow: reports with p, round-trip time and receive rate, and what was sent.
`controller` is what an algorithm is, `catalogue` finds one by its name, `loop` drives it through a recording.
The state machines of TFRC are the core's (`tfrc`); MTFRC bounds them by what the MAC can carry (`mtfrc`).

Inside, units are the RFC's: seconds, bytes, bytes per second, and time 0 is the first packet of the flow.
Frames that leave have ns, ms and bit/s, as everywhere.
"""
