//! Counts and statistics of one side, for tables.

use super::HalfConnection;
use crate::flow::tcp::accurate_ecn::CeFeedback;
use crate::flow::tcp::classify::class::{ClassCounts, Evidence};
use crate::flow::tcp::ecn::Ecn;
use crate::flow::tcp::loss_events::LossEvents;
use crate::flow::tcp::recovery::recovery_state::{RareRecoveryCounts, RetransmissionCounts};
use crate::flow::tcp::recovery::retransmission::SpuriousRetransmission;
use crate::flow::tcp::recovery::upstream_loss::UpstreamLoss;
use crate::flow::tcp::rounds::Rounds;

/// A capture is at a side that is nearer than this.
pub(in crate::flow::tcp) const AT_SENDER_NS: i64 = 500_000;

impl HalfConnection {
    /// Bytes skipped and never seen.
    pub fn missing_bytes(&self) -> u64 {
        self.upstream_loss().map_or(0, |upstream_loss| upstream_loss.holes.missing())
    }

    /// Whether there were more holes than the limit.
    pub fn lost_track_of_holes(&self) -> bool {
        self.upstream_loss().is_some_and(|upstream_loss| upstream_loss.holes.overflowed())
    }

    /// Losses upstream of the capture point: data retransmitted late or never seen.
    pub fn lost_before(&self) -> LossEvents {
        let (mut events, rtt_ns) = (self.repaired_before(), self.path_ns().unwrap_or(0));
        for (opened_ns, segments) in self.never_repaired() {
            events.note(opened_ns, rtt_ns, segments);
        }
        events
    }

    /// Those of them that were retransmitted.
    pub fn repaired_before(&self) -> LossEvents {
        self.upstream_loss().map_or_else(LossEvents::default, |upstream_loss| upstream_loss.events)
    }

    /// Those of them that were not, so far: when the hole opened, and its segments.
    pub fn never_repaired(&self) -> impl Iterator<Item = (i64, u32)> {
        self.never_filled().map(|(opened_ns, bytes)| (opened_ns, self.on_wire.packets_of(bytes)))
    }

    /// When the first hole of full segments opened that nothing filled so far, if no segment of `seen` bytes, the
    /// largest one, is full.
    pub fn hole_of_full_segments(&self, seen: u32) -> Option<i64> {
        let full = self.on_wire.known_longest().filter(|full| seen < full.get())?;
        self.never_filled().find(|&(_, bytes)| bytes >= full.get()).map(|(opened_ns, _)| opened_ns)
    }

    /// Holes that were neither filled nor acknowledged so far: when they opened, and their bytes.
    fn never_filled(&self) -> impl Iterator<Item = (i64, u32)> {
        let holes =
            self.upstream_loss().into_iter().flat_map(|upstream_loss| upstream_loss.holes.never_filled());
        holes.map(|(bytes, opening)| (opening.time_ns, u32::try_from(bytes).unwrap_or(u32::MAX)))
    }

    /// Losses downstream of the capture point: retransmissions not known to be spurious.
    pub fn lost_after(&self) -> LossEvents {
        if self.is_simulated() {
            return self.rare_state.as_ref().map_or_else(LossEvents::default, |state| state.losses);
        }
        self.recovery.as_ref().map_or_else(LossEvents::default, |recovery| recovery.after())
    }

    /// Loss events on the whole path; None if there were losses and no round-trip time to group
    /// them.
    pub fn loss_events(&self) -> Option<u32> {
        let count = self.lost_before().count().saturating_add(self.lost_after().count());
        (count == 0 || self.path_ns().is_some()).then_some(count)
    }

    /// Whether the ends of the peer's windows are known.
    pub fn knows_window_ends(&self) -> bool {
        self.options.window_shift.is_some()
    }

    /// Bytes acknowledged and never seen.
    pub fn gap_bytes(&self) -> u64 {
        self.upstream_loss().map_or(0, |upstream_loss| upstream_loss.holes.gap_bytes())
    }

    /// Whether data, not only a FIN, are acknowledged after the last that the capture has.
    pub fn ends_unseen(&self) -> bool {
        let position = self.sent.position(self.acknowledged.number);
        position.is_some_and(|position| position > self.sent.next + 1)
    }

    /// Data segments as the wire carried them; in a trace that numbers packets, those with a number.
    pub fn data_segments(&self) -> u64 {
        u64::from(self.sent.segments).saturating_add(self.rare_counts().extra_segments)
    }

    /// Retransmissions as the wire carried them.
    pub fn retransmitted_segments(&self) -> u32 {
        self.tally().retransmitted_segments()
    }

    /// Whether packets are longer than the wire carries and nothing shows the length of its segments.
    pub fn hides_segments(&self) -> bool {
        self.on_wire.known_longest().is_none() && self.rare_counts().learning.has_samples()
    }

    /// Evidence that retransmission `number` was spurious.
    pub fn verdict(&self, number: u32) -> Option<Evidence> {
        self.recovery.as_ref()?.verdict(number)
    }

    /// Losses upstream of the capture point, if any.
    pub(crate) fn upstream_loss(&self) -> Option<&UpstreamLoss> {
        self.recovery.as_ref()?.upstream_loss.as_deref()
    }

    /// The first spurious retransmissions.
    pub(in crate::flow) fn verdicts(&self) -> &[SpuriousRetransmission] {
        self.recovery.as_ref().map_or(&[], |recovery| recovery.verdicts())
    }

    /// Whether anything was repeated, late or reported as missing.
    pub fn has_recovered(&self) -> bool {
        self.recovery.is_some()
    }

    pub fn tally(&self) -> RetransmissionCounts {
        self.recovery.as_ref().map_or_else(RetransmissionCounts::default, |recovery| recovery.tally)
    }

    /// Segments on the wire by class.
    pub fn classes(&self) -> ClassCounts {
        self.recovery.as_ref().map_or_else(ClassCounts::default, |recovery| recovery.classes())
    }

    pub fn rare_counts(&self) -> RareRecoveryCounts {
        self.recovery.as_ref().map_or_else(RareRecoveryCounts::default, |recovery| recovery.rare_counts())
    }

    /// Packets that filled the peer's window.
    pub fn window_full(&self) -> u32 {
        self.recovery.as_ref().map_or(0, |recovery| recovery.window_full)
    }

    /// Congestion marks in its packets.
    pub fn ecn(&self) -> Ecn {
        self.rare_state.as_ref().map_or_else(Ecn::default, |rare_state| rare_state.ecn)
    }

    /// Whether the trace shows fields of its IP headers.
    pub fn shows_ip_header(&self) -> bool {
        self.on_wire.ttl > 0 || self.is_simulated() || self.ecn().ect_packets() > 0
    }

    /// Marks on its packets as the other side counts them, if that is accurate ECN.
    pub fn ce_feedback(&self) -> Option<&CeFeedback> {
        self.rare_state.as_ref()?.ce_feedback.as_deref()
    }

    /// Data segments without RTT sample because too many were outstanding.
    pub fn unwatched(&self) -> u32 {
        self.rounds().map_or(0, |rounds| rounds.unwatched)
    }

    /// RTT samples that seem to include a delayed-acknowledgement timer.
    pub fn delayed_acks(&self) -> u32 {
        self.rare_state.as_ref().map_or(0, |rare_state| rare_state.delayed_acks)
    }

    /// Shortest round-trip time between the capture and this side; None if unknown.
    pub fn near_ns(&self) -> Option<i64> {
        let of_syn_ns = Some(self.path.near_ns()).filter(|&ns| ns > 0);
        let echoes = self.rare_state.as_ref().and_then(|rare_state| rare_state.echoes.as_ref());
        of_syn_ns.into_iter().chain(echoes.and_then(|echoes| echoes.shortest_ns())).min()
    }

    /// Whether this side is known to be away from the capture.
    pub fn is_far(&self) -> bool {
        self.near_ns().is_some_and(|ns| ns >= AT_SENDER_NS)
    }

    /// Whether this side repairs losses after a timeout.
    pub(in crate::flow::tcp) fn repairs_by_timeout(&self) -> bool {
        let episode = self.recovery.as_ref().and_then(|recovery| recovery.episode);
        episode.is_some_and(|episode| episode.is_timeout() && episode.ended_ns().is_none())
    }

    /// Median round-trip time between the capture and this side, in ms.
    pub fn sender_rtt_ms(&self) -> Option<f64> {
        self.rare_state.as_ref()?.echoes.as_ref()?.median_ms()
    }

    /// Rounds of this side's data; None if it sent none.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.flight.rounds()
    }

    /// Largest flight; None if it sent no data.
    pub fn max_flight_bytes(&self) -> Option<u32> {
        self.flight.max_bytes(self.outstanding_bytes())
    }

    /// Largest congestion window that the flight shows.
    pub fn max_cwnd_bytes(&self) -> Option<u32> {
        self.flight.max_cwnd(self.outstanding_bytes())
    }

    /// Mean flight until `end_ns` over the time with data in flight.
    pub fn mean_flight_bytes(&self, end_ns: i64) -> Option<f64> {
        self.flight.mean_bytes(self.outstanding_bytes(), end_ns)
    }
}
