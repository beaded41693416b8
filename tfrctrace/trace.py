"""What `tfrctrace.open` returns: one or more traces, read when something is asked of them."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Final

from tfrctrace.errors import InputError, ReadOnceError, TfrctraceWarning, UsageError
from tfrctrace.origins import YEAR_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from tfrctrace.measuring import Basis, Measured
    from tfrctrace.parsers._native import Clock, Problem, SourceSummary
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.parsers.reading import PacketBatches, Pass, Reading, Settings, StackedTable, TableName
    from tfrctrace.parsers.sources import Inputs
    from tfrctrace.replay.closed.run import ClosedLoops
    from tfrctrace.replay.gathering import Gathered
    from tfrctrace.replay.replayed import Replayed
    from tfrctrace.replay.tfrc import Profile
    from tfrctrace.reports.journal import PaperStyle, Width
    from tfrctrace.reports.parts import Figure
    from tfrctrace.reports.results import Results
    from tfrctrace.reports.single import PlotKind
    from tfrctrace.wlan.scenario import Scenario

StrPath = str | os.PathLike[str]

MAX_FLOWS: Final = 1_000_000
"""Flows that are followed in one trace, unless the caller says otherwise."""

MAX_SAMPLES: Final = 10_000_000
"""RTT samples, and as many losses and rounds, that are kept of one trace."""

MAX_DECOMPRESSED_BYTES: Final = 64 * 2**30
"""Bytes after which a compressed input is given up as a decompression bomb."""

LEAST_PACKETS: Final = 20
"""Data packets below which a flow is no competitor: control connections, handshakes, look-ups."""

NS_PER_MS: Final = 1_000_000

_EVERYTHING: Final = (
    "flows",
    "bins",
    "rtt",
    "losses",
    "rounds",
    "variables",
    "feedback",
    "loss_events",
    "loss_intervals",
    "findings",
    "rtp_sources",
    "links",
    "link_samples",
)
"""What is collected of an input that can be read only once."""

_POLL_S: Final = 0.1


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
    from tfrctrace.durations import parse_duration_ns, parse_offset_ns
    from tfrctrace.parsers._native import node_layers, vantage_points
    from tfrctrace.parsers.dissect import parse_dissect
    from tfrctrace.parsers.filters import CompiledFilter
    from tfrctrace.parsers.pairing import check_pair, pair_of
    from tfrctrace.parsers.plugins import check_format
    from tfrctrace.parsers.reading import Settings
    from tfrctrace.parsers.sources import find_inputs
    from tfrctrace.parsers.tfrc import check_parameters

    named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    dissect = tuple(dissect)
    settings = Settings(
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


def wait_quietly(running: Pass) -> None:
    """Wait for the end of a pass; an interrupt stops it."""
    try:
        while not running.wait(_POLL_S):
            pass
    except BaseException:
        running.cancel()
        raise


def warn_of(problems: list[Problem]) -> None:
    """Issue a `TfrctraceWarning` for each problem; notes are not worth one."""
    for problem in problems:
        if problem["severity"] != "note":
            warnings.warn(TfrctraceWarning(problem), stacklevel=2)


class Trace:
    """One or more captures, and everything that can be asked of them.

    Frames are Polars, with the columns of `tfrctrace.parsers.schema`; `.to_pandas()` is Polars' own. What was
    collected is kept, so asking twice reads once.
    """

    def __init__(
        self,
        inputs: Inputs,
        settings: Settings,
        *,
        bin_ns: int | None = None,
        watch: Callable[[Pass], None] = wait_quietly,
        on_problems: Callable[[list[Problem]], None] = warn_of,
    ) -> None:
        """Take the inputs; use `tfrctrace.open` instead, unless you want to `watch` the reading yourself.

        `watch` is given a running pass and returns at its end; `on_problems` is told once what was wrong.
        """
        if not inputs.names:
            raise InputError(inputs.problems)
        self._inputs = inputs
        self._settings = settings
        self._bin_ns = bin_ns
        self._watch = watch
        self._on_problems = on_problems
        self._readings: list[tuple[frozenset[TableName], Reading]] = []
        self._bins: dict[int, pl.DataFrame] = {}
        self._results: Results | None = None
        self._gathered: Gathered | None = None
        self._was_streamed = False
        self._was_told = False
        self._names()  # numbers of anonymous inputs are in their order

    def __repr__(self) -> str:
        names = self._names()
        what = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        if not self._readings:
            return f"<Trace of {what}, not read yet>"
        reading = self._readings[0][1]
        packets = sum(source["packets"] for source in reading.sources)
        return f"<Trace of {what}: {reading.flow_count} flows, {packets} packets>"

    @property
    def flows(self) -> pl.DataFrame:
        """One row for each flow and direction."""
        return self.table("flows").frame()

    @property
    def tcp(self) -> pl.DataFrame:
        """One row for each TCP connection of a capture and direction: what `tcptrace -l` counts beside."""
        return self.table("tcp").frame()

    @property
    def bins(self) -> pl.DataFrame:
        """Counts in bins of time; their width is `bin_width` of `open`, else one that fits the length."""
        return self.table("bins").frame()

    @property
    def rtt(self) -> pl.DataFrame:
        """One row for each RTT sample, in ns."""
        return self.table("rtt").frame()

    @property
    def losses(self) -> pl.DataFrame:
        """One row for each retransmitted or out-of-order packet."""
        return self.table("losses").frame()

    @property
    def rounds(self) -> pl.DataFrame:
        """One row for each round of data in flight: flight, window, what limited it."""
        return self.table("rounds").frame()

    @property
    def feedback(self) -> pl.DataFrame:
        """One row for each report of a TFRC receiver: what it said, and what the sender made of it."""
        return self.table("feedback").frame()

    @property
    def loss_events(self) -> pl.DataFrame:
        """One row for each loss event of TFRC."""
        return self.table("loss_events").frame()

    @property
    def loss_intervals(self) -> pl.DataFrame:
        """One row for each loss interval (packets) that counts in a report of TFRC."""
        return self.table("loss_intervals").frame()

    @property
    def findings(self) -> pl.DataFrame:
        """One row for each thing that is wrong with a packet of TFRC or with what an end does."""
        return self.table("findings").frame()

    @property
    def rtp_sources(self) -> pl.DataFrame:
        """One row for each source of RTP in each direction: losses, jitter, and what receivers report."""
        return self.table("rtp_sources").frame()

    @property
    def links(self) -> pl.DataFrame:
        """One row for each pair of 802.11 stations that sent frames to one another, and each way."""
        return self.table("links").frame()

    @property
    def link_samples(self) -> pl.DataFrame:
        """One row for each 802.11 frame: rate, signal, retry."""
        return self.table("link_samples").frame()

    @property
    def variables(self) -> pl.DataFrame:
        """What senders wrote down themselves, such as cwnd: one row for each sample, with its flow."""
        from tfrctrace.parsers.variables import with_flows

        reading = self.read("flows", "variables")
        return with_flows(reading.table("variables").frame(), reading.table("flows").frame())

    def variable_batches(self) -> Iterator[pa.RecordBatch]:
        """Return `variables` as Arrow record batches."""
        return iter(self.variables.to_arrow().to_batches())

    @property
    def transits(self) -> pl.DataFrame:
        """One row for each packet between two captures: when it passed each, its delay and fate."""
        return self.table("transits").frame()

    @property
    def clock(self) -> Clock | None:
        """How the clocks of two captures differ, with bounds; None without `pair`."""
        return self._any_reading().clock

    @property
    def sources(self) -> list[SourceSummary]:
        """What each input held: format, link types, counts, times in ns."""
        return self._any_reading().sources

    @property
    def zero_ns(self) -> int:
        """What 0 s of a scenario is: the start of a simulation, else the first packet of the trace."""
        starts = [source["start_ns"] for source in self.sources if source["start_ns"] is not None]
        return min((start_ns for start_ns in starts if start_ns > YEAR_NS), default=0)

    @property
    def warnings(self) -> list[Problem]:
        """What was wrong with the inputs, as facts; `tfrctrace.errors.describe` makes words of them."""
        problems = self._inputs.problems + self._any_reading().problems
        anonymizer = self._settings.anonymizer
        if anonymizer is None:
            return problems
        from tfrctrace.parsers.anonymity import anonymised_note

        return [*map(anonymizer.problem, problems), anonymised_note()]

    def throughput(self, width: str) -> pl.DataFrame:
        """Return throughput and goodput (bit/s) of each flow and direction in bins of `width`, as `"500ms"`.

        Between the first and the last packet of a direction a bin without packets is a row with 0.
        """
        from tfrctrace.durations import parse_duration_ns
        from tfrctrace.metrics.throughput import throughput_series

        return throughput_series(self._bins_of_width(parse_duration_ns(width)))

    def retransmission_timeout(self, *, method: str = "ack", min_rto_ms: float = 1000) -> pl.DataFrame:
        """Return SRTT, RTTVAR and RTO (RFC 6298, ms) after each RTT sample of each flow and direction.

        `method` is `ack` or `timestamp`. RFC 6298 has a smallest RTO of a second, Linux one of 200 ms.
        """
        from tfrctrace.metrics.rto import rto_series

        return rto_series(self.rtt, method=method, min_rto_ms=min_rto_ms)

    def metrics(
        self,
        *names: str,
        window: str = "1s",
        warmup: str | None = None,
        basis: Basis = "goodput",
        labels: Iterable[str] = (),
        only_labelled: bool = False,
        least_packets: int = LEAST_PACKETS,
        capacity: str | None = None,
        weight: Mapping[str, float] | None = None,
        step: str | None = None,
    ) -> pl.DataFrame:
        """Return fairness, burstiness, smoothness, delivery and more of the flows, one row for each metric.

        `names` chooses some, else all of `tfrctrace.metrics.catalogue` are told. Rates are taken in windows
        of `window`, without the first `warmup` of each flow, and only flows that overlap are compared.
        `labels` are rules such as `"reno=port 5201"`; flows without go by their transport, or are left out
        with `only_labelled`. `basis` says what a rate counts: `goodput` payload that was seen first,
        `throughput` frames, `received` what arrived, in a trace that shows both ends.
        Some metrics are told only with what they need: the link's `capacity`, as `"10M"`, the `weight` of
        labels, as `{"video": 2}`, and the time of a `step` of the path, as `"20s"`.
        """
        return self.measure(
            *names,
            window=window,
            warmup=warmup,
            basis=basis,
            labels=labels,
            only_labelled=only_labelled,
            least_packets=least_packets,
            capacity=capacity,
            weight=weight,
            step=step,
        ).frame()

    def measure(
        self,
        *names: str,
        window: str = "1s",
        warmup: str | None = None,
        basis: Basis = "goodput",
        labels: Iterable[str] = (),
        only_labelled: bool = False,
        least_packets: int = LEAST_PACKETS,
        capacity: str | None = None,
        weight: Mapping[str, float] | None = None,
        step: str | None = None,
    ) -> Measured:
        """Return what `metrics` does, with the competing sets and how many flows were left out."""
        from tfrctrace.bitrates import parse_capacity_bps
        from tfrctrace.durations import parse_duration_ns
        from tfrctrace.labels import check_weights, parse_rule, with_labels
        from tfrctrace.measuring import base_width_ns, check_names, doubts, measure
        from tfrctrace.metrics.model import Given

        check_names(names, capacity=capacity, weight=weight, step=step)
        check_weights(weight or {})
        given = Given(
            capacity_bps=None if capacity is None else parse_capacity_bps(capacity),
            weights=weight or {},
            step_ns=None if step is None else parse_duration_ns(step),
        )
        anonymizer = self._settings.anonymizer
        hosts = anonymizer.host if anonymizer else None
        rules = [parse_rule(text, hosts) for text in labels]
        window_ns = parse_duration_ns(window)
        warmup_ns = 0 if warmup is None else parse_duration_ns(warmup)
        base_ns = base_width_ns(window_ns)
        if self._bin_ns == base_ns:
            self.read("flows", "bins")  # both from one pass
        flows, problems = with_labels(self.flows, rules)
        self._on_problems(problems)
        measured = measure(
            flows,
            self.counted(basis, base_ns),
            window_ns=window_ns,
            warmup_ns=warmup_ns,
            basis=basis,
            least_packets=least_packets,
            only_labelled=only_labelled,
            names=names,
            given=given,
        )
        self._on_problems(list(doubts(measured, given)))
        return measured

    def counted(self, basis: Basis, width_ns: int) -> pl.DataFrame:
        """Return the bins of `width_ns` whose bytes are the rate that `basis` speaks of."""
        return self._arrivals(width_ns) if basis == "received" else self._bins_of_width(width_ns)

    def replay(
        self,
        *algorithms: str,
        profile: Profile = "rfc5348",
        tfrc: Mapping[str, float] | None = None,
        settings: Mapping[str, float | str] | None = None,
        rtt: str | None = None,
        segment_bytes: float | None = None,
        rtt_scales: Iterable[float] = (1.0,),
        flows: Iterable[int] | None = None,
        network: Scenario | None = None,
        simulate: bool = False,
        least_packets: int = LEAST_PACKETS,
    ) -> pl.DataFrame:
        """Return what rate algorithms would have allowed each flow, one row for each of their steps.

        `algorithms` are names such as `tfrc` (without any), `mtfrc`, `tfrc-veno`, or `mymodule:MyControl`;
        `profile` is whose TFRC it is, and `tfrc` has its parameters that are not the defaults, as
        `{"q": 0.8}`; `settings` has those of one algorithm, as `{"vegas.alpha": 1}`. `rtt` such as `"50ms"` is the round-trip time of flows that do not tell theirs,
        `segment_bytes` the segment size of all. `rtt_scales` repeats everything with other round-trip times.
        `network` is who shares the medium, which `mtfrc` needs (see `tfrctrace.replay.network`). `simulate`
        makes reports also where the trace shows some; flows with fewer data packets than `least_packets` are
        left out.
        docs/replay.md tells what this can and cannot say.
        """
        return self.replays(
            *algorithms,
            profile=profile,
            tfrc=tfrc,
            settings=settings,
            rtt=rtt,
            segment_bytes=segment_bytes,
            rtt_scales=rtt_scales,
            flows=flows,
            network=network,
            simulate=simulate,
            least_packets=least_packets,
        ).frame

    def replays(
        self,
        *algorithms: str,
        profile: Profile = "rfc5348",
        tfrc: Mapping[str, float] | None = None,
        settings: Mapping[str, float | str] | None = None,
        rtt: str | None = None,
        segment_bytes: float | None = None,
        rtt_scales: Iterable[float] = (1.0,),
        flows: Iterable[int] | None = None,
        network: Scenario | None = None,
        simulate: bool = False,
        least_packets: int = LEAST_PACKETS,
    ) -> Replayed:
        """Return what `replay` does, with the recordings, the flows that cannot be replayed, and why."""
        from tfrctrace.durations import parse_duration_ns
        from tfrctrace.replay.gathering import Choice, Gathered
        from tfrctrace.replay.replayed import mac_bounds, replay, wanted

        # what the trace's own agents are is where a replay of them begins
        parameters = {**dict(self._settings.tfrc.agents), **(tfrc or {})}
        chosen = wanted(algorithms or ("tfrc",), profile, parameters.items(), tuple(rtt_scales), settings)
        choice = Choice(
            rtt_ms=None if rtt is None else parse_duration_ns(rtt) / NS_PER_MS,
            segment_bytes=segment_bytes,
            simulate=simulate,
            least_packets=least_packets,
            flows=None if flows is None else frozenset(flows),
        )
        bounds = mac_bounds(chosen, network, self.zero_ns if network else 0)
        gathered = self._gathered = self._gathered or Gathered(self)
        return replay(gathered, chosen, choice, bounds)

    def closed_loop(
        self,
        *algorithms: str,
        profile: Profile = "rfc5348",
        tfrc: Mapping[str, float] | None = None,
        settings: Mapping[str, float | str] | None = None,
        segment_bytes: float | None = None,
        flows: Iterable[int] | None = None,
        least_packets: int = LEAST_PACKETS,
        bottleneck: Iterable[str] = (),
        together: bool = False,
    ) -> pl.DataFrame:
        """Return what algorithms would send through the bottleneck of each flow, one row for each round.

        An algorithm takes the flow's place in a fluid model of its path, made of what the trace shows of it,
        or of what `bottleneck` says, as `("capacity=3M", "base_rtt=40ms", "buffer=20000", "loss=0.01")`. What
        the others sent does not react. With `together` all algorithms share the bottleneck. The rest is as
        in `replay`; docs/models.md tells what a model can and cannot say.
        """
        return self.closed_loops(
            *algorithms,
            profile=profile,
            tfrc=tfrc,
            settings=settings,
            segment_bytes=segment_bytes,
            flows=flows,
            least_packets=least_packets,
            bottleneck=bottleneck,
            together=together,
        ).frame

    def closed_loops(
        self,
        *algorithms: str,
        profile: Profile = "rfc5348",
        tfrc: Mapping[str, float] | None = None,
        settings: Mapping[str, float | str] | None = None,
        segment_bytes: float | None = None,
        flows: Iterable[int] | None = None,
        least_packets: int = LEAST_PACKETS,
        bottleneck: Iterable[str] = (),
        together: bool = False,
    ) -> ClosedLoops:
        """Return what `closed_loop` does, with the bottlenecks, and the flows that do not show theirs."""
        from tfrctrace.replay.closed.given import parse_given
        from tfrctrace.replay.closed.run import closed_loops
        from tfrctrace.replay.gathering import Choice, Gathered
        from tfrctrace.replay.replayed import wanted

        given = parse_given(bottleneck)
        parameters = {**dict(self._settings.tfrc.agents), **(tfrc or {})}
        chosen = wanted(algorithms or ("newreno",), profile, parameters.items(), settings=settings)
        choice = Choice(
            segment_bytes=segment_bytes,
            least_packets=least_packets,
            flows=None if flows is None else frozenset(flows),
        )
        self.read("flows", "feedback", "rtt", "losses", "rounds", "loss_events", "bins")
        gathered = self._gathered = self._gathered or Gathered(self)
        recordings = gathered.recordings(choice, chosen.receivers[:1])
        return closed_loops(self, recordings, chosen, given, together=together)

    def packets(self) -> Iterator[pl.DataFrame]:
        """Give all packets, in frames of bounded size; `polars.concat(trace.packets())` makes one of them."""
        import polars as pl

        batches = self.packet_batches()
        for batch in batches:
            yield pl.DataFrame(batch)
        if batches.is_empty_handed:
            raise InputError(batches.problems)
        self._tell(batches.problems)

    def packet_batches(self) -> PacketBatches:
        """Return all packets as Arrow record batches, to be iterated over once, without a data frame."""
        from tfrctrace.parsers.reading import PacketBatches

        if self._settings.pair is not None:
            raise UsageError(
                "the packets of a pair are in `transits`, matched", hint="leave `pair` out for those of each"
            )
        self._refuse_second_reading("the table of packets")
        self._was_streamed = True
        return PacketBatches(self._inputs.names, self._settings)

    def report(self, path: StrPath, *, title: str | None = None) -> Path:
        """Write a report, one HTML file that needs nothing else, and return its path."""
        from pathlib import Path

        from tfrctrace.reports.output import open_output

        page = self.report_html(title=title)
        with open_output(os.fspath(path)) as file:
            file.write(page.encode(errors="backslashreplace"))
        return Path(path)

    def report_html(self, *, title: str | None = None) -> str:
        """Return the report as text."""
        from tfrctrace.reports.html import render
        from tfrctrace.reports.model import build_report

        return render(build_report(self.results(), title=title or self.name))

    def results(self) -> Results:
        """Return all that a report tells: flows, bins, samples in few, metrics, facts about the inputs."""
        from tfrctrace.gathering import gather

        if self._results is None:
            self._results = gather(self)
        return self._results

    def plot(
        self,
        kind: PlotKind,
        path: StrPath,
        *,
        flow: int | None = None,
        style: PaperStyle = "ieee",
        width: Width = "single",
    ) -> list[Figure]:
        """Write the first figure of `kind` into an SVG, PDF or PNG file; return all of that kind.

        `kind` is one of `tfrctrace.reports.single.KINDS`. `flow` draws one flow alone. `style` and `width`
        (columns) fit it into a paper. Raises `UsageError` if the trace has nothing of that kind.
        """
        from tfrctrace.gathering import gather
        from tfrctrace.reports.journal import figure_file, image_form
        from tfrctrace.reports.model import build_report
        from tfrctrace.reports.output import open_output
        from tfrctrace.reports.single import OF_SETS, figures_of

        form = image_form(os.fspath(path))
        if flow is not None and kind in OF_SETS:
            raise UsageError(f"a figure of kind `{kind}` is of all flows", hint="leave the flow out")
        results = self.results() if flow is None else gather(self, flow)
        if flow is not None and results.flows.is_empty():
            raise UsageError(f"the trace has no flow {flow}", hint="`tfrctrace flows` numbers them")
        found = figures_of(build_report(results, title=self.name), kind)
        content = figure_file(found[0], form, style=style, width=width)
        with open_output(os.fspath(path)) as file:
            file.write(content)
        return found

    def save_results(self, folder: StrPath, *, title: str | None = None) -> Path:
        """Write the results into a directory (JSON and Parquet), and return its path.

        `tfrctrace report --from` makes the report of them without the trace.
        """
        from pathlib import Path

        from tfrctrace import __version__
        from tfrctrace.reports.saved import save

        save(self.results(), os.fspath(folder), title=title or self.name, version=__version__)
        return Path(folder)

    @property
    def is_joined(self) -> bool:
        """Whether all inputs are one trace, one after the other."""
        return self._settings.join

    @property
    def is_read_once(self) -> bool:
        """Whether the trace comes through a pipe, so that its one pass has to collect everything."""
        return self._inputs.is_standard_input

    @property
    def name(self) -> str:
        """What the trace is called in a title: the file's name, or how many files there are."""
        names = self._names()
        if self._inputs.is_standard_input:
            return "standard input"
        return os.path.basename(names[0]) if len(names) == 1 else f"{len(names)} captures"

    def _names(self) -> list[str]:
        """Return the names of the inputs as they may be told."""
        anonymizer = self._settings.anonymizer
        return list(map(anonymizer.source, self._inputs.names)) if anonymizer else self._inputs.names

    def table(self, name: TableName) -> StackedTable:
        """Return a table as the core made it: rows or Arrow batches, without a data frame."""
        return self._read_one(name).table(name)

    def read(self, *tables: TableName) -> Reading:
        """Return a reading that holds `tables`, from one pass over the inputs if there was none yet.

        Properties do this by themselves; call it first if several tables are wanted, and only those.
        """
        wanted = frozenset(tables)
        if "transits" in wanted and self._settings.pair is None:
            raise UsageError(
                "packets in transit are between two captures of the same packets",
                hint="name two captures, and say so with `--pair`",
            )
        for collected, reading in self._readings:
            if wanted <= collected:
                return reading
        self._refuse_second_reading(" and ".join(sorted(wanted)))
        reading = self._pass(wanted, self._bin_ns)
        widths_ns = reading.bin_widths_ns
        if len(widths_ns) > 1:
            # each trace was given the width that fits its length; one table has one width
            reading = self._pass(wanted, max(widths_ns))
        self._readings.append((wanted, reading))
        return reading

    def _any_reading(self) -> Reading:
        return self._readings[0][1] if self._readings else self._read_one("flows")

    def _read_one(self, name: TableName) -> Reading:
        """Return a reading with the table `name`; of standard input, with all that there will ever be."""
        if self._inputs.is_standard_input and not self._readings:
            return self.read(*_EVERYTHING)
        return self.read(name)

    def _bins_of_width(self, width_ns: int) -> pl.DataFrame:
        """Return bins of `width_ns`: counted anew, or for standard input made from those there are."""
        if self._inputs.is_standard_input:
            return self._joined_bins(width_ns)
        if width_ns == self._bin_ns:
            return self.bins
        if width_ns not in self._bins:
            self._bins[width_ns] = self._pass(frozenset({"bins"}), width_ns).table("bins").frame()
        return self._bins[width_ns]

    def _arrivals(self, width_ns: int) -> pl.DataFrame:
        """Return bins of what reached its destination, which the table of packets tells."""
        from tfrctrace.metrics.arrivals import arrival_bins

        if self._settings.join:
            raise UsageError("what was received is taken from packets, which `join` does not number through")
        arrivals = arrival_bins(self.packets(), width_ns, self._settings.layer)
        if arrivals.is_empty():
            raise UsageError(
                "no packet of the trace is shown at its destination, so what was received is not known",
                hint="the basis `goodput` counts payload that was seen first",
            )
        return arrivals

    def _joined_bins(self, width_ns: int) -> pl.DataFrame:
        from tfrctrace.metrics.bins import coarser_bins

        bins = self.bins
        if len(bins) and width_ns % bins["width_ns"][0]:
            have_ms, wanted_ms = bins["width_ns"][0] / NS_PER_MS, width_ns / NS_PER_MS
            raise UsageError(
                f"standard input was counted in bins of {have_ms:g} ms, not a divisor of {wanted_ms:g} ms",
                hint="give `bin_width` to `tfrctrace.open`, or save the capture to a file",
            )
        return coarser_bins(bins, width_ns)

    def _refuse_second_reading(self, wanted: str) -> None:
        if self._inputs.is_standard_input and (self._readings or self._was_streamed):
            raise ReadOnceError(wanted)

    def _pass(self, collect: frozenset[TableName], bin_ns: int | None) -> Reading:
        """Read all inputs once; the first time, tell what was wrong with them."""
        from tfrctrace.parsers.reading import Pass

        running = Pass(self._inputs.names, self._settings, collect, bin_ns=bin_ns)
        self._watch(running)
        reading = running.result()
        if reading.is_empty_handed:
            raise InputError(self._inputs.problems + reading.problems)
        self._tell(reading.problems)
        return reading

    def _tell(self, problems: list[Problem]) -> None:
        if not self._was_told:
            self._was_told = True
            self._on_problems(self._inputs.problems + problems)
