"""How traces are read: the options that every command with traces has, and the trace they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.commands.options.common import (
    ClockOffset,
    Dissect,
    Filter,
    Format,
    Join,
    Layer,
    MaxDecompressed,
    MaxFlows,
    Pair,
    Quiet,
    Strict,
    Tfrc,
    Vantage,
)
from tfrctrace.trace.trace import MAX_DECOMPRESSED_BYTES, MAX_FLOWS, MAX_SAMPLES, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrctrace.commands.console import Console
    from tfrctrace.parsers._native import Layout
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.parsers.filters import CompiledFilter
    from tfrctrace.parsers.pairing import Pair as PairSettings
    from tfrctrace.parsers.reading import Pass
    from tfrctrace.parsers.tfrc import TfrcParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """What is said of the inputs, whichever command reads them."""

    filter: Filter = None
    input_format: Format = None
    layer: Layer = None
    vantage: Vantage = "auto"
    dissect: Dissect = None
    tfrc: Tfrc = None
    join: Join = False
    pair: Pair = False
    clock_offset: ClockOffset = None
    max_flows: MaxFlows = MAX_FLOWS
    max_decompressed_bytes: MaxDecompressed = MAX_DECOMPRESSED_BYTES
    strict: Strict = False
    quiet: Quiet = False

    def open(
        self,
        traces: list[str],
        console: Console,
        *,
        max_samples: int = MAX_SAMPLES,
        bin_ns: int | None = None,
        anonymizer: Anonymizer | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Trace:
        """Return the trace, which tells `console` what happens while it is read.

        `meanwhile` is called once the core is at work: the place to load what is needed afterwards.
        """
        from tfrctrace.parsers.plugins import check_format
        from tfrctrace.parsers.reading import ReadSettings
        from tfrctrace.parsers.sources import find_inputs

        settings = ReadSettings(
            filter=None if self.filter is None else _compiled(self.filter),
            format=None if self.input_format is None else check_format(self.input_format),
            layer=self.layer,
            vantage=None if self.vantage == "auto" else self.vantage,
            dissect=_parsed(self.dissect) if self.dissect else (),
            tfrc=_parameters(self.tfrc or []),
            join=self.join,
            pair=self._pair() if self.pair or self.clock_offset is not None else None,
            max_flows=self.max_flows,
            max_samples=max_samples,
            max_decompressed_bytes=self.max_decompressed_bytes,
            anonymizer=anonymizer,
        )
        inputs = find_inputs(traces, join=self.join)
        if self.pair:
            _check_pair(inputs.names)

        def watch(running: Pass) -> None:
            if meanwhile:
                meanwhile()
            console.watch(running)

        return Trace(
            inputs,
            settings,
            bin_ns=bin_ns,
            watch=watch,
            on_problems=console.print_problems,
        )

    def _pair(self) -> PairSettings | None:
        from tfrctrace.base.durations import parse_offset_ns
        from tfrctrace.parsers.pairing import pair_of

        offset_ns = None if self.clock_offset is None else parse_offset_ns(self.clock_offset)
        others = {
            "--join": self.join,
            "--layer": self.layer,
            "--vantage": None if self.vantage == "auto" else self.vantage,
            "--dissect": self.dissect,
            "--tfrc": self.tfrc,
            "--input-format": self.input_format,
        }
        return pair_of(pair=self.pair, clock_offset_ns=offset_ns, others=others)


def _compiled(expression: str) -> CompiledFilter:
    from tfrctrace.parsers.filters import CompiledFilter

    return CompiledFilter(expression)


def _check_pair(names: list[str]) -> None:
    from tfrctrace.parsers.pairing import check_pair

    check_pair(names)


def _parsed(dissect: list[str]) -> tuple[tuple[int, Layout], ...]:
    from tfrctrace.parsers.dissect import parse_dissect

    return tuple(map(parse_dissect, dissect))


def _parameters(tfrc: list[str]) -> TfrcParameters:
    from tfrctrace.parsers.tfrc import check_parameters, parse_parameter

    return check_parameters(map(parse_parameter, tfrc))
