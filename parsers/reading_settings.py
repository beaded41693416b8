"""How inputs are read: the keywords of `tfrctrace.open`, checked and parsed for the core.

A reading option has a key in `ReadingArguments` and a field in `ReadSettings`, which `read_settings` fills; a
line in the core (`native/src/python/settings.rs`), and a field in the command line's `ReadingOptions`.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

from tfrctrace.base.errors import UsageError
from tfrctrace.parsers.remote import StoreAccess
from tfrctrace.parsers.tfrc import NO_PARAMETERS, TfrcParameters, check_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tfrctrace.base.stretch import Stretch
    from tfrctrace.parsers._native import Layout
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.parsers.filters.capture_filters import CompiledFilter
    from tfrctrace.parsers.logs import LogOwner
    from tfrctrace.parsers.pairing import Pair

MAX_FLOWS: Final = 1_000_000
MAX_SAMPLES: Final = 10_000_000


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
    log_of: Annotated[Mapping[str, str] | None, None]
    """Connections of logs that do not name theirs, as
    `{"tcp_7_1130000000.txt": "10.0.0.1:5000,10.0.0.2:80"}`: the sender of the variables and its peer."""
    tunnel_port: Annotated[Iterable[str], ()]
    """Further UDP ports of encapsulations, as `vxlan=8472`."""
    join: Annotated[bool, False]
    """Read the inputs as one trace that was rotated."""
    pair: Annotated[bool, False]
    """Match the inputs: two captures of the same packets at two places of their path."""
    clock_offset: Annotated[str | None, None]
    """How far the second capture's clock is ahead, as `-2.5s`, or `0s` for one clock; by default it is
    estimated."""
    since: Annotated[str | None, None]
    """Leave out packets before this date (`2026-11-23 14:05`), time of day (`14:05`) or time since the
    start of the trace (`90s`)."""
    until: Annotated[str | None, None]
    """Leave out packets from this time on."""
    last: Annotated[str | None, None]
    """Read only so much time before the last packet, as `10min`."""
    timezone: Annotated[str, "UTC"]
    """Time zone of `since` and `until`: `UTC`, `local` or a name such as `Europe/Berlin`."""
    idle_timeout: Annotated[str | None, None]
    """Silence in capture time after which a flow is over, as `10min`: later packets are another flow; by
    default 5 minutes of UDP, 4 of a connection that never opened, and 124 of others."""
    max_flows: Annotated[int, MAX_FLOWS]
    """Flows that are followed at a time in one trace; packets of further flows are counted as untracked."""
    max_samples: Annotated[int, MAX_SAMPLES]
    """Samples of each kind (RTT samples, losses, rounds, reports, ...) that are kept of one trace."""
    endpoint: Annotated[str | None, None]
    """URL of a store that speaks S3, if it is not Amazon's."""
    no_credentials: Annotated[bool, False]
    """Read public objects of stores without credentials."""
    max_decompressed_bytes: Annotated[int | None, None]
    """Bytes after which a compressed input is given up as a decompression bomb; by default, beyond 1 GiB, a
    thousand times its compressed size."""


READING_DEFAULTS: Final[Mapping[str, Any]] = {
    name: annotated.__metadata__[0] for name, annotated in ReadingArguments.__annotations__.items()
}

WITHOUT_EFFECT: Final = frozenset({"endpoint", "no_credentials"})
"""Those on which no number depends."""

NAMING: Final = frozenset({"filter", "log_of", "dissect", "tfrc"})
"""Those whose values may name hosts or files."""


@dataclass(frozen=True, slots=True)
class ChosenFlows:
    """Flows of which a further pass over the same traces collects something."""

    firsts: Sequence[int]
    """The first flow of each trace."""
    sampled: Sequence[int]
    """Those with round-trip times and rounds, in order."""
    explained: Sequence[int]
    """Those with causes, in order."""
    graphed: "Collection[tuple[int, bool]]"
    """Directions with a time-sequence graph: the flow, and whether it is `fwd`."""

    def of_trace(self, index: int) -> "tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, bool], ...]]":
        """Return those of a trace, all numbered from 0 as in the core."""
        first, *after = self.firsts[index : index + 2]
        end = after[0] if after else sys.maxsize

        def own(flows: Sequence[int]) -> tuple[int, ...]:
            return tuple(flow - first for flow in flows[bisect_left(flows, first) : bisect_left(flows, end)])

        graphed = tuple(
            (flow - first, is_forward) for flow, is_forward in self.graphed if first <= flow < end
        )
        return own(self.sampled), own(self.explained), graphed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """`ReadingArguments`, checked and parsed; the core reads the fields by name."""

    filter: "CompiledFilter | None" = None
    format: str | None = None
    layer: str | None = None
    vantage: str | None = None
    dissect: "tuple[tuple[int, Layout], ...]" = ()
    tfrc: TfrcParameters = NO_PARAMETERS
    log_of: "tuple[LogOwner, ...]" = ()
    tunnel_port: tuple[tuple[str, int], ...] = ()
    join: bool = False
    pair: "Pair | None" = None
    stretch: "Stretch | None" = None
    span: tuple[int | None, int | None, bool] | None = None
    """The ends of the stretch (ns) in the trace, and whether they count from its first packet."""
    idle_timeout_ns: int | None = None
    packing: tuple[int, int] = (16_384, 2_000_000_000)
    """Flows up to which none is packed, and the silence (ns) after which one is if there are more: it takes
    less memory then, and no result changes."""
    max_flows: int = MAX_FLOWS
    max_samples: int = MAX_SAMPLES
    sampled_flows: tuple[int, ...] | None = None
    """Flows of one trace, from 0, of which round-trip times and rounds are collected; None for all."""
    explained_flows: tuple[int, ...] | None = None
    """The same of causes."""
    graphed_flows: tuple[tuple[int, bool], ...] = ()
    """Those with a time-sequence graph, and whether of the direction `fwd`."""
    chosen: ChosenFlows | None = None
    """Those of all traces, of which a pass over one takes these three."""
    max_decompressed_bytes: int | None = None
    grouping: tuple[str, tuple[int, int], int | None, int] | None = None
    """What flows are grouped by, lengths of prefixes of IPv4 and IPv6, width of intervals (ns), most rows."""
    store: StoreAccess = StoreAccess()  # noqa: RUF009  it is frozen
    """How objects of stores are reached."""
    anonymizer: "Anonymizer | None" = None
    """Replaces addresses and names in all results; problems keep them, for the person who reads."""


_NOT_OF_PAIR: Final = ("join", "layer", "vantage", "dissect", "tfrc", "input_format")


def read_settings(
    arguments: ReadingArguments,
    anonymizer: "Anonymizer | None" = None,
    *,
    spelled: "Callable[[str], str]" = str,
) -> ReadSettings:
    """Return the settings that `arguments` describe; `spelled` gives the name of one for messages.

    Raises `UsageError` for an argument that cannot be, and `FilterError` for a wrong filter.
    """
    from tfrctrace.parsers._native import node_layers, vantage_points
    from tfrctrace.parsers.logs import log_owners
    from tfrctrace.parsers.plugins import check_format

    given = {**READING_DEFAULTS, **arguments}
    given["dissect"] = tuple(given["dissect"])
    return ReadSettings(
        filter=_compiled(given["filter"]),
        format=check_format(given["input_format"]),
        layer=_one_of(node_layers(), given["layer"], "layer"),
        vantage=_one_of(vantage_points(), given["vantage"], "vantage"),
        dissect=_layouts(given["dissect"]),
        tfrc=_parameters(given["tfrc"]),
        log_of=log_owners(given["log_of"]),
        tunnel_port=_tunnel_ports(given["tunnel_port"]),
        stretch=_stretch(given),
        pair=_pair(given, {spelled(name): given[name] for name in _NOT_OF_PAIR}),
        store=StoreAccess(given["endpoint"], given["no_credentials"]),
        idle_timeout_ns=_duration_ns(given["idle_timeout"]),
        join=given["join"],
        max_flows=given["max_flows"],
        max_samples=given["max_samples"],
        max_decompressed_bytes=given["max_decompressed_bytes"],
        anonymizer=anonymizer,
    )


def _compiled(expression: str | None) -> "CompiledFilter | None":
    if expression is None:
        return None
    from tfrctrace.parsers.filters.capture_filters import CompiledFilter

    return CompiledFilter(expression)


def _duration_ns(duration: str | None) -> int | None:
    from tfrctrace.base.durations import parse_duration_ns

    return None if duration is None else parse_duration_ns(duration)


def _layouts(dissect: tuple[str, ...]) -> "tuple[tuple[int, Layout], ...]":
    if not dissect:
        return ()
    from tfrctrace.parsers.dissect import parse_dissect

    return tuple(map(parse_dissect, dissect))


def _parameters(tfrc: Mapping[str, float | str] | None) -> TfrcParameters:
    return check_parameters(tfrc.items()) if tfrc else NO_PARAMETERS


def _tunnel_ports(given: Iterable[str]) -> tuple[tuple[str, int], ...]:
    from tfrctrace.parsers._native import udp_tunnels

    known = udp_tunnels()

    def parsed(text: str) -> tuple[str, int]:
        name, _, port = text.partition("=")
        if name not in known or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise UsageError(
                f"`{text}` is not an encapsulation with its port",
                hint=f"write it as `vxlan=8472`; known are {', '.join(known)}",
            )
        return name, int(port)

    return tuple(map(parsed, given))


def _stretch(given: Mapping[str, Any]) -> "Stretch | None":
    if given["timezone"] == "UTC" and all(given[name] is None for name in ("since", "until", "last")):
        return None
    from tfrctrace.base.stretch import parse_stretch
    from tfrctrace.base.timezones import TimeZone

    return parse_stretch(given["since"], given["until"], given["last"], TimeZone.named(given["timezone"]))


def _pair(given: Mapping[str, Any], others: Mapping[str, object]) -> "Pair | None":
    is_pair, clock_offset = given["pair"], given["clock_offset"]
    if not is_pair and clock_offset is None:
        return None
    from tfrctrace.base.durations import parse_offset_ns
    from tfrctrace.parsers.pairing import pair_of

    offset_ns = None if clock_offset is None else parse_offset_ns(clock_offset)
    return pair_of(pair=is_pair, clock_offset_ns=offset_ns, others=others)


def _one_of(known: list[str], name: str | None, what: str) -> str | None:
    if name is None or name in known:
        return name
    raise UsageError(f"`{what}` cannot be `{name}`", hint=f"it is one of {', '.join(known)}")
