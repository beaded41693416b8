"""Window controls of TCP variants as state machines, and their steady-state rates.

`window` has the common part: rounds, slow start, recovery, timeouts. Each variant is one file that defines
how the window grows and how a loss cuts it. `steady` has the published formulas. Windows are in segments.
"""
