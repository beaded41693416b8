"""All metrics of the catalogue for the flows of a trace and their competing sets.

Works on two frames: `flows` with one row, of the direction that carried the data, for each flow (columns of
`tfrctrace.parsers.schema.FLOWS`), and `bins` of the same directions (`BINS`), all of one width.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.assumptions import NO_ASSUMPTIONS
from tfrctrace.metrics.catalogue import WITHOUT_SPARSE, make_metric
from tfrctrace.metrics.exact_sums import nearest_rank
from tfrctrace.metrics.flow.burstiness import cov_by_timescale, rate_variation
from tfrctrace.metrics.flow.convergence import fairness_settling_time_s
from tfrctrace.metrics.flow.smoothness import equivalence_ratios, rate_changes
from tfrctrace.metrics.flow.throughput import mean_rate_bps
from tfrctrace.metrics.flow.whole_flow import MAX_LIFE_WINDOWS, whole_flow_metrics
from tfrctrace.metrics.flow_metrics import FlowColumn, FlowMetrics
from tfrctrace.metrics.sets.fairness import (
    inter_protocol_normalized,
    inter_protocol_ratio,
    jain_index,
    jain_over_time,
    max_min_ratio,
    mean_rate,
)
from tfrctrace.metrics.sets.sparse import small_flows
from tfrctrace.metrics.sets.synchronisation import LOSS_COLUMNS, flows_with_losses, loss_synchronisation
from tfrctrace.metrics.sets.up_down import up_down_groups
from tfrctrace.metrics.sets.utilisation import link_utilisation, upload_download_ratio
from tfrctrace.metrics.thresholds import SPARSE_SHARE
from tfrctrace.metrics.windows import (
    NS_PER_S,
    FlowBins,
    Windows,
    joined,
    matrix,
    whole_windows,
    windowed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from tfrctrace.metrics.assumptions import Assumptions
    from tfrctrace.metrics.flow_metrics import MetricRows
    from tfrctrace.metrics.results.metrics import Metric, SmallFlow
    from tfrctrace.metrics.sets.competing import CompetingSet
    from tfrctrace.metrics.sets.up_down import UpDown

TIMESCALES_NS: Final = tuple(round(seconds * NS_PER_S) for seconds in (0.1, 0.2, 0.5, 1, 2, 5, 10))
"""Widths of the windows of the coefficient of variation."""
LEAST_WINDOWS_OF_TIMESCALE: Final = 8

MAX_PAIRED_FLOWS: Final = 64
"""Largest set of which every pair of flows is compared; the work grows with its square."""

_WIRE_COLUMNS: Final = {"unique_bytes": "wire_bytes"}
"""Bytes on the link, by the column of the rate; other columns count them already."""

SYNCHRONISED_NS: Final = 100_000_000
"""Within which losses are together: a congestion event of a drop-tail queue lasts about a round trip."""

_NO_BYTES: Final = "no byte in the windows"


DEMAND_COLUMNS: Final = (
    "transport",
    "vantage",
    "duration_s",
    "packets",
    "data_packets",
    "data_segments",
    "retransmitted_segments",
    "sent_packets",
    "received_packets",
    "received_bytes",
    "lost_packets",
    "direction",
    "rtt_mean_ms",
    "feedback_packets",
)
"""Columns of flows, where they are, that show what a flow asked for."""


def bin_columns(column: str, assumptions: Assumptions) -> tuple[str, ...]:
    """Return the columns of bins that metrics need if `column` has the bytes of the rate."""
    needed: tuple[str, ...] = ("flow", "direction", "time_ns", "width_ns", "packets", column)
    if column != "received_bytes":
        needed = (*needed, *LOSS_COLUMNS)
    return needed if assumptions.capacity_bps is None else (*needed, _WIRE_COLUMNS.get(column, column))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The metrics of a trace, and by the number of its competing sets the flows with a small rate."""

    rows: list[MetricRows]
    small_flows: dict[int, list[SmallFlow]]


def evaluate(
    flows: pl.DataFrame,
    bins: pl.DataFrame,
    sets: Sequence[CompetingSet],
    *,
    column: str,
    window_ns: int,
    warmup_ns: int = 0,
    sparse_share: float = SPARSE_SHARE,
    no_data_shares: Callable[[], Mapping[tuple[int, str], float]] = dict,
    assumptions: Assumptions = NO_ASSUMPTIONS,
) -> Evaluation:
    """Return the metrics of each competing set, then those of each flow over its whole life.

    `column` of `bins` has the bytes of the rate. `flows` also has a column `group`, the label or the
    transport, and with a step the column that `whole_flow_metrics` needs. `window_ns` is a multiple of the
    width of the bins. `sparse_share` is that of `small_flows`; for TCP flows with a small rate,
    `no_data_shares` returns those of `tfrctrace.metrics.flow.causes`.
    """
    groups = dict(flows.select("flow", "group").iter_rows())
    up_down = up_down_groups(flows)
    flow_bins = FlowBins(bins)
    with_losses = flows_with_losses(flows) if set(LOSS_COLUMNS) <= set(bins.columns) else frozenset()
    shown = [name for name in DEMAND_COLUMNS if name in flows.columns]
    places = {flow: place for place, flow in enumerate(flows["flow"])} if sets else {}
    demands = flows.select(shown)

    def demand_of(flow: int) -> Mapping[str, Any]:
        row = demands.row(places[flow], named=True)
        if row.get("transport") == "tcp":
            row["no_data_share"] = no_data_shares().get((flow, row["direction"]))
        return row

    found = Evaluation([], {})
    for competing in sets:
        own = _SetMetrics(
            competing,
            flow_bins,
            groups,
            column,
            up_down=up_down,
            with_losses=with_losses,
            warmup_ns=warmup_ns,
            assumptions=assumptions,
        )
        found.small_flows[competing.number] = own.leave_out_sparse(demand_of, sparse_share)
        found.rows.extend(own.metrics())
    found.rows.append(whole_flow_metrics(flows, flow_bins, column, window_ns, assumptions))
    return found


class _SetMetrics:
    """The metrics of one competing set in the windows that its flows have in common."""

    def __init__(
        self,
        competing: CompetingSet,
        bins: FlowBins,
        groups: Mapping[int, str],
        column: str,
        *,
        up_down: Mapping[int, UpDown],
        with_losses: frozenset[int],
        warmup_ns: int,
        assumptions: Assumptions,
    ) -> None:
        import polars as pl

        self._set = competing
        self._windows = competing.windows
        self._bins = bins
        self._column = column
        self._assumptions = assumptions
        self._up_down = up_down
        self._with_losses = with_losses
        self._base = _base_windows(competing.windows, bins.width_ns or competing.windows.width_ns)
        from concurrent.futures import ThreadPoolExecutor

        # numpy lets other threads run while it adds up; parts come back in their order
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(self._measure_part, bins.parts(competing.flows)))
        frames, covs, variations, changes = (pl.concat(frames) for frames in zip(*parts, strict=True))
        self._frame, self._covs = frames.set_sorted("flow"), covs
        self._variations, self._rate_changes = variations, changes
        self._warmup_s = warmup_ns / NS_PER_S
        self._groups: dict[str, list[int]] = {}
        for flow in competing.flows:
            self._groups.setdefault(groups[flow], []).append(flow)
        self._group_of = {flow: group for group, flows in self._groups.items() for flow in flows}
        self._of_flows = pl.DataFrame(
            {"flow": competing.flows, "group": [groups[flow] for flow in competing.flows]},
            schema={"flow": self._frame.schema["flow"], "group": pl.String},
        )
        totals = dict(self._frame.group_by("flow").agg(pl.col("bytes").sum()).iter_rows())
        # whole numbers, so that every index is exact
        self._bytes = {flow: totals.get(flow, 0) for flow in competing.flows}
        self._sparse: frozenset[int] = frozenset()

    def leave_out_sparse(self, demands: Callable[[int], Mapping[str, Any]], share: float) -> list[SmallFlow]:
        """Return the flows with a small rate; metrics "without sparse" leave out those that asked for it."""
        counts_received = self._column == "received_bytes"
        # a clock that was set back by years must not need memory for every window of them
        windows = self._base.coarser(max(-(-self._base.count // MAX_LIFE_WINDOWS), 1))

        def packets(flow: int) -> NDArray[Any] | None:
            if not counts_received:
                return self._bins.rates(flow, windows, "packets") if self._bins.has("packets") else None
            of_flow = demands(flow)
            size = (of_flow.get("received_bytes") or 0) / (of_flow.get("received_packets") or 1)
            return self._bins.rates(flow, windows, self._column) / size if size else None

        found = small_flows(self._bytes, demands, packets, share, counts_received=counts_received)
        self._sparse = frozenset(one.flow for one in found if one.is_sparse)
        return found

    def _measure_part(self, bins: pl.DataFrame) -> tuple[pl.DataFrame, ...]:
        """Return the windowed frame of some flows, their variation by timescale, in all, and rate changes."""
        base_frame = windowed(bins, self._base, self._column)
        dense = matrix(base_frame, self._base.count)
        factor = self._windows.width_ns // self._base.width_ns
        frame = joined(base_frame, factor, self._base.count, dense=dense)
        covs = cov_by_timescale(base_frame, self._base.count, self._factors, dense=dense)
        count = self._windows.count
        return frame, covs, rate_variation(frame, count), rate_changes(frame, count)

    def metrics(self) -> Iterator[MetricRows]:
        yield from self._fairness()
        yield from self._utilisation()
        yield self._upload_download()
        yield from self._fairness_over_time()
        yield self._synchronisation()
        yield from self._protocols()
        yield from self._equivalence()
        yield self._variation()
        yield self._timescales()
        yield self._changes()

    def _metric(
        self,
        name: str,
        value: float | None,
        n: int,
        *,
        flows: Sequence[int] | None = None,
        group: str | None = None,
        windows: Windows | None = None,
        reason: str | None = None,
    ) -> Metric:
        return make_metric(
            name,
            value,
            n,
            flows=self._set.flows if flows is None else flows,
            group=group,
            window_s=(windows or self._windows).width_s,
            warmup_s=self._warmup_s,
            competing_set=self._set.number,
            reason=reason,
        )

    def _rates_bps(self, flows: Sequence[int]) -> pl.Series:
        import polars as pl

        duration_s = self._windows.duration_s
        return pl.Series([mean_rate_bps(self._bytes[flow], duration_s) for flow in flows], dtype=pl.Float64)

    def _amounts(self, flows: Sequence[int]) -> pl.Series:
        """Return the bytes of some flows, which stand for rates in ratios and are exact."""
        import polars as pl

        return pl.Series([self._bytes[flow] for flow in flows], dtype=pl.UInt64)

    def _fairness(self) -> Iterator[Metric]:
        sparse = sorted(self._sparse)
        yield self._metric("sparse_flows", float(len(sparse)), len(self._set.flows), flows=sparse)
        for name, flows in self._with_and_without("jain", self._set.flows):
            yield self._metric(name, jain_index(self._amounts(flows)), len(flows), flows=flows)
        if self._assumptions.weights:
            for name, flows in self._with_and_without("jain_weighted", self._set.flows):
                index = jain_index(self._amounts(flows), self._weights(flows))
                yield self._metric(name, index, len(flows), flows=flows)

    def _with_and_without(self, name: str, flows: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
        """Give a metric of `flows`, and that of the same flows without sparse ones."""
        yield name, flows
        yield f"{name}{WITHOUT_SPARSE}", [flow for flow in flows if flow not in self._sparse]

    def _weights(self, flows: Sequence[int]) -> pl.Series:
        import polars as pl

        weights = self._assumptions.weights
        return pl.Series([weights.get(self._group_of[flow], 1.0) for flow in flows], dtype=pl.Float64)

    def _utilisation(self) -> Iterator[Metric]:
        """Give the link utilisation; frames are counted only if the capacity is known."""
        if self._assumptions.capacity_bps is None:
            return
        column = _WIRE_COLUMNS.get(self._column, self._column)
        parts = (windowed(part, self._base, column) for part in self._bins.parts(self._set.flows))
        carried = sum(int(part["bytes"].sum()) for part in parts)
        used = link_utilisation(carried, self._windows.duration_s, self._assumptions.capacity_bps)
        yield self._metric("link_utilisation", used, self._windows.count)

    def _upload_download(self) -> Metric:
        up, down = (
            [flow for flow in self._set.flows if self._up_down.get(flow) == way] for way in ("up", "down")
        )
        value = upload_download_ratio(self._amounts(up), self._amounts(down))
        lacking = [words for words, flows in (("an upload", up), ("a download", down)) if not flows]
        reason = f"no flow is known to be {' or '.join(lacking)}" if lacking else None
        return self._metric("upload_download_ratio", value, len(up) + len(down), reason=reason)

    def _fairness_over_time(self) -> Iterator[Metric]:
        over_time = jain_over_time(self._frame, len(self._set.flows))
        index = over_time["jain"]
        mean = index.mean()
        yield self._metric("jain_window_mean", mean if isinstance(mean, float) else None, len(index))
        for share in (0.05, 0.5, 0.95):
            yield self._metric(
                f"jain_window_p{share * 100:.0f}", nearest_rank(index.drop_nulls(), share), len(index)
            )
        yield self._mean_without_sparse(index)
        yield self._settling(over_time)

    def _mean_without_sparse(self, index: pl.Series) -> Metric:
        """Return the mean of Jain's index in each window without the sparse flows."""
        import polars as pl

        flows = [flow for flow in self._set.flows if flow not in self._sparse]
        if self._sparse:
            frame = self._frame.filter(~pl.col("flow").is_in(sorted(self._sparse)))
            index = jain_over_time(frame, len(flows))["jain"]
        mean = index.mean()
        value = mean if isinstance(mean, float) else None
        return self._metric("jain_window_mean_without_sparse", value, len(index), flows=flows)

    def _settling(self, over_time: pl.DataFrame) -> Metric:
        """Return when shares became fair, counted from the start of the last flow, without a warm-up.

        `over_time` has Jain's index in the common windows.
        """
        import polars as pl

        windows = whole_windows(
            self._base.start_ns, self._base.width_ns, self._set.last_start_ns, self._windows.end_ns
        ).coarser(self._windows.width_ns // self._base.width_ns)
        if len(self._set.flows) == 1:
            return self._metric("fairness_settling_s", None, windows.count, reason="one flow")
        if windows.count > MAX_LIFE_WINDOWS:
            reason = f"more than {MAX_LIFE_WINDOWS:,} windows"
            return self._metric("fairness_settling_s", None, windows.count, reason=reason)
        if windows != self._windows:
            parts = self._bins.parts(self._set.flows)
            frame = pl.concat([windowed(part, windows, self._column) for part in parts])
            over_time = jain_over_time(frame, len(self._set.flows))
        every = pl.DataFrame({"window": pl.int_range(windows.count, dtype=pl.Int64, eager=True)})
        index = every.join(over_time, on="window", how="left").sort("window")
        settled_s = fairness_settling_time_s(index["jain"], windows.width_s)
        return self._metric("fairness_settling_s", settled_s, windows.count)

    def _synchronisation(self) -> Metric:
        """Return which share of the flows lose together."""
        windows = self._base.coarser(max(SYNCHRONISED_NS // self._base.width_ns, 1))
        value: float | None = None
        count, reason = 0, None
        if len(self._set.flows) == 1:
            reason = "one flow"
        elif len(self._set.flows) > MAX_PAIRED_FLOWS:
            reason = f"more than {MAX_PAIRED_FLOWS} flows"
        elif not self._with_losses.issuperset(self._set.flows):
            reason = "the trace does not show the losses of each flow"
        else:
            parts = self._bins.parts(self._set.flows)
            value, count = loss_synchronisation(parts, windows, len(self._set.flows))
            reason = None if count else "no flow lost a packet"
        return self._metric("loss_synchronisation", value, count, windows=windows, reason=reason)

    def _protocols(self) -> Iterator[Metric]:
        for group, own in self._groups.items():
            rate = mean_rate(self._rates_bps(own))
            yield self._metric("mean_rate_bps", rate, len(own), flows=own, group=group)
            for name, flows in self._with_and_without("max_min", own):
                value = max_min_ratio(self._amounts(flows))
                yield self._metric(
                    name, value, len(flows), flows=flows, group=group, reason=self._reason(flows)
                )
            for of_protocols, compared in (
                ("inter_protocol_normalized", inter_protocol_normalized),
                ("inter_protocol_ratio", inter_protocol_ratio),
            ):
                for name, flows in self._with_and_without(of_protocols, self._set.flows):
                    mine = [flow for flow in flows if self._group_of[flow] == group]
                    others = [flow for flow in flows if self._group_of[flow] != group]
                    value = compared(self._amounts(mine), self._amounts(others))
                    reason = self._reason(mine)
                    if self._sparse and not others:
                        reason = reason or "one group only"
                    yield self._metric(name, value, len(flows), flows=flows, group=group, reason=reason)

    @staticmethod
    def _reason(flows: Sequence[int]) -> str | None:
        """Return why a group has no value without its sparse flows; None if any flow is left."""
        return None if flows else "all flows of the group are sparse"

    def _equivalence(self) -> Iterator[Metric]:
        """Give the mean over the pairs of each two groups, as Floyd et al. do for TCP and TFRC."""
        is_too_large = len(self._set.flows) > MAX_PAIRED_FLOWS
        ratios: dict[tuple[str, str], list[float]] = {}
        if not is_too_large:
            for a, b, _, ratio in equivalence_ratios(self._frame, self._set.flows).iter_rows():
                first, second = sorted((self._group_of[a], self._group_of[b]))
                if ratio is not None:
                    ratios.setdefault((first, second), []).append(ratio)
        for first, second in combinations_with_replacement(sorted(self._groups), 2):
            if first == second and len(self._groups[first]) == 1:
                continue
            found = ratios.get((first, second), [])
            flows = sorted({*self._groups[first], *self._groups[second]})
            yield self._metric(
                "equivalence_ratio",
                math.fsum(found) / len(found) if found else None,
                len(found),
                flows=flows,
                group=f"{first} and {second}",
                reason=f"more than {MAX_PAIRED_FLOWS} flows" if is_too_large else _NO_BYTES,
            )

    def _variation(self) -> FlowMetrics:
        import polars as pl

        found = self._of_flows.join(self._variations, on="flow", how="left", maintain_order="left")
        std_bps = [self._windows.bps(std or 0.0) for std in found["std"]]
        values = {
            "rate_bps": self._rates_bps(self._set.flows),
            "rate_std_bps": pl.Series(std_bps, dtype=pl.Float64),
            "burstiness": found["burstiness"],
            "cov_sample": found["cov_sample"],
        }
        count, width_s = self._windows.count, self._windows.width_s
        return self._flow_metrics(
            *(FlowColumn(name, column, count, width_s) for name, column in values.items())
        )

    @property
    def _factors(self) -> list[int]:
        """Bins in a window of each timescale that fits the time."""
        longest_ns = self._base.width_ns * self._base.count // LEAST_WINDOWS_OF_TIMESCALE
        return [
            scale_ns // self._base.width_ns
            for scale_ns in TIMESCALES_NS
            if scale_ns % self._base.width_ns == 0 and scale_ns <= longest_ns
        ]

    def _timescales(self) -> FlowMetrics:
        import polars as pl

        columns = []
        for factor in self._factors:
            windows = self._base.coarser(factor)
            covs = self._covs.filter(pl.col("factor") == factor)
            found = self._of_flows.join(covs, on="flow", how="left", maintain_order="left")
            columns.append(FlowColumn("cov", found["cov"], windows.count, windows.width_s))
        return self._flow_metrics(*columns)

    def _changes(self) -> FlowMetrics:
        import polars as pl

        found = self._of_flows.join(self._rate_changes, on="flow", how="left", maintain_order="left")
        pairs = self._windows.count - 1
        both = pairs - found["zero_pairs"].fill_null(pairs)
        changes = found["changes"].fill_null(0).cast(pl.Int64)
        return self._flow_metrics(
            FlowColumn("mean_relative_change", found["mean_relative_change"], changes, self._windows.width_s),
            FlowColumn("worst_ratio", found["worst_ratio"], both, self._windows.width_s),
        )

    def _flow_metrics(self, *columns: FlowColumn) -> FlowMetrics:
        return FlowMetrics(
            self._of_flows["flow"], self._of_flows["group"], columns, self._set.number, self._warmup_s
        )


def _base_windows(windows: Windows, width_ns: int) -> Windows:
    """Return the same time span in windows as wide as the bins."""
    return Windows(windows.start_ns, width_ns, windows.count * (windows.width_ns // width_ns))
