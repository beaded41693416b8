"""Window controls of TCP's variants as state machines, and what they send in the long run.

`window` is what all have in common: rounds, slow start, recovery, timeouts. Each variant is one file that
says how the window grows and what a loss leaves of it. `steady` has the published formulas. Windows are in
segments.
"""
