"""The tables of a trace as frames, each read when it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import TYPE_CHECKING

from tfrctrace.base.errors import InputError, NoArrivalsError, UsageError
from tfrctrace.metrics.thresholds import SPARSE_SHARE
from tfrctrace.trace.passes import NS_PER_MS, Passes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    import polars as pl

    from tfrctrace.metrics.results.metrics import Basis
    from tfrctrace.parsers.reading import StackedTable
    from tfrctrace.trace.conditions import Beyond
    from tfrctrace.trace.labels import Rule
    from tfrctrace.trace.measuring import MeasuredMetrics


class Tables(Passes, ABC):
    """Frames are Polars, with the columns of `tfrctrace.parsers.schema`; `Trace.to_pandas` converts one."""

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
    def rtt_buckets(self) -> pl.DataFrame:
        """Round-trip times in buckets, in ns; what is added over flows and traces has percentiles, too."""
        return self.table("rtt_buckets").frame()

    @property
    def losses(self) -> pl.DataFrame:
        """One row for each retransmitted or out-of-order packet."""
        return self.table("losses").frame()

    @property
    def rounds(self) -> pl.DataFrame:
        """One row for each round of data in flight: flight, windows, repair."""
        return self.table("rounds").frame()

    @property
    def causes(self) -> pl.DataFrame:
        """One row for each stretch of a direction with data that one cause held back."""
        return self.table("causes").frame()

    @property
    def cause_sums(self) -> pl.DataFrame:
        """One row for each cause and sign that held a direction with data back, and for how long."""
        return self.table("cause_sums").frame()

    @property
    def bottlenecks(self) -> pl.DataFrame:
        """One row for each direction with data of TCP: capacity, buffer and queue of its bottleneck."""
        return self.table("bottlenecks").frame()

    @property
    def feedback(self) -> pl.DataFrame:
        """One row for each report of a TFRC receiver: its values, and the resulting state of the sender."""
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
    def rtp_sources(self) -> pl.DataFrame:
        """One row for each source of RTP in each direction: losses, jitter, and what receivers report."""
        return self.table("rtp_sources").frame()

    @property
    def rtp_intervals(self) -> pl.DataFrame:
        """One row for each second of a source of RTP: losses, reordering and jitter at the capture."""
        return self.table("rtp_intervals").frame()

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
        from tfrctrace.parsers.variables import OF_FLOWS, with_flows

        reading = self.read("flows", "variables")
        return with_flows(reading.table("variables").frame(), reading.table("flows").frame(OF_FLOWS))

    @property
    def transits(self) -> pl.DataFrame:
        """One row for each packet between two captures: when it passed each, its delay and fate."""
        return self.table("transits").frame()

    @property
    def hops(self) -> pl.DataFrame:
        """One row for each hop between more than two captures, of each direction of a flow."""
        return self.table("hops").frame()

    @property
    @abstractmethod
    def named_controls(self) -> pl.DataFrame:
        """The congestion control of each direction with data, or why it is not known."""

    def packets(self, columns: Iterable[str] | None = None) -> Iterator[pl.DataFrame]:
        """Give all packets, in frames of bounded size; `polars.concat(trace.packets())` makes one of them.

        Fewer `columns` take less time.
        """
        import polars as pl

        batches = self.packet_batches(columns)
        for batch in batches:
            yield pl.DataFrame(batch)
        if batches.read_nothing:
            raise InputError(batches.problems)
        self._report_problems(batches.problems)

    def throughput(self, width: str | timedelta) -> pl.DataFrame:
        """Return throughput and goodput (bit/s) of each flow and direction in bins of `width`, as `"500ms"`.

        Between the first and the last packet of a direction a bin without packets is a row with 0.
        """
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.metrics.flow.throughput import throughput_series

        return throughput_series(self._bins_of_width(parse_duration_ns(width, "width")))

    def retransmission_timeout(self, *, min_rto_ms: float = 1000) -> pl.DataFrame:
        """Return SRTT, RTTVAR and RTO (RFC 6298, ms) after each RTT sample of each flow and direction.

        RFC 6298 has a smallest RTO of a second, Linux one of 200 ms.
        """
        from tfrctrace.metrics.flow.rto import rto_series

        return rto_series(self.rtt, min_rto_ms=min_rto_ms)

    def counted(self, basis: Basis, width_ns: int) -> pl.DataFrame:
        """Return the bins of `width_ns` with the bytes of the rate that `basis` selects."""
        return self._arrivals(width_ns) if basis == "received" else self._bins_of_width(width_ns)

    def counted_frames(self, basis: Basis, width_ns: int, columns: Iterable[str]) -> Iterator[pl.DataFrame]:
        """Give what `counted` returns in frames of bounded size, with those of `columns` that it has."""
        if basis == "received" or self._inputs.is_read_once:
            bins = self.counted(basis, width_ns)
            yield bins.select([name for name in dict.fromkeys(columns) if name in bins.columns])
        else:
            yield from self._bin_table(width_ns).frames(columns)

    def _bins_of_width(self, width_ns: int) -> pl.DataFrame:
        """Return bins of `width_ns`: counted anew, or for what is read once made from those there are."""
        if self._inputs.is_read_once:
            return self._joined_bins(width_ns)
        return self._bin_table(width_ns).frame()

    def _bin_table(self, width_ns: int) -> StackedTable:
        if width_ns == self._bin_ns:
            return self.table("bins")
        if width_ns not in self._bins:
            self._bins[width_ns] = self._pass(frozenset({"bins"}), width_ns).table("bins")
        return self._bins[width_ns]

    def _arrivals(self, width_ns: int) -> pl.DataFrame:
        """Return bins of the bytes that reached their destination, from the table of packets."""
        from tfrctrace.metrics.flow.arrivals import COLUMNS, arrival_bins

        if width_ns not in self._arrived:
            self._arrived[width_ns] = arrival_bins(self.packets(COLUMNS), width_ns, self._settings.layer)
        if self._arrived[width_ns].is_empty():
            raise NoArrivalsError(
                "no packet of the trace is shown at its destination, so what was received is not known",
                hint="the basis `goodput` counts payload that was seen first",
            )
        return self._arrived[width_ns]

    def _joined_bins(self, width_ns: int) -> pl.DataFrame:
        from tfrctrace.metrics.flow.bins import coarser_bins

        bins = self.bins
        if len(bins) and width_ns % bins["width_ns"][0]:
            have_ms, wanted_ms = bins["width_ns"][0] / NS_PER_MS, width_ns / NS_PER_MS
            raise UsageError(
                f"standard input was counted in bins of {have_ms:g} ms, not a divisor of {wanted_ms:g} ms",
                hint="give `bin_width` to `tfrctrace.open`, or save the capture to a file",
            )
        return coarser_bins(bins, width_ns)

    def measure(
        self,
        *names: str,
        window: str | timedelta = "1s",
        warmup: str | timedelta | None = None,
        basis: Basis = "goodput",
        labels: Iterable[str] = (),
        only_labelled: bool = False,
        least_packets: int | None = None,
        most_flows: int | None = None,
        capacity: str | None = None,
        weight: Mapping[str, float] | None = None,
        step: str | timedelta | None = None,
        sparse_share: float = SPARSE_SHARE,
        columns: Iterable[str] | None = None,
    ) -> MeasuredMetrics:
        """Return fairness, burstiness, smoothness, delivery and more of the flows, and the competing sets.

        `names` selects metrics of `tfrctrace.metrics.catalogue`; without names all are computed. Rates are
        averaged over windows of `window`, without the first `warmup` of each flow, and only flows that
        overlap are compared. `labels` are rules such as `"reno=port 5201"`; other flows are labelled by their
        transport, or left out with `only_labelled`. `basis` chooses the bytes that count: `goodput` new
        payload, `throughput` frames, `received` what arrived, in a trace that shows both ends. Flows with
        fewer data packets than `least_packets` (20 if None) are left out; of more than `most_flows` those
        with most data packets are measured. Some metrics need the link's `capacity`, as `"10M"`, the `weight`
        of labels, as `{"video": 2}`, or the time of a `step` of the path, as `"20s"`. Flows that their
        application limited to less than `sparse_share` of the mean of the others are sparse: metrics
        "without sparse" leave them out; 0 makes none sparse. `looked_at` of the result has these `columns` of
        the table of flows besides those that were needed, or all: those of 100,000 flows take 100 MB.
        """
        from tfrctrace.base.bitrates import parse_capacity_bps
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.metrics.assumptions import Assumptions
        from tfrctrace.trace.labels import check_weights, read_labelled, tables_beyond
        from tfrctrace.trace.measuring import (
            base_width_ns,
            check_names,
            check_sparse_share,
            measure,
            measurement_warnings,
        )

        check_names(names, capacity=capacity, weight=weight, step=step)
        check_sparse_share(sparse_share)
        check_weights(weight or {})
        given = Assumptions(
            capacity_bps=None if capacity is None else parse_capacity_bps(capacity),
            weights=weight or {},
            step_ns=None if step is None else parse_duration_ns(step, "step"),
        )
        rules = self._rules(labels)
        window_ns = parse_duration_ns(window, "window")
        warmup_ns = 0 if warmup is None else parse_duration_ns(warmup, "warmup")
        base_ns = base_width_ns(window_ns)
        beyond = tables_beyond(rules) or (("cause_sums",) if self.is_read_once else ())
        if self._bin_ns == base_ns:
            self.read("flows", "bins", *beyond)  # all from one pass
        self.read("flows", *beyond)
        labelled, problems = read_labelled(self.table("flows"), rules, self._beyond(rules))
        self._report_problems_once(problems)
        measured = measure(
            labelled,
            partial(self.counted_frames, basis, base_ns),
            columns,
            window_ns=window_ns,
            warmup_ns=warmup_ns,
            basis=basis,
            least_packets=least_packets,
            most_flows=most_flows,
            only_labelled=only_labelled,
            names=names,
            sparse_share=sparse_share,
            no_data_shares=lambda: self._no_data_shares,
            given=given,
        )
        self._report_problems_once(list(measurement_warnings(measured, given)))
        return measured

    def labelled_flows(self, labels: Iterable[str]) -> pl.DataFrame:
        """Return the flows with `label` set by rules such as `"reno=port 5201"`."""
        from tfrctrace.trace.labels import tables_beyond, with_labels

        rules = self._rules(labels)
        self.read("flows", *tables_beyond(rules))
        flows, problems = with_labels(self.flows, rules, self._beyond(rules))
        self._report_problems_once(problems)
        return flows

    @cached_property
    def _no_data_shares(self) -> dict[tuple[int, str], float]:
        from tfrctrace.metrics.flow.causes import no_data_shares

        return no_data_shares(self.cause_sums)

    def _beyond(self, rules: Sequence[Rule]) -> Beyond:
        """Return what rules ask for and the table of flows does not have."""
        from tfrctrace.trace.conditions import Beyond
        from tfrctrace.trace.labels import name_causes, name_controls

        return Beyond(
            self.cause_sums if name_causes(rules) else None,
            self.named_controls if name_controls(rules) else None,
        )

    def _rules(self, labels: Iterable[str]) -> list[Rule]:
        from tfrctrace.trace.labels import parse_rule

        anonymizer = self._settings.anonymizer
        hosts = anonymizer.host if anonymizer else None
        return [parse_rule(text, hosts) for text in labels]
