"""Gather the results that a report shows, within limits of time and memory.

One pass collects the tables that grow with the flows. Another one collects rounds, causes and samples, which
are reduced to what is drawn, and let go, and the bins of metrics. Packets need a pass of their own, which is
made only if it is short.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.base.memory import trim_heap
from tfrctrace.base.version import VERSION
from tfrctrace.metrics.flow.causes import CAUSE_COURSE
from tfrctrace.parsers.schema import polars_schema
from tfrctrace.report_data.shared_names import without_folders
from tfrctrace.reports.display_filters import inputs_with_frames
from tfrctrace.reports.elements import STYLES
from tfrctrace.reports.figures.loss_curves import MOST_POINTS
from tfrctrace.trace.measuring import base_width_ns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import polars as pl

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.link import LinkTables
    from tfrctrace.metrics.results.metrics import TraceMetrics
    from tfrctrace.parsers.reading import PassResult
    from tfrctrace.reports.results import Results
    from tfrctrace.trace.passes import TableName
    from tfrctrace.trace.tables import Tables

_TABLES: Final[tuple[TableName, ...]] = (
    "variables",
    "feedback",
    "loss_events",
    "findings",
    "rtp_sources",
    "rtp_intervals",
    "links",
)
"""Tables collected besides flows and bins; none of them has a row per packet."""

_OF_CAUSES: Final[tuple[TableName, ...]] = ("causes", "cause_sums", "bottlenecks")
_OF_ROUNDS: Final[tuple[TableName, ...]] = ("rounds", *_OF_CAUSES)
"""Tables with rows for each round of data: of many packets they are most of what is collected."""

_SAMPLES: Final[tuple[TableName, ...]] = ("rtt", "losses", "link_samples", "tcp")
"""Tables with rows for samples, or, of TCP, with a state of each connection that each packet changes."""

_WINDOW: Final = "1s"
"""Window of the metrics, the default of `tfrctrace metrics`."""

_BIN_NS: Final = base_width_ns(parse_duration_ns(_WINDOW))
"""Width of the bins that these windows are made of."""

_MOST_MEASURED_FLOWS: Final = 2_000
"""Most flows for which metrics are computed; each has a dozen."""

_MOST_PACKETS: Final = 3_000_000
"""Most packets of a trace that is read again for its samples, which takes seconds."""

_MOST_SAMPLED_FLOWS: Final = 20_000
"""Most flows of such a trace; the tables of a hundred thousand flows take a gigabyte."""

_MOST_LINK_BINS: Final = 240
"""Most bins of an 802.11 link; more would be narrower than the drawn line."""

_MOST_REPLAYED: Final = 4
"""Most flows that are replayed; each has two figures."""

_MOST_NAMED: Final = 20
"""Most flows whose congestion control is named: it needs all their rounds."""

_LEAST_REPORTS: Final = 2
"""Fewest receiver reports of a replayed flow."""

_LEAST_DATA_PACKETS: Final = 20
"""Fewest data packets of a direction with a time-sequence graph."""

_MOST_GRAPHED_PACKETS: Final = 250_000
"""Packets of flows that have such a graph beside the largest of each trace: 13 bytes each in a page."""


def gather_results(trace: Tables, flow: int | None = None, window_ns: int | None = None) -> Results:
    """Return the results of `trace` for a report, of all flows or of one.

    Reports are shared, so inputs have names without the folders of this machine.
    `window_ns` is the width of the windows in figures over time.
    """
    from tfrctrace.parsers.variables import with_flows
    from tfrctrace.reports.results import Results

    # an input that can be read only once must collect everything now
    kept: tuple[TableName, ...] = (*_TABLES, "hops") if trace.is_network else _TABLES
    reading = trace.read("flows", "bins", *kept, *((*_OF_ROUNDS, *_SAMPLES) if trace.is_read_once else ()))
    # its pass needs as much memory as the first one, so it comes before frames of all flows
    link = _link(trace, reading) if flow is None else None
    may_sample = _may_sample(trace, reading)
    flows = _rows_of_flow(reading.table("flows").small_frame(), flow)
    replayed = _replayable(trace, flows, reading)
    bin_ns = None if flow is not None or _are_many(flows) else _BIN_NS
    graphed = _graphed(trace, flows, reading)
    sampled = _sampled(trace, reading, _Chosen(flows, replayed, graphed), bin_ns, may_sample=may_sample)
    tables: dict[str, pl.DataFrame] = {
        name: _rows_of_flow(reading.table(name).small_frame(), flow) for name in kept
    }
    tables["variables"] = with_flows(tables["variables"], flows)
    tables["rounds"] = _drawn_rounds(flows, sampled)
    for name in _OF_CAUSES:
        columns = CAUSE_COURSE if name == "causes" else None
        tables[name] = _rows_of_flow(sampled.table(name).small_frame(columns), flow)
    senders = _senders(flows, tables["cause_sums"], sampled)
    tables["findings"] = tables["findings"].vstack(senders.findings)
    drawn = _drawn_samples(trace, flows, sampled) if may_sample else _DrawnSamples()
    sequence = _sequence(trace, graphed, sampled)
    if flow is not None:
        drawn = replace(drawn, link_bins=None)
    tables["replay"] = _replayed(trace, replayed, reading)
    if sampled is not reading:
        # metrics need the memory
        trace.forget(sampled)
    del sampled
    trim_heap()
    measured = _measured(trace, flows) if flow is None else None
    results = Results(
        flows=flows,
        bins=_rows_of_flow(_bins(trace, reading, window_ns), flow),
        sources=reading.sources,
        problems=[*trace.warnings, *(_unmeasured(flows) if measured is None and flow is None else ())],
        tables=tables,
        measured=measured,
        rtt_quantiles=drawn.rtt_quantiles,
        sequence=sequence,
        link_bins=drawn.link_bins,
        named_controls=senders.controls,
        predicted_windows=senders.predicted,
        loss_course=drawn.loss_course,
        first_losses=drawn.first_losses,
        link=link,
        joined=trace.is_joined,
        clock=reading.clock,
        made_with=_made_with(trace),
        window_ns=window_ns,
    )
    return without_folders(results)


def _made_with(trace: Tables) -> str:
    """Return version and command; a filter may name hosts that are anonymized."""
    settings = trace.settings
    filtered = ""
    if settings.filter is not None and settings.anonymizer is None:
        filtered = f" --filter '{settings.filter.expression}'".replace("`", "")
    options = (
        filtered,
        " --join" if settings.join else "",
        " --pair" if settings.pair else "",
        " --anonymize" if settings.anonymizer else "",
    )
    return f"tfrctrace {VERSION}: `tfrctrace report{''.join(options)}`"


def _link(trace: Tables, reading: PassResult) -> LinkTables | None:
    """Return the hosts of all flows over time."""
    import polars as pl

    from tfrctrace.report_data.gather_link import gather_link

    hosts = pl.Series("src", dtype=pl.String)
    for ends in reading.table("flows").frames(("src", "dst")):
        hosts = pl.concat([hosts, ends["src"], ends["dst"].alias("src")]).unique()
    return gather_link(trace, hosts, reading.sources)


def _bins(trace: Tables, reading: PassResult, window_ns: int | None) -> pl.DataFrame:
    """Return the bins of the pass, or bins of `window_ns` if a figure can show that many."""
    from tfrctrace.metrics.flow.bins import time_span_ns
    from tfrctrace.reports.figures.throughput_and_rtt import MOST_DETAILED_BINS

    bins = reading.table("bins").small_frame()
    if window_ns is None or bins.is_empty():
        return bins
    start_ns, end_ns = time_span_ns(bins)
    points = (end_ns - start_ns) // window_ns
    if points > MOST_DETAILED_BINS:
        raise UsageError(
            f"there would be {points} windows, but a figure shows at most {MOST_DETAILED_BINS}",
            hint="make them wider, or filter a shorter part of the trace",
        )
    return trace.counted("throughput", window_ns)


def _rows_of_flow(table: pl.DataFrame, flow: int | None) -> pl.DataFrame:
    """Return the rows of one flow; all rows if no flow is chosen or the table has no flows."""
    if flow is None or "flow" not in table.columns:
        return table
    return table.filter(table["flow"] == flow)


def _measured(trace: Tables, flows: pl.DataFrame) -> TraceMetrics | None:
    """Return the metrics of `trace`; None if they would take longer than everything else."""
    if _are_many(flows):
        return None
    try:
        return trace.measure(window=_WINDOW, columns=()).result()
    except UsageError:
        if trace.is_read_once:  # its bins have a width that fits its length, perhaps no window
            return None
        raise


def _are_many(flows: pl.DataFrame) -> bool:
    """Return whether metrics of these flows would take longer than everything else."""
    return flows["flow"].n_unique() > _MOST_MEASURED_FLOWS


def _replayable(trace: Tables, flows: pl.DataFrame, reading: PassResult) -> pl.Series:
    """Return the largest flows with reports; none if there are too many packets or no second pass."""
    import polars as pl

    chosen = (
        flows.filter(pl.col("feedback_packets") >= _LEAST_REPORTS)
        .sort("wire_bytes", "flow", descending=[True, False])
        .head(_MOST_REPLAYED)["flow"]
        .unique()
    )
    packets = sum(source["packets"] for source in reading.sources)
    is_readable = not trace.is_read_once and not trace.is_pair and packets <= _MOST_PACKETS
    return chosen if is_readable else chosen.clear()


def _replayed(trace: Tables, chosen: pl.Series, reading: PassResult) -> pl.DataFrame:
    """Return TFRC replayed on these flows, with the profile of RFC 5348, or ns-2's for its traces."""
    import polars as pl

    if chosen.is_empty():
        return pl.DataFrame(schema=polars_schema("replay"))
    from tfrctrace.replay.from_trace import FlowRecordings, RecordingOptions
    from tfrctrace.replay.open_loop import OpenLoop, select_algorithms

    is_of_ns2 = all(source["format"].startswith("ns2") for source in reading.sources)
    algorithms = select_algorithms(("tfrc",), "ns2" if is_of_ns2 else "rfc5348", trace.agents.items())
    options = RecordingOptions(flows=frozenset(chosen))
    return OpenLoop(FlowRecordings(trace), algorithms, options, bounds=[]).collected().frame


def _unmeasured(flows: pl.DataFrame) -> Iterator[Problem]:
    """Yield a note that metrics are missing, if there are flows to compare."""
    number = flows["flow"].n_unique()
    if number < 2:
        return
    why = (
        f"the trace has {number:,} flows, and for more than {_MOST_MEASURED_FLOWS:,} they would take longer "
        "than all the rest"
        if number > _MOST_MEASURED_FLOWS
        else f"the trace is read once, in bins that do not divide windows of {_WINDOW}"
    )
    yield input_problem(
        "metrics",
        "left_out",
        f"fairness and burstiness are not in this report: {why}",
        severity="note",
        hint="use a `--filter` for fewer flows, or a file instead of a pipe; "
        "`tfrctrace metrics` computes them for any number of flows",
    )


def _may_sample(trace: Tables, reading: PassResult) -> bool:
    """Return whether there are few enough packets and flows for every sample."""
    packets = sum(source["packets"] for source in reading.sources)
    return trace.is_read_once or (packets <= _MOST_PACKETS and reading.flow_count <= _MOST_SAMPLED_FLOWS)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """All flows, those that are replayed, and directions with a time-sequence graph."""

    flows: pl.DataFrame
    replayed: pl.Series
    graphed: Sequence[tuple[int, bool]]


def _sampled(
    trace: Tables, reading: PassResult, chosen: _Chosen, bin_ns: int | None, *, may_sample: bool
) -> PassResult:
    """Return a pass with rounds and causes, if there may be any, and samples, if they may be taken.

    If flows are replayed, it keeps what that needs; else it has time-sequence graphs, causes only of flows
    that a page shows, other rows, but losses, only of those that are drawn, and all bins of `bin_ns`. It is
    `reading` if nothing more can be read.
    """
    flows = chosen.flows
    has_rounds = not flows.filter(transport="tcp").is_empty()
    wanted = (*(_OF_ROUNDS if has_rounds else ()), *(_SAMPLES if may_sample else ()))
    if trace.is_read_once or not wanted:
        return reading
    if may_sample and not chosen.replayed.is_empty():
        from tfrctrace.replay.from_trace import TABLES

        return trace.read_spooled(*wanted, *TABLES)
    from tfrctrace.reports.conversations import largest_flows
    from tfrctrace.reports.report_content import MOST_FLOWS

    drawn = {
        *_with_most_data(flows)["flow"],
        *_with_most_rtts(flows)["flow"],
        *largest_flows(flows, _MOST_NAMED)["flow"],
    }
    explained = largest_flows(flows, MOST_FLOWS)["flow"]
    return trace.read_of_flows(drawn, explained, *wanted, graphed=chosen.graphed, bin_ns=bin_ns)


@dataclass(frozen=True, slots=True)
class _DrawnSamples:
    """What is drawn of samples; None where there are none, or too many."""

    rtt_quantiles: pl.DataFrame | None = None
    link_bins: pl.DataFrame | None = None
    loss_course: pl.DataFrame | None = None
    first_losses: pl.DataFrame | None = None


def _drawn_samples(trace: Tables, flows: pl.DataFrame, samples: PassResult) -> _DrawnSamples:
    """Reduce the samples of a pass to what is drawn."""
    from tfrctrace.metrics.flow.first_losses import first_losses
    from tfrctrace.metrics.flow.quantiles import sample_quantiles

    is_one = trace.is_joined or samples.clock is not None
    losses = samples.table("losses").frame()
    numbered = inputs_with_frames(samples.sources, is_one=is_one)
    return _DrawnSamples(
        rtt_quantiles=sample_quantiles(_drawn_rtts(flows, samples), "rtt_ns"),
        link_bins=_link_bins(trace, samples),
        loss_course=loss_course_of(flows, losses, is_one),
        first_losses=first_losses(_of_shown_flows(losses, flows, numbered)) if numbered else None,
    )


def _of_shown_flows(losses: pl.DataFrame, flows: pl.DataFrame, sources: Collection[str]) -> pl.DataFrame:
    """Return rows of the flows of these inputs that a page shows."""
    import polars as pl

    from tfrctrace.reports.conversations import largest_flows
    from tfrctrace.reports.report_content import MOST_FLOWS

    of_sources = flows.filter(pl.col("source").cast(pl.String).is_in(list(sources)))
    shown = of_sources.join(largest_flows(flows, MOST_FLOWS), on="flow", how="semi")["flow"]
    return losses.filter(losses["flow"].is_in(shown.implode()))


def _drawn_rounds(flows: pl.DataFrame, sampled: PassResult) -> pl.DataFrame:
    """Return the rounds of the direction with most data of each input: no others are drawn."""
    from tfrctrace.parsers.frames import joined_frame

    largest = _with_most_data(flows)
    frames = sampled.table("rounds").frames()
    first = next(frames)
    own = (
        frame.join(largest, on=["flow", "direction"], how="semi", maintain_order="left")
        for frame in chain([first], frames)
    )
    return joined_frame(own, first.clear())


class _Senders(NamedTuple):
    """What is known of the congestion controls of the largest flows."""

    controls: pl.DataFrame
    predicted: pl.DataFrame
    """Windows of the directions that are drawn."""
    findings: pl.DataFrame


def _senders(flows: pl.DataFrame, cause_sums: pl.DataFrame, sampled: PassResult) -> _Senders:
    """Return how the senders of the largest flows behave."""
    from tfrctrace.replay.conformance.tcp_findings import OF_LOSSES, OF_TCP, tcp_findings
    from tfrctrace.replay.naming.of_trace import (
        OF_ROUNDS,
        OF_STRETCHES,
        controls_frame,
        directions_of,
        named_directions,
    )
    from tfrctrace.replay.naming.predicted_windows import predicted_windows
    from tfrctrace.reports.conversations import largest_flows

    largest = largest_flows(flows, _MOST_NAMED)["flow"].implode()
    # a join with all flows would copy many of their columns
    sums, own = (table.filter(table["flow"].is_in(largest)) for table in (cause_sums, flows))
    directions = directions_of([(sums, own)], with_others=True)
    found = list(
        named_directions(
            sampled.table("rounds").frames(OF_ROUNDS),
            sampled.table("causes").frames(OF_STRETCHES),
            directions,
        )
    )
    losses, tcp = sampled.table("losses").frames(OF_LOSSES), sampled.table("tcp").frame(OF_TCP)
    drawn = set(_with_most_data(flows).select("flow", "direction").rows())
    return _Senders(
        controls_frame(directions, found),
        predicted_windows(one for one in found if one.key in drawn),
        tcp_findings(found, (one.filter(one["flow"].is_in(largest)) for one in losses), tcp=tcp, flows=own),
    )


def _with_most_data(flows: pl.DataFrame) -> pl.DataFrame:
    """Return of each input the direction with most data of those that have rounds."""
    import polars as pl

    return (
        flows.lazy()
        .filter(pl.col("rounds") > 0)
        .select("source", "flow", "direction", "unique_bytes")
        .sort("unique_bytes", "flow", "direction", descending=[True, False, False], nulls_last=True)
        .unique("source", keep="first")
        .collect()
    )


def _drawn_rtts(flows: pl.DataFrame, samples: PassResult) -> pl.DataFrame:
    """Return the RTT samples of the drawn directions."""
    most = _with_most_rtts(flows)
    return samples.table("rtt").frame().join(most, on=["flow", "direction"], how="semi")


def _with_most_rtts(flows: pl.DataFrame) -> pl.DataFrame:
    """Return of each input the directions with most RTT samples that are drawn."""
    import polars as pl

    return (
        flows.lazy()
        .filter(pl.col("rtt_samples") > 0)
        .select("source", "flow", "direction", "rtt_samples")
        .sort("rtt_samples", "flow", "direction", descending=[True, False, False])
        .group_by("source", maintain_order=True)
        .head(STYLES)
        .collect()
    )


def loss_course_of(flows: pl.DataFrame, losses: pl.DataFrame, is_one: bool) -> pl.DataFrame:
    """Return the cumulative losses of `flows` per source, or of all sources if they are one trace."""
    import polars as pl

    from tfrctrace.metrics.flow.cumulative_losses import cumulative_losses

    first = pl.col("flow").min()
    firsts = flows.select("flow", (first if is_one else first.over("source")).alias("first")).unique()
    return cumulative_losses(losses, firsts, STYLES, MOST_POINTS)


def _link_bins(trace: Tables, samples: PassResult) -> pl.DataFrame | None:
    """Return bins of the largest 802.11 links; None without links or with several time axes."""
    from tfrctrace.metrics.flow.wifi_links import link_bins

    frames = samples.table("link_samples").frame()
    if frames.is_empty() or (len(samples.sources) > 1 and not trace.is_joined):
        return None
    return link_bins(frames, STYLES, _MOST_LINK_BINS)


def _graphed(trace: Tables, flows: pl.DataFrame, reading: PassResult) -> list[tuple[int, bool]]:
    """Return the TCP directions with most data, and whether they are `fwd`: the largest of each trace anyway.

    Of the others there are those of flows that the page lists, as long as their packets have room.
    """
    import polars as pl

    from tfrctrace.reports.conversations import largest_flows
    from tfrctrace.reports.report_content import MOST_FLOWS

    if trace.is_read_once or reading.clock is not None or trace.is_network:
        return []
    listed, place = largest_flows(flows, MOST_FLOWS)["flow"], pl.int_range(pl.len())
    candidates = (
        flows.lazy()
        .filter(pl.col("transport") == "tcp", pl.col("data_packets") >= _LEAST_DATA_PACKETS)
        .sort("unique_bytes", "flow", descending=[True, False], nulls_last=True)
        .select(
            "flow",
            "direction",
            is_largest=place == 0 if trace.is_joined else place.over("source") == 0,
            is_listed=pl.col("flow").is_in(listed.implode()),
        )
        .filter(pl.col("is_largest") | pl.col("is_listed"))
        .join(flows.lazy().group_by("flow").agg(pl.col("packets").sum()), on="flow", maintain_order="left")
        .sort("is_largest", descending=True, maintain_order=True)
        .collect()
    )
    graphed, room = [], _MOST_GRAPHED_PACKETS
    for flow, direction, is_largest, _, packets in candidates.iter_rows():
        if is_largest or packets <= room:
            graphed.append((flow, direction == "fwd"))
            room -= 0 if is_largest else packets
    return graphed


def _sequence(trace: Tables, graphed: Sequence[tuple[int, bool]], sampled: PassResult) -> pl.DataFrame | None:
    """Return the tiles of the time-sequence graphs as text; None if packets are not read again."""
    import polars as pl

    if trace.is_read_once or trace.is_pair:
        return None
    tiles = sampled.sequence_tiles().frame()
    if graphed and tiles.is_empty():
        # a pass for replays has none
        reading = trace.read_of_flows((), (), graphed=graphed)
        trace.forget(reading)
        tiles = reading.sequence_tiles().frame()
    return tiles.with_columns(pl.col("tile").bin.encode("base64"))
