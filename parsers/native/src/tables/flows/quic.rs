//! Columns of QUIC: what the headers and the public keys of its first packets show.

use super::FlowRow;
use crate::flow::quic::spin::{SpinDirection, SpinVerdict};
use crate::flow::quic::{QuicDirection, QuicFlow};
use crate::flow::rtt_statistics::{LogHistogram, RttStatistics};
use crate::packet::opening::{ClientHello, NamedBy, Opening};
use crate::tables::Column;
use crate::tables::column::column;
use crate::wire::quic::Version;

impl<'a> FlowRow<'a> {
    pub(super) const QUIC: &'a [Column<Self>] = &[
        column("quic_version", "", "version of the last long header")
            .one_of(|| Version::ALL.map(Version::name).to_vec())
            .null_when("not QUIC, or a version that is not read")
            .name(|row| Some(row.quic()?.version()?.name())),
        column(
            "server_name",
            "",
            "name that the client asks for first: in its ClientHello over TCP or QUIC (RFC 6066; with Encrypted Client \
             Hello the public one), or the host of its request of HTTP/1 (RFC 9112), without the port",
        )
        .null_when("none of these, no such name, or the client's first bytes are not all in the capture")
        .name(|row| row.hello().map_or_else(|| row.opening()?.server_name(), |hello| hello.server_name.as_deref())),
        column(
            "server_name_from",
            "",
            "where it is from: a ClientHello, one with the extension of Encrypted Client Hello (then a public name, or \
             one of a client that only pretends to hide it: RFC 9849 section 6.2), or HTTP/1",
        )
        .one_of(|| NamedBy::ALL.map(NamedBy::name).to_vec())
        .null_when("as server_name")
        .name(|row| Some(row.hello().map_or_else(|| row.opening()?.named_by(), ClientHello::named_by)?.name())),
        column("alpn", "", "protocols that the client offers (RFC 7301), in its order, joined by `,`; the choice is encrypted")
            .null_when("as server_name")
            .name(|row| row.hello().map_or_else(|| row.opening()?.protocols(), |hello| hello.protocols.as_deref())),
        column("quic_connection_id", "", "destination that the client chose first, by which qlog names the connection (ODCID)")
            .null_when("not QUIC, or the client's first packets are not all in the capture")
            .text(|row| Some(row.quic()?.destinations().first()?.to_string())),
        column("quic_initial_packets", "", "Initial packets, several of which a datagram may have")
            .null_when("not QUIC")
            .u32(|row| Some(row.quic_direction()?.kinds.initial)),
        column("quic_handshake_packets", "", "Handshake packets, likewise")
            .null_when("not QUIC")
            .u32(|row| Some(row.quic_direction()?.kinds.handshake)),
        column("quic_0rtt_packets", "", "packets with data that the client sent before the server answered")
            .null_when("not QUIC")
            .u32(|row| Some(row.quic_direction()?.kinds.zero_rtt)),
        column("quic_retry_packets", "", "answers with which the server asked the client to prove its address")
            .null_when("not QUIC")
            .u32(|row| Some(row.quic_direction()?.kinds.retry)),
        column("quic_1rtt_packets", "", "packets with a short header: data after the handshake")
            .null_when("not QUIC")
            .u64(|row| Some(row.quic_direction()?.kinds.short)),
        column(
            "quic_paths",
            "",
            "pairs of addresses and ports on which the connection was seen: 1, and one for each migration \
             whose packets keep the connection identifier of the handshake",
        )
        .null_when("not QUIC")
        .u32(|row| Some(row.quic()?.further_paths + 1)),
        column("spin_verdict", "", "what the spin bit of this direction shows (RFC 9000 section 17.4)")
            .one_of(|| SpinVerdict::ALL.map(SpinVerdict::name).to_vec())
            .null_when("not QUIC, or too few packets with a short header")
            .name(|row| Some(row.quic()?.spin()?.verdict(row.side)?.name())),
        column(
            "spin_rtt_samples",
            "",
            "times from edge to edge of the spin bit: round-trip times of the whole path, if spin_verdict is \
             `plausible`",
        )
        .null_when("not QUIC, no edges, or edges that show nothing")
        .u64(|row| Some(row.spin_rtt()?.0.range.count())),
        column("spin_rtt_min_ms", "ms", "smallest of them")
            .null_when("as spin_rtt_samples")
            .f64(|row| row.spin_rtt()?.0.range.min_ms()),
        column("spin_rtt_mean_ms", "ms", "their mean")
            .null_when("as spin_rtt_samples")
            .f64(|row| row.spin_rtt()?.0.range.mean_ms()),
        column("spin_rtt_p50_ms", "ms", "their median, within 0.8 %")
            .null_when("as spin_rtt_samples")
            .f64(|row| row.spin_percentile_ms(0.50)),
        column("spin_rtt_p95_ms", "ms", "their 95th percentile (nearest rank), within 0.8 %")
            .null_when("as spin_rtt_samples")
            .f64(|row| row.spin_percentile_ms(0.95)),
        column("spin_rtt_max_ms", "ms", "largest of them")
            .null_when("as spin_rtt_samples")
            .f64(|row| row.spin_rtt()?.0.range.max_ms()),
        column("spin_late_packets", "", "packets with the value before an edge that came too soon after it for another edge: reordered")
            .null_when("as spin_rtt_samples")
            .u64(|row| Some(row.spin()?.late_packets)),
    ];

    /// The ClientHello of a QUIC connection.
    fn hello(&self) -> Option<&'a ClientHello> {
        self.quic()?.hello()
    }

    /// What the client of a TCP connection sent first.
    pub(super) fn opening(&self) -> Option<&'a Opening> {
        self.connection?.opening()
    }

    fn quic(&self) -> Option<&'a QuicFlow> {
        self.flow.transport.quic()
    }

    fn quic_direction(&self) -> Option<&'a QuicDirection> {
        Some(self.quic()?.direction(self.side))
    }

    /// The spin bit of this direction, if its edges show anything.
    fn spin(&self) -> Option<&'a SpinDirection> {
        let spin = self.quic()?.spin()?;
        let is_shown =
            matches!(spin.verdict(self.side), Some(SpinVerdict::Plausible | SpinVerdict::ApplicationLimited));
        is_shown.then(|| spin.direction(self.side)).filter(|_| self.analysis.results.has_times)
    }

    fn spin_rtt(&self) -> Option<&'a (RttStatistics, LogHistogram)> {
        self.spin()?.rtt.as_deref()
    }

    fn spin_percentile_ms(&self, share: f64) -> Option<f64> {
        let (rtt, sketch) = self.spin_rtt()?;
        sketch.percentile_ms(share, &rtt.range)
    }
}
