"""From a trace to its metrics: which flows count, in which direction, and which of them competed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.durations import duration_text
from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.base.nearest import proposal_or_all
from tfrctrace.metrics.assumptions import NO_ASSUMPTIONS
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.metrics.evaluation import DEMAND_COLUMNS
from tfrctrace.metrics.flow.whole_flow import COLUMNS as WHOLE_FLOW_COLUMNS
from tfrctrace.metrics.flow_metrics import FlowMetrics, each_metric, metric_frames, metric_schema
from tfrctrace.metrics.results.metrics import MeasuredSet, Metric, MetricsSummary, TraceMetrics
from tfrctrace.metrics.sets.synchronisation import OF_FLOWS as LOSS_COLUMNS_OF_FLOWS
from tfrctrace.metrics.thresholds import LEAST_PACKETS, SPARSE_SHARE
from tfrctrace.trace.time_zero import time_zero_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.assumptions import Assumptions
    from tfrctrace.metrics.flow_metrics import MetricRows
    from tfrctrace.metrics.results.metrics import Basis, SmallFlow
    from tfrctrace.metrics.sets.competing import CompetingSet, FlowLifetime
    from tfrctrace.trace.labels import LabelledFlows

BYTES_OF: Final = {"goodput": "unique_bytes", "throughput": "wire_bytes", "received": "received_bytes"}
"""The column of bins that counts."""

COLUMNS: Final = (
    *{
        *("direction", "source", "label", "transport", "data_packets", "vantage"),
        *DEMAND_COLUMNS,
        *LOSS_COLUMNS_OF_FLOWS,
        *(WHOLE_FLOW_COLUMNS - {"group"}),
    },
)
"""Columns of the table of flows that measure flows."""

FINEST_BASE_NS: Final = 100_000_000
"""The smallest timescale of burstiness; windows of other widths are cut to fit."""

UNUSED_WEIGHT: Final = "unused_weight"
"""Kind of the problem with a weight of a label that no flow has; `source` is the weight."""

LONG_WARMUP: Final = "long_warmup"
"""Kind of the problem with a warm-up that no flow outlasts; `source` is the warm-up."""

FULL: Final = 1.02
"""Utilisation above which a capacity is doubted; a packet more than fits may end in a full link's windows."""


@dataclass(frozen=True, slots=True)
class AskedFlows:
    """All flows, however short, with `only_labelled` those with a label."""

    _flows: LabelledFlows
    _every: pl.DataFrame
    """The row of each flow that carried more payload."""
    _least_packets: int

    def rows(self, *columns: str) -> pl.DataFrame:
        """Return both rows of each flow with some columns, its label and `group`.

        `is_data_direction` marks the row with more payload, `is_counted` a flow with `least_packets`, if
        given; `size` has the data packets of that row.
        """
        import polars as pl

        frame = self._flows.frame(("flow", "direction", "transport", *columns))
        sizes = self._every.select(
            "flow", "size", (pl.col("size") >= self._least_packets).alias("is_counted")
        )
        own = frame.select("flow").join(sizes, on="flow", how="left", maintain_order="left")
        return frame.with_columns(
            pl.coalesce("label", "transport").alias("group"),
            pl.int_range(pl.len(), dtype=pl.UInt32)
            .is_in(self._every["row"].implode())
            .alias("is_data_direction"),
            own["size"],
            own["is_counted"],
        )

    def largest(self, most: int, columns: Iterable[str]) -> tuple[pl.DataFrame, int]:
        """Return columns of the flows that count with most data packets, and how many more there are."""
        import polars as pl

        counted = self._every.filter(pl.col("size") >= self._least_packets)
        chosen = counted.filter(pl.col("size").rank("ordinal", descending=True) <= most)
        rows = self._flows.take(chosen["place"], ("transport", *columns))
        grouped = rows.with_columns(pl.coalesce("label", "transport").alias("group"))
        return grouped, counted.height - chosen.height


@dataclass(frozen=True, slots=True)
class MeasuredMetrics:
    """The metrics of a trace, and the flows they are about."""

    rows: list[MetricRows]
    """The metrics in order: of sets and groups each one, of flows those of all flows as columns."""
    sets: list[CompetingSet]
    small_flows: dict[int, list[SmallFlow]]
    """By the number of a set, its flows with a rate far below a share, sparse or not."""
    sets_left_out: int
    looked_at: pl.DataFrame
    """The row of each flow that was looked at, in the direction that counted, with `group` and `begin_ns`."""
    asked: AskedFlows
    flows_left_out: int
    """Flows with fewer data packets than needed, or of a trace without what counts as a rate."""
    least_packets: int
    """Fewest data packets of a flow that metrics count."""
    basis: Basis
    window_s: float
    warmup_s: float
    sparse_share: float

    @property
    def metrics(self) -> list[Metric]:
        """The metrics as objects; for thousands of flows `frame` takes less memory."""
        return list(each_metric(self.rows))

    def named(self, name: str) -> Iterator[Metric]:
        """Give each metric with this name."""
        return each_metric(_named(self.rows, [name]))

    def frame(self) -> pl.DataFrame:
        """Return a row for each metric."""
        import polars as pl

        return pl.concat([pl.DataFrame(schema=metric_schema()), *metric_frames(self.rows)])

    def largest(self, most: int) -> set[int]:
        """Return the flows with most data packets."""
        import polars as pl

        size = pl.coalesce("data_packets", "packets")
        return set(self.looked_at.select("flow", size.alias("size")).top_k(most, by="size")["flow"])

    def summary(self) -> MetricsSummary:
        """Return what was measured, and which flows competed, without the metrics."""
        return MetricsSummary(**self._facts())

    def result(self) -> TraceMetrics:
        """Return all of it."""
        return TraceMetrics(**self._facts(), metrics=tuple(self.metrics))

    def _facts(self) -> dict[str, Any]:
        return {
            "basis": self.basis,
            "window_s": self.window_s,
            "warmup_s": self.warmup_s,
            "sparse_share": self.sparse_share,
            "flows": self.looked_at.height,
            "flows_left_out": self.flows_left_out,
            "competing_sets": tuple(map(self._measured_set, self.sets)),
            "sets_left_out": self.sets_left_out,
        }

    def _measured_set(self, found: CompetingSet) -> MeasuredSet:
        return MeasuredSet(
            number=found.number,
            source=found.source,
            flows=found.flows,
            small_flows=tuple(self.small_flows[found.number]),
            start_ns=found.windows.start_ns,
            end_ns=found.windows.end_ns,
            windows=found.windows.count,
        )


def base_width_ns(window_ns: int) -> int:
    """Return the width in ns of the bins that windows of `window_ns` and the timescales are made of."""
    return math.gcd(window_ns, FINEST_BASE_NS)


def check_sparse_share(share: float) -> None:
    """Raise `UsageError` if `share` is not from 0 to below 1."""
    if not 0 <= share < 1:
        raise UsageError(f"`{share:g}` is no share of sparse flows", hint="it is from 0 (off) to below 1")


def check_names(names: Iterable[str], **needed: object) -> None:
    """Raise `UsageError` for a metric that there is not, or that needs what is empty in `needed`."""
    for name in names:
        if name not in BY_NAME:
            raise UsageError(f"there is no metric `{name}`", hint=proposal_or_all(name, BY_NAME))
        need = BY_NAME[name].needs
        if need is not None and not needed.get(need):
            raise UsageError(f"the metric `{name}` needs a `{need}`, which the trace does not have")


def measure(
    labelled: LabelledFlows,
    bins: Callable[[Iterable[str]], Iterator[pl.DataFrame]],
    columns: Iterable[str] | None = (),
    *,
    window_ns: int,
    warmup_ns: int = 0,
    basis: Basis = "goodput",
    least_packets: int | None = None,
    most_flows: int | None = None,
    only_labelled: bool = False,
    names: Sequence[str] = (),
    sparse_share: float = SPARSE_SHARE,
    no_data_shares: Callable[[], Mapping[tuple[int, str], float]] = dict,
    given: Assumptions = NO_ASSUMPTIONS,
) -> MeasuredMetrics:
    """Return the metrics of flows, in the direction of each that carried more payload.

    `names` chooses some of the metrics, `only_labelled` those flows that have a label. Metrics that need more
    than the trace are computed if that is `given`. They leave out flows with fewer data packets than
    `least_packets`, or than `LEAST_PACKETS` if that is None. Of more than `most_flows` those with
    most data packets count. Flows that asked for less than `sparse_share` of a share are sparse;
    `no_data_shares` tells that of TCP flows (`tfrctrace.metrics.flow.causes`).
    `bins` gives columns of bins, which are `base_width_ns` wide, in frames of bounded size: those of
    `tfrctrace.parsers.schema`, or of `tfrctrace.metrics.flow.arrivals` if what was received counts. Rows of
    the flows have these `columns` besides those that are needed, or all if that is None.
    """
    import polars as pl

    from tfrctrace.metrics.evaluation import bin_columns, evaluate
    from tfrctrace.metrics.sets.competing import competing_sets

    base_ns = base_width_ns(window_ns)
    column = BYTES_OF[basis]
    flows = labelled.flows
    every = _data_directions(flows, only_labelled=only_labelled)
    least = LEAST_PACKETS if least_packets is None else least_packets
    chosen = every.filter(pl.col("size") >= least)
    own_bins, origins_ns = _bins_of_directions(bins(bin_columns(column, given)), flows, chosen)
    # a trace without what counts as a rate has no origin
    chosen = chosen.filter(pl.col("source").cast(pl.String).is_in(list(origins_ns)))
    of_enough = chosen.height
    if most_flows is not None and of_enough > most_flows:
        chosen = chosen.filter(pl.col("size").rank("ordinal", descending=True) <= most_flows)
        own_bins = own_bins.filter(pl.col("flow").is_in(chosen["flow"].implode()))
    looked_at = _looked_at(labelled, chosen["place"], None if columns is None else (*COLUMNS, *columns))
    sets, sets_left_out = competing_sets(
        _flow_lifetimes(looked_at), origins_ns, base_ns, window_ns, warmup_ns=warmup_ns
    )
    found = evaluate(
        looked_at,
        own_bins,
        sets,
        column=column,
        window_ns=window_ns,
        warmup_ns=warmup_ns,
        sparse_share=sparse_share,
        no_data_shares=no_data_shares,
        assumptions=given,
    )
    return MeasuredMetrics(
        rows=_named(found.rows, names),
        sets=sets,
        small_flows=found.small_flows,
        sets_left_out=sets_left_out,
        looked_at=looked_at,
        asked=AskedFlows(labelled, every, least_packets or 0),
        flows_left_out=every.height - of_enough,
        least_packets=least,
        basis=basis,
        window_s=window_ns / 1e9,
        warmup_s=warmup_ns / 1e9,
        sparse_share=sparse_share,
    )


def measurement_warnings(measured: MeasuredMetrics, given: Assumptions) -> Iterator[Problem]:
    """Give a warning for a warm-up, and for each of the `given`, that does not fit what was measured."""
    flows = measured.looked_at
    lasted_ns = (flows["end_ns"] - flows["start_ns"]).max()
    warmup_ns = round(measured.warmup_s * 1e9)
    if isinstance(lasted_ns, int) and 0 < warmup_ns >= lasted_ns:
        message = f"no flow lasts longer than {lasted_ns / 1e9:.3f} s, so none is compared"
        yield input_problem(f"warmup={duration_text(warmup_ns)}", LONG_WARMUP, message, severity="warning")
    groups = set(flows["group"].to_list())
    for label, weight in given.weights.items():
        if label not in groups:
            yield input_problem(f"{label}={weight:g}", UNUSED_WEIGHT, "fits no flow", severity="warning")
    for metric in measured.rows:
        if not isinstance(metric, Metric):
            continue
        if metric.name == "link_utilisation" and (metric.value or 0) > FULL:
            source = measured.sets[(metric.competing_set or 1) - 1].source
            message = f"set {metric.competing_set} took {metric.value:.4g} times what the capacity allows"
            hint = "the capacity is wrong, or the flows do not share one link"
            yield input_problem(source, "capacity", message, severity="warning", hint=hint)


def _named(rows: Sequence[MetricRows], names: Collection[str]) -> list[MetricRows]:
    """Return those metrics that have one of `names`, if there are any."""
    if not names:
        return list(rows)
    own = (
        row.named(names) if isinstance(row, FlowMetrics) else row
        for row in rows
        if isinstance(row, FlowMetrics) or row.name in names
    )
    return [one for one in own if isinstance(one, Metric) or one.columns]


def _data_directions(flows: pl.DataFrame, *, only_labelled: bool) -> pl.DataFrame:
    """Return of each flow the direction that carried more payload (or more bytes): its data packets."""
    import polars as pl

    return (
        flows.select(
            "flow",
            "source",
            "direction",
            "row",
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("place"),
            pl.coalesce("data_packets", "packets").alias("size"),
            pl.col("payload_bytes").fill_null(0),
            "wire_bytes",
            ((pl.col("packets") > 0) & (pl.col("label").is_not_null() | (not only_labelled))).alias(
                "is_asked"
            ),
        )
        .filter("is_asked")
        .sort("flow", "payload_bytes", "wire_bytes", descending=[False, True, True], maintain_order=True)
        .unique("flow", keep="first", maintain_order=True)
    )


def _looked_at(labelled: LabelledFlows, places: pl.Series, columns: Iterable[str] | None) -> pl.DataFrame:
    """Return the rows at some places of the flows, with what metrics need besides `columns`."""
    import polars as pl

    flows = labelled.flows
    begin_ns = flows.select(time_zero_ns().alias("begin_ns"))["begin_ns"]
    return labelled.take(places, columns).with_columns(
        begin_ns[places], pl.coalesce("label", "transport").alias("group")
    )


def _flow_lifetimes(flows: pl.DataFrame) -> list[FlowLifetime]:
    from tfrctrace.metrics.sets.competing import FlowLifetime

    return [FlowLifetime(*row) for row in flows.select("flow", "source", "start_ns", "end_ns").iter_rows()]


def _bins_of_directions(
    frames: Iterable[pl.DataFrame], flows: pl.DataFrame, chosen: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the bins of the `chosen` flows and directions, and of each source when a bin of it starts.

    Only bins that count are kept of each of the `frames`.
    """
    import numpy as np
    import polars as pl

    from tfrctrace.metrics.windows import first_of_each
    from tfrctrace.parsers.frames import joined_frame

    # by the number of a flow: which direction counts (0 is none), and the number of its source
    known = flows["flow"].to_numpy()
    beyond = int(known.max(initial=0)) + 1
    ways, sources = np.zeros(beyond + 1, dtype=np.uint8), np.full(beyond + 1, -1)
    ways[chosen["flow"].to_numpy()] = _ways(chosen["direction"])
    sources[known] = flows["source"].to_physical().to_numpy()
    firsts_ns = np.full(int(sources.max(initial=-1)) + 2, np.iinfo(np.int64).max)

    def own(frame: pl.DataFrame) -> pl.DataFrame:
        flow, times_ns = np.minimum(frame["flow"].to_numpy(), beyond), frame["time_ns"].to_numpy()
        first = first_of_each(flow)
        if len(first):
            # the last place is that of no source
            np.minimum.at(firsts_ns, sources[flow[first]], np.minimum.reduceat(times_ns, first))
        return frame.filter(pl.Series(ways[flow] == _ways(frame["direction"]))).drop("direction")

    parts = map(own, frames)
    first_part = next(parts)
    bins = joined_frame(chain([first_part], parts), first_part.clear())
    names = flows.select("source", flows["source"].to_physical().alias("number")).unique()
    origins_ns = {
        name: int(firsts_ns[number])
        for name, number in names.with_columns(pl.col("source").cast(pl.String)).sort("source").iter_rows()
        if firsts_ns[number] < np.iinfo(np.int64).max
    }
    return bins, origins_ns


def _ways(directions: pl.Series) -> NDArray[np.uint8]:
    """Return 1 for `fwd` and 2 for `rev`."""
    import numpy as np

    return np.where((directions == "fwd").to_numpy(), 1, 2).astype(np.uint8)
