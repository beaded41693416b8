"""How inputs are read: the keywords of `tfrctrace.open`, with types and defaults."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypedDict

MAX_FLOWS: Final = 1_000_000
MAX_SAMPLES: Final = 10_000_000
MAX_DECOMPRESSED_BYTES: Final = 64 * 2**30


class ReadingArguments(TypedDict, total=False):
    """Keywords of `tfrctrace.open`, each with its type and its default."""

    filter: Annotated[str | None, None]
    """Read only packets that match this expression of tcpdump."""
    input_format: Annotated[str | None, None]
    """Format of the inputs; by default their content decides."""
    layer: Annotated[str | None, None]
    """Layer of a simulator's nodes at which packets count as sent and received; default: the highest."""
    vantage: Annotated[str | None, None]
    """Where the captures were taken: `sender`, `receiver` or `middle` of the direction with more payload; by
    default it is inferred."""
    dissect: Annotated[Iterable[str], ()]
    """How datagrams of a port begin, as `udp:9000=mymodule:MyHeader`."""
    tfrc: Annotated[Mapping[str, float | str] | None, None]
    """Rules of TFRC's ends, as `{"profile": "linux"}`; the round-trip time of flows that do not show theirs,
    as `{"rtt": "50ms"}`; parameters of ns-2's agents that a script has changed, as `{"df": 0.9}`."""
    join: Annotated[bool, False]
    """Read the inputs as one trace that was rotated."""
    pair: Annotated[bool, False]
    """Match the inputs: two captures of the same packets at two places of their path."""
    clock_offset: Annotated[str | None, None]
    """How far the second capture's clock is ahead, as `-2.5s`, or `0s` for one clock; by default it is
    estimated."""
    max_flows: Annotated[int, MAX_FLOWS]
    """Flows that are followed in one trace; packets of later flows are counted as untracked."""
    max_samples: Annotated[int, MAX_SAMPLES]
    """Samples of each kind (RTT samples, losses, rounds, reports, ...) that are kept of one trace."""
    max_decompressed_bytes: Annotated[int, MAX_DECOMPRESSED_BYTES]
    """Bytes after which a compressed input is given up as a decompression bomb."""


READING_DEFAULTS: Final[Mapping[str, Any]] = {
    name: annotated.__metadata__[0] for name, annotated in ReadingArguments.__annotations__.items()
}
