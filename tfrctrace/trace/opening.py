"""`tfrctrace.open`: what its arguments mean, checked before anything is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tfrctrace.base.errors import UsageError
from tfrctrace.trace.trace import MAX_DECOMPRESSED_BYTES, MAX_FLOWS, MAX_SAMPLES, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.trace.trace import StrPath


def open(
    paths: StrPath | Iterable[StrPath],
    *,
    filter: str | None = None,
    input_format: str | None = None,
    layer: str | None = None,
    vantage: str | None = None,
    dissect: Iterable[str] = (),
    tfrc: Mapping[str, float | str] | None = None,
    join: bool = False,
    pair: bool = False,
    clock_offset: str | None = None,
    bin_width: str | None = None,
    anonymize: bool | bytes = False,
    max_flows: int = MAX_FLOWS,
    max_samples: int = MAX_SAMPLES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Trace:
    """Return the trace in `paths`: captures, directories of captures, or `-` for standard input.

    Nothing is read before something is asked of the trace, and each file is read again for what was not
    collected yet. Standard input cannot be read twice: its one pass collects everything.

    `filter` is an expression of tcpdump. `input_format` says what the inputs are where their content does
    not, `layer` where in a simulator's nodes packets count as sent and received, `vantage` where the captures
    were taken (`sender`, `receiver` or `middle` of the direction with more payload; else it is inferred),
    `dissect` how datagrams of a port begin, as `udp:9000=mymodule:MyHeader`, `tfrc` whose rules
    TFRC's ends obey, as `{"profile": "linux"}`, the round-trip time of flows that do not tell it, as
    `{"rtt": "50ms"}`, and which parameters of ns-2's agents a script has changed,
    as `{"df": 0.9}`. Several files are separate traces, with flows numbered through; with `join` they are one
    trace that was rotated, with `pair` two captures of the same packets at two places of their path. The
    second one's clock is ahead by `clock_offset` (such as `"-2.5s"`, or `"0s"` for one clock), else that is
    estimated. `bin_width` such as `"10ms"` sets the width of `Trace.bins`. With `anonymize` all that the
    trace tells has other addresses and names (docs/anonymity.md), with a key of at least 16 bytes the same
    ones each time. `max_flows` and `max_samples` bound the memory, `max_decompressed_bytes` the size of a
    compressed input.

    Raises `FilterError` for a wrong filter, and `InputError` (here or at the first question) if none of the
    inputs can be read. If some can, or with a reservation, a `TfrctraceWarning` says so.
    """
    from tfrctrace.base.durations import parse_duration_ns, parse_offset_ns
    from tfrctrace.parsers._native import node_layers, vantage_points
    from tfrctrace.parsers.dissect import parse_dissect
    from tfrctrace.parsers.filters import CompiledFilter
    from tfrctrace.parsers.pairing import check_pair, pair_of
    from tfrctrace.parsers.plugins import check_format
    from tfrctrace.parsers.reading import ReadSettings
    from tfrctrace.parsers.sources import find_inputs
    from tfrctrace.parsers.tfrc import check_parameters

    named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    dissect = tuple(dissect)
    settings = ReadSettings(
        filter=None if filter is None else CompiledFilter(filter),
        format=check_format(input_format),
        layer=_one_of(node_layers(), layer, "layer"),
        vantage=_one_of(vantage_points(), vantage, "vantage"),
        dissect=tuple(map(parse_dissect, dissect)),
        tfrc=check_parameters((tfrc or {}).items()),
        join=join,
        pair=pair_of(
            pair=pair,
            clock_offset_ns=None if clock_offset is None else parse_offset_ns(clock_offset),
            others={
                "join": join,
                "layer": layer,
                "vantage": vantage,
                "dissect": dissect,
                "tfrc": tfrc,
                "input_format": input_format,
            },
        ),
        max_flows=max_flows,
        max_samples=max_samples,
        max_decompressed_bytes=max_decompressed_bytes,
        anonymizer=_anonymizer(anonymize),
    )
    inputs = find_inputs([os.fspath(path) for path in named], join=join)
    if pair:
        check_pair(inputs.names)
    return Trace(
        inputs,
        settings,
        bin_ns=None if bin_width is None else parse_duration_ns(bin_width),
    )


def _anonymizer(anonymize: bool | bytes) -> Anonymizer | None:
    if anonymize is False:
        return None
    from tfrctrace.parsers.anonymity import Anonymizer

    return Anonymizer(None if anonymize is True else anonymize)


def _one_of(known: list[str], name: str | None, what: str) -> str | None:
    """Return `name`, or raise if it is none of the known ones."""
    if name is None or name in known:
        return name
    raise UsageError(f"`{what}` cannot be `{name}`", hint=f"it is one of {', '.join(known)}")
