"""A direction of a flow as reports know it: the columns of the table of flows that they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tfrctrace.metrics.thresholds import TIMES_SHORTER

if TYPE_CHECKING:
    from tfrctrace.reports.elements import Name


class FlowRow(NamedTuple):
    """A row of the table of flows; `tfrctrace.parsers.schema` says what a column is, and when it is null."""

    flow: int
    direction: str
    transport: str
    label: str | None
    src: str | None
    src_port: int | None
    dst: str | None
    dst_port: int | None
    source: str
    vantage: str | None
    vantage_confidence: float | None
    state: str | None
    start_ns: int | None
    duration_s: float | None
    packets: int
    wire_bytes: int
    throughput_bps: float | None
    goodput_bps: float | None
    data_packets: int | None
    data_segments: int | None
    retransmitted_segments: int | None
    handshake_rtt_ms: float | None
    syn_rtt_ms: float | None
    fast_retransmissions: int | None
    sack_retransmissions: int | None
    rto_retransmissions: int | None
    tail_loss_probes: int | None
    unexplained_retransmissions: int | None
    timeouts: int | None
    syn_retransmissions: int | None
    fin_retransmissions: int | None
    spurious_retransmissions: int | None
    reordered_packets: int | None
    reordering_max_packets: int | None
    network_duplicates: int | None
    capture_duplicates: int | None
    lost_before_capture: int | None
    lost_behind_capture: int | None
    ect0_packets: int | None
    ect1_packets: int | None
    ce_packets: int | None
    rtt_samples: int | None
    rtt_min_ms: float | None
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    rtt_max_ms: float | None
    recovery_episodes: int | None
    rto_episodes: int | None
    sent_packets: int | None
    received_packets: int | None
    dropped_packets: int | None
    lost_packets: int | None
    lost_before_packets: int | None
    lost_behind_packets: int | None
    missed_packets: int | None
    pdr: float | None
    delay_min_ms: float | None
    delay_mean_ms: float | None
    delay_p50_ms: float | None
    delay_p95_ms: float | None
    delay_p99_ms: float | None
    delay_max_ms: float | None
    jitter_ms: float | None
    drop_reasons: str | None
    loss_events: int | None
    loss_event_rate: float | None
    feedback_packets: int | None
    x_recv_bps: float | None
    srtt_ms: float | None
    quic_version: str | None
    server_name: str | None
    server_name_from: str | None
    alpn: str | None
    quic_0rtt_packets: int | None
    quic_paths: int | None
    spin_verdict: str | None
    spin_rtt_p50_ms: float | None
    spin_rtt_p95_ms: float | None

    @property
    def key(self) -> tuple[int, str]:
        """Its flow and direction."""
        return self.flow, self.direction

    @property
    def ends(self) -> str:
        """Sender and receiver."""
        return f"{endpoint(self.src, self.src_port)} → {endpoint(self.dst, self.dst_port)}"

    @property
    def shown_name(self) -> str | None:
        """The name of the server, marked if Encrypted Client Hello may hide another one."""
        has_ech = self.server_name_from == "sni_with_ech"
        return f"{self.server_name} (ECH)" if has_ech else self.server_name

    @property
    def legend(self) -> str:
        """Its name in a legend: the flow, the user's label if any, and the ends."""
        called = f"{self.flow} {self.label}" if self.label else str(self.flow)
        return f"{called}: {self.ends}"

    @property
    def name(self) -> Name:
        """`flow 3`, a name that points to the row of the flow."""
        return flow_name(self.flow)

    @property
    def anchor(self) -> str:
        """The key of the table row of its flow."""
        return flow_anchor(self.flow)

    @property
    def is_near_receiver(self) -> bool:
        """Whether its RTT samples are the receiver's own delay, not that of the path.

        As `has_receivers_rtts`, of a row.
        """
        if self.vantage is not None:
            return self.vantage == "receiver"
        if self.rtt_p50_ms is None or self.handshake_rtt_ms is None:
            return False
        return self.rtt_p50_ms * TIMES_SHORTER < self.handshake_rtt_ms

    @property
    def shows_path_rtt(self) -> bool:
        """Whether its RTT samples are those of data over the path, not of what opens and ends it alone."""
        return self.goodput_bps != 0 and not self.is_near_receiver


def known(value: float | None) -> float:
    """Return a value that the choice of its row ensures."""
    assert value is not None
    return value


def endpoint(address: str | None, port: int | None) -> str:
    """Return an address with its port as one writes it in a URL: `10.0.0.1:80`, `[2001:db8::1]:80`."""
    if address is None:
        return "?"
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def flow_name(flow: int) -> Name:
    """Return `flow 3` as a name that points to the row of the flow."""
    # the text table needs no parts of a report, and making their classes takes a tenth of the start
    from tfrctrace.reports.elements import Name

    return Name(f"flow {flow}", flow_anchor(flow))


def flow_anchor(flow: int) -> str:
    """Return the key of the table row of a flow."""
    return f"flow-{flow}"
