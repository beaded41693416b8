//! Columns on TCP's retransmissions and their causes.
//!
//! Facts that are invisible from the capture's vantage are null: at the receiver the causes of
//! retransmissions, at the sender the order of arrivals.

use super::Column;
use super::column::column;
use super::flows::FlowRow;
use crate::flow::tcp::HalfConnection;
use crate::flow::tcp::classify::class::Class;
use crate::flow::tcp::vantage::{Vantage, believed};

impl<'a> FlowRow<'a> {
    /// The vantage, if its confidence is high enough.
    pub(super) fn believed_vantage(&self) -> Option<Vantage> {
        believed(self.tap)
    }

    pub(super) fn half_connection_unless(&self, vantage: Vantage) -> Option<&'a HalfConnection> {
        self.half.filter(|_| self.believed_vantage() != Some(vantage))
    }

    /// Why some classes are null.
    pub(super) fn note_on_vantage(&self) -> Option<&'static str> {
        if self.flow.shows_both_ends(self.side) {
            return None;
        }
        let tally = self.half?.tally();
        match self.believed_vantage()? {
            _ if tally.findings == 0 => None,
            Vantage::Sender => {
                Some("captured at the sender: what the path did to the packets cannot be seen")
            }
            Vantage::Receiver => {
                Some("captured at the receiver: what made the sender repeat cannot be known")
            }
            Vantage::Middle => None,
        }
    }
}

impl<'a> FlowRow<'a> {
    pub(super) const RETRANSMISSIONS: &'a [Column<Self>] = &[
        column(
            "fast_retransmissions",
            "",
            "segments retransmitted because of acknowledgements: the first of each recovery, and \
             without SACK the whole recovery (RFC 5681, RFC 6582); like all counts of segments, \
             packets as the wire carried them",
        )
        .null_when("not TCP, as payload_bytes, or captured at the receiver")
        .u64(|row| Some(row.reasons()?.classes().of(Class::Fast).into())),
        column(
            "sack_retransmissions",
            "",
            "further segments retransmitted in a recovery with SACK (RFC 6675, RFC 8985)",
        )
        .null_when("as fast_retransmissions")
        .u64(|row| Some(row.reasons()?.classes().of(Class::Sack).into())),
        column(
            "rto_retransmissions",
            "",
            "segments retransmitted by a timeout and in the recovery after it (RFC 6298)",
        )
        .null_when("as fast_retransmissions")
        .u64(|row| Some(row.reasons()?.classes().of(Class::Rto).into())),
        column(
            "tail_loss_probes",
            "",
            "last segments retransmitted to provoke an acknowledgement (RFC 8985 section 7); probes \
             with new data look like any data",
        )
        .null_when("as fast_retransmissions")
        .u64(|row| Some(row.reasons()?.classes().of(Class::TailLossProbe).into())),
        column(
            "unexplained_retransmissions",
            "",
            "segments retransmitted for a reason that the capture does not show",
        )
        .null_when("as fast_retransmissions")
        .u64(|row| Some(row.reasons()?.classes().of(Class::Unexplained).into())),
        column("timeouts", "", "retransmission timeouts of data")
            .null_when("as fast_retransmissions")
            .u64(|row| Some(row.reasons()?.rare_counts().timeouts.into())),
        column("rto_backoff_max", "", "most timeouts in a row: each doubles the next (RFC 6298 section 5.5)")
            .null_when("as fast_retransmissions")
            .u64(|row| Some(row.reasons()?.rare_counts().timeouts_in_a_row.into())),
        column("syn_retransmissions", "", "SYN retransmitted")
            .null_when("as retransmitted_packets")
            .u64(|row| Some(row.half?.classes().of(Class::Syn).into())),
        column("fin_retransmissions", "", "FIN without data retransmitted")
            .null_when("as retransmitted_packets")
            .u64(|row| Some(row.half?.classes().of(Class::Fin).into())),
        column(
            "spurious_retransmissions",
            "",
            "retransmissions of any class that were not needed: already acknowledged, reported as \
             duplicate (D-SACK, RFC 2883), or the acknowledgement of the original came later (Eifel, \
             RFC 3522; F-RTO, RFC 5682)",
        )
        .null_when("as retransmitted_packets")
        .u64(|row| Some(row.half?.tally().spurious.into())),
        column(
            "keep_alives",
            "",
            "segments with the last acknowledged number, to check that the other side is alive",
        )
        .null_when("as retransmitted_packets")
        .u64(|row| Some(row.half?.classes().of(Class::KeepAlive).into())),
        column("zero_window_probes", "", "segments sent into a closed window (RFC 9293 section 3.8.6.1)")
            .null_when("as retransmitted_packets")
            .u64(|row| Some(row.half?.classes().of(Class::ZeroWindowProbe).into())),
        column("window_full", "", "data packets that fill the other side's window")
            .null_when("as retransmitted_packets, or the window scale is not known")
            .u64(|row| Some(row.half.filter(|half| half.knows_window_ends())?.window_full().into())),
        column("reordered_packets", "", "packets that arrived at the capture after later ones")
            .null_when("as retransmitted_packets, or captured at the sender")
            .u64(|row| Some(row.arrivals()?.classes().of(Class::Reordered).into())),
        column(
            "reordering_max_packets",
            "",
            "most later packets that arrived before a reordered one (RFC 4737 section 4.2)",
        )
        .null_when("as reordered_packets")
        .u64(|row| Some(row.arrivals()?.rare_counts().reordered_by_packets.into())),
        column("reordering_max_ms", "ms", "longest delay of a reordered packet after the first later one")
            .null_when("as reordered_packets, or there was none")
            .f64(FlowRow::reordering_max_ms),
        column(
            "network_duplicates",
            "",
            "packets with bytes seen before that the network duplicated: no retransmission",
        )
        .null_when("as retransmitted_packets")
        .u64(|row| Some(row.half?.classes().of(Class::NetworkDuplicate).into())),
        column(
            "capture_duplicates",
            "",
            "packets that a capture shows again: at another interface, as `-i any` does on a router, or \
             with the same times, because it was appended to itself; they were on the wire once, and no \
             other column counts them",
        )
        .null_when("not a capture")
        .u64(FlowRow::capture_duplicates),
        column(
            "super_segments",
            "",
            "packets longer than the wire carries: captured before segmentation offload cut them, or \
             after it joined them",
        )
        .null_when("as data_segments")
        .u64(|row| row.segmented().map(|half| half.rare_counts().super_segments.into())),
        column(
            "capture_gap_bytes",
            "bytes",
            "sequence numbers that were acknowledged and never seen: the capture lost them, not the \
             network",
        )
        .null_when("as retransmitted_packets")
        .u64(|row| row.half.filter(|_| !row.counts_packets()).map(HalfConnection::gap_bytes)),
        column(
            "lost_before_capture",
            "",
            "lost before the capture: segments of TCP that were retransmitted later, or never seen, and packets \
             whose numbers the capture does not have",
        )
        .null_when("not TCP, as payload_bytes, and packets have no numbers; or captured at the sender, or numbered datagrams came in fragments")
        .u64(FlowRow::lost_before_capture),
        column(
            "lost_behind_capture",
            "",
            "segments seen and retransmitted, less spurious retransmissions: lost beyond the capture",
        )
        .null_when("as retransmitted_packets, or captured at the receiver")
        .u64(|row| Some(row.reasons()?.lost_after().segments().into())),
    ];

    /// The half-connection, where the capture shows why it retransmitted.
    fn reasons(&self) -> Option<&'a HalfConnection> {
        self.half_connection_unless(Vantage::Receiver)
    }

    /// The half-connection, where the capture shows the order of arrivals.
    fn arrivals(&self) -> Option<&'a HalfConnection> {
        self.half_connection_unless(Vantage::Sender)
    }

    fn lost_before_capture(&self) -> Option<u64> {
        match self.half {
            Some(_) => Some(self.arrivals()?.lost_before().segments().into()),
            None => {
                let numbered = self.delivery().filter(|delivery| delivery.counted.is_some())?;
                let hides_losses = self.believed_vantage() == Some(Vantage::Sender)
                    || self.flow.numbers_first_fragments(self.side);
                (!hides_losses).then_some(numbered.lost)
            }
        }
    }

    fn reordering_max_ms(&self) -> Option<f64> {
        let half = self.arrivals().filter(|half| half.classes().of(Class::Reordered) > 0)?;
        Some(half.rare_counts().reordered_by_ns as f64 / 1e6)
    }

    /// None in a trace that shows both ends of a path: it has each packet several times by design.
    fn capture_duplicates(&self) -> Option<u64> {
        let is_known =
            self.half.is_some() || self.analysis.results.pairing.is_some() || !self.flow.shows_path();
        is_known.then_some(self.flow.rarities(self.side).copies.into())
    }

    /// The half-connection, if it is known how many segments each of its packets holds.
    pub(super) fn segmented(&self) -> Option<&'a HalfConnection> {
        self.half.filter(|half| !half.hides_segments())
    }

    pub(super) fn data_segments(&self) -> Option<u64> {
        self.segmented().map(HalfConnection::data_segments)
    }

    /// Loss events of TCP.
    pub(super) fn tcp_loss_events(&self) -> Option<u64> {
        self.half.and_then(HalfConnection::loss_events).map(u64::from)
    }

    /// Loss events of all data segments sent: those that the capture has, and those lost before it.
    pub(super) fn tcp_loss_event_rate(&self) -> Option<f64> {
        let half = self.half?;
        let segments = half.data_segments().saturating_add(half.lost_before().segments().into());
        let events = self.tcp_loss_events().filter(|_| segments > 0)?;
        Some(events as f64 / segments as f64)
    }
}
