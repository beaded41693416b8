"""From bytes to packets to flows.

The way of one packet through this room:

1. `sources` turns arguments (files, directories, `-`) into the list of inputs, in a fixed order.
2. `reading` gives each input to the Rust core in a thread of its own, and `filters` has libpcap
   compile the user's filter for each link type that the core meets.
3. The core (`native/src/lib.rs` is its map) undoes compression, takes a record out of the capture,
   runs the filter over it, peels its layers, finds its flow and updates that flow's state.
4. At the end the core's state becomes Arrow tables; `schema` names and explains every column.
5. `reading` numbers the flows through over all inputs and hands the tables on, uncopied.

The state that is kept grows with the number of flows, not of packets. Nothing here knows what is
computed from the tables or how it is shown.
"""

from tfrctrace.base.errors import NotBuiltError

try:
    import tfrctrace.parsers._native  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "tfrctrace.parsers._native":
        raise
    raise NotBuiltError from None
