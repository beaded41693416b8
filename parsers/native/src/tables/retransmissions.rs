//! Columns of what TCP repeated, and why.
//!
//! What cannot be seen from where the capture was taken is null: at the receiver nobody knows what
//! made the sender repeat, at the sender nobody knows in which order the packets arrived.

use super::Columns;
use super::flows::FlowRow;
use crate::flow::tcp::HalfConnection;
use crate::flow::tcp::classify::class::Class;
use crate::flow::tcp::vantage::Vantage;

/// From here on a vantage point is believed in, and what cannot be seen from there is null.
pub(super) const BELIEVED: f64 = 0.75;

impl<'a> FlowRow<'a> {
    /// Where the capture was taken, if that is believed.
    pub(super) fn believed_vantage(&self) -> Option<Vantage> {
        self.tap.filter(|(_, confidence)| *confidence >= BELIEVED).map(|(vantage, _)| vantage)
    }

    pub(super) fn half_connection_unless(&self, vantage: Vantage) -> Option<&'a HalfConnection> {
        self.half.filter(|_| self.believed_vantage() != Some(vantage))
    }

    /// Why some classes are null.
    pub(super) fn note_on_vantage(&self) -> Option<&'static str> {
        if self.flow.shows_both_ends() {
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

/// Columns of `parsers/schema/classes.py`.
pub(super) fn classes(rows: &[FlowRow<'_>], columns: &mut Columns) {
    repetitions(rows, columns);
    path(rows, columns);
    let counts = |columns: &mut Columns, name: &str, value: fn(&HalfConnection) -> Option<u64>| {
        columns.u64(name, rows.iter().map(|row| row.half.and_then(value)));
    };
    counts(columns, "ect_packets", |half| Some(half.ecn().ect_packets.into()));
    counts(columns, "ce_packets", |half| Some(half.ecn().ce_packets.into()));
    counts(columns, "ece_packets", |half| Some(half.ecn().ece_packets.into()));
    counts(columns, "cwr_packets", |half| Some(half.ecn().cwr_packets.into()));
    counts(columns, "super_segments", |half| {
        half.wire_segments().map(|_| half.rare_counts().super_segments.into())
    });
    counts(columns, "wire_segments", HalfConnection::wire_segments);
    losses(rows, columns);
}

/// What the sender sent again, and its probes.
fn repetitions(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let mut reasons = |name: &str, value: fn(&HalfConnection) -> u32| {
        let value =
            |row: &FlowRow<'_>| row.half_connection_unless(Vantage::Receiver).map(|half| value(half).into());
        columns.u64(name, rows.iter().map(value));
    };
    reasons("fast_retransmissions", |half| half.classes().of(Class::Fast));
    reasons("sack_retransmissions", |half| half.classes().of(Class::Sack));
    reasons("rto_retransmissions", |half| half.classes().of(Class::Rto));
    reasons("tail_loss_probes", |half| half.classes().of(Class::TailLossProbe));
    reasons("unexplained_retransmissions", |half| half.classes().of(Class::Unexplained));
    reasons("timeouts", |half| half.rare_counts().timeouts);
    reasons("rto_backoff_max", |half| half.rare_counts().timeouts_in_a_row);
    let mut counts = |name: &str, value: fn(&HalfConnection) -> u32| {
        columns.u64(name, rows.iter().map(|row| row.half.map(|half| u64::from(value(half)))));
    };
    counts("syn_retransmissions", |half| half.classes().of(Class::Syn));
    counts("fin_retransmissions", |half| half.classes().of(Class::Fin));
    counts("spurious_retransmissions", |half| half.tally().spurious);
    counts("keep_alives", |half| half.classes().of(Class::KeepAlive));
    counts("zero_window_probes", |half| half.classes().of(Class::ZeroWindowProbe));
    let window_full = |row: &FlowRow<'_>| {
        let half = row.half.filter(|half| half.knows_window_ends())?;
        Some(u64::from(half.window_full()))
    };
    columns.u64("window_full", rows.iter().map(window_full));
}

/// What the path did to the packets.
fn path(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let seen = |row: &FlowRow<'_>| {
        row.half_connection_unless(Vantage::Sender)
            .map(|half| (half.classes().of(Class::Reordered), half.rare_counts()))
    };
    let reordered = |row: &FlowRow<'_>| seen(row).map(|(reordered, _)| u64::from(reordered));
    columns.u64("reordered_packets", rows.iter().map(reordered));
    let extent =
        |row: &FlowRow<'_>| seen(row).map(|(_, rare_counts)| u64::from(rare_counts.reordered_by_packets));
    columns.u64("reordering_max_packets", rows.iter().map(extent));
    let late_ms = |row: &FlowRow<'_>| {
        let (_, rare_counts) = seen(row).filter(|(reordered, _)| *reordered > 0)?;
        Some(rare_counts.reordered_by_ns as f64 / 1e6)
    };
    columns.f64("reordering_max_ms", rows.iter().map(late_ms));
    let doubled = |row: &FlowRow<'_>| row.half.map(|half| half.classes().of(Class::NetworkDuplicate).into());
    columns.u64("network_duplicates", rows.iter().map(doubled));
    // What shows a packet at both ends of its way shows it again on purpose.
    let copies = |row: &FlowRow<'_>| {
        let is_known = row.half.is_some() || row.analysis.pairing.is_some() || !row.flow.shows_both_ends();
        is_known.then_some(u64::from(row.flow.rarities(row.side).copies))
    };
    columns.u64("capture_duplicates", rows.iter().map(copies));
}

/// What was lost, and where.
fn losses(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let bytes = |row: &FlowRow<'_>| row.half.filter(|_| !row.counts_packets()).map(HalfConnection::gap_bytes);
    columns.u64("capture_gap_bytes", rows.iter().map(bytes));
    let before = |row: &FlowRow<'_>| {
        row.half_connection_unless(Vantage::Sender).map(|half| u64::from(half.lost_before().segments()))
    };
    columns.u64("lost_before_tap", rows.iter().map(before));
    let after = |row: &FlowRow<'_>| {
        row.half_connection_unless(Vantage::Receiver).map(|half| u64::from(half.lost_after().segments()))
    };
    columns.u64("lost_after_tap", rows.iter().map(after));
}

/// Loss events of TCP.
pub(super) fn loss_events(row: &FlowRow<'_>) -> Option<u64> {
    row.half.and_then(HalfConnection::loss_events).map(u64::from)
}

/// Of all segments sent.
pub(super) fn loss_event_rate(row: &FlowRow<'_>) -> Option<f64> {
    let segments = row.half?.wire_segments().unwrap_or(row.direction.data_packets);
    let events = loss_events(row).filter(|_| segments > 0)?;
    Some(events as f64 / segments as f64)
}
