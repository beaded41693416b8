//! What is counted of one direction of a flow, as integers that add up.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::flow::tcp::classify::class::Class;
use crate::flow::tcp::ecn::Ecn;
use crate::flow::tcp::{Connection, HalfConnection};
use crate::long_array;
use crate::packet::event::Numbering;
use crate::packet::key::Side;

named_enum! {
    /// A count of one direction. The usual ones, which are rarely 0, come first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Count {
        Packets = "packets",
        WireBytes = "wire_bytes",
        PayloadBytes = "payload_bytes",
        GoodputBytes = "goodput_bytes",
        DataPackets = "data_packets",
        TcpPackets = "tcp_packets",
        TcpDataPackets = "tcp_data_packets",
        /// Data segments of TCP whose losses before the capture would be seen: what arrived and what was lost.
        ArrivalsShown = "arrivals_shown",
        /// Data segments of TCP that passed the capture and whose losses beyond it would be seen.
        LossesShown = "losses_shown",
        RttSumNs = "rtt_sum_ns",
        Requests = "requests",
        // Those from here on are `RARE`.
        CutPackets = "cut_packets",
        /// Data segments of TCP less its data packets.
        ExtraSegments = "extra_segments",
        RetransmittedSegments = "retransmitted_segments",
        RetransmittedPackets = "retransmitted_packets",
        RetransmittedBytes = "retransmitted_bytes",
        SpuriousRetransmissions = "spurious_retransmissions",
        /// Retransmitted segments by class, where what made the sender repeat can be known.
        FastRetransmissions = "fast_retransmissions",
        SackRetransmissions = "sack_retransmissions",
        RtoRetransmissions = "rto_retransmissions",
        TailLossProbes = "tail_loss_probes",
        UnexplainedRetransmissions = "unexplained_retransmissions",
        ReorderedPackets = "reordered_packets",
        /// Packets of DCCP, RTP and numbered UDP that arrived.
        NumberedPackets = "numbered_packets",
        LostBefore = "lost_before_capture",
        LostBehind = "lost_behind_capture",
        CaptureGapBytes = "capture_gap_bytes",
        DuplicateAcks = "duplicate_acks",
        ZeroWindows = "zero_windows",
        EctPackets = "ect_packets",
        Ect1Packets = "ect1_packets",
        CePackets = "ce_packets",
        SynRetransmissions = "syn_retransmissions",
        ConnectionAttempts = "connection_attempts",
        ConnectionsEstablished = "connections_established",
        ConnectionsRefused = "connections_refused",
        ConnectionsUnanswered = "connections_unanswered",
        RequestsUnanswered = "requests_unanswered",
        Stalls = "stalls",
        /// Those of segments larger than all that the connection had carried in this direction.
        LargeStalls = "large_stalls",
        /// Holes of segments larger than all that came, which nothing fills.
        LargeHoles = "large_holes",
        DnsQueries = "dns_queries",
        DnsFailures = "dns_failures",
        DnsUnanswered = "dns_unanswered",
        EchoRequests = "echo_requests",
        EchoUnanswered = "echo_unanswered",
        /// Packets of which both ends are shown, and what became of them.
        PathPackets = "path_packets",
        PathLost = "path_lost_packets",
        WifiFrames = "wifi_frames",
        WifiBytes = "wifi_bytes",
        WifiRetries = "wifi_retries",
        WifiTimedFrames = "wifi_timed_frames",
        WifiAirtimeNs = "wifi_airtime_ns",
        WifiSignalSamples = "wifi_signal_samples",
        WifiSignalSum = "wifi_signal_sum_dbm",
    }
}

/// Counts of retransmissions, in the order of their classes ([`Class::RETRANSMISSIONS`]).
pub const BY_CLASS: [Count; Class::RETRANSMISSIONS.len()] = [
    Count::FastRetransmissions,
    Count::SackRetransmissions,
    Count::RtoRetransmissions,
    Count::TailLossProbes,
    Count::UnexplainedRetransmissions,
];

/// Number of the usual counts.
const USUAL: usize = Count::CutPackets as usize;
const RARE: usize = Count::ALL.len() - USUAL;

/// Counts of one direction, or of many. They are signed: a difference may take back what proved
/// wrong later, and sums stay exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    usual: [i64; USUAL],
    /// None while all are 0.
    #[serde(with = "long_array")]
    rare: Option<Box<[i64; RARE]>>,
}

impl Counts {
    /// All that `flow` counted of the packets of `side`.
    pub fn of(flow: &Flow, side: Side) -> Self {
        let direction = flow.direction(side);
        let mut counts = Self::default();
        counts.add(Count::Packets, direction.packets);
        counts.add(Count::WireBytes, direction.wire_bytes);
        counts.add(Count::PayloadBytes, direction.payload_bytes);
        counts.add(Count::DataPackets, direction.data_packets);
        counts.add(Count::CutPackets, direction.cut_packets);
        match flow.transport.tcp.as_deref().filter(|tcp| tcp.was_seen()) {
            Some(connection) => {
                counts.add(Count::TcpPackets, direction.packets);
                counts.add(Count::TcpDataPackets, direction.data_packets);
                counts.add_half(flow, side, connection);
            }
            None => {
                counts.add(Count::GoodputBytes, direction.payload_bytes);
                counts.add_marks(flow.transport.ecn(side));
                if let Some(numbered) = flow.transport.supposed_arrivals(side) {
                    counts.add(Count::NumberedPackets, numbered.received);
                    counts.add(Count::LostBefore, numbered.lost - numbered.pending);
                    counts.add(Count::ReorderedPackets, numbered.reordered);
                }
                if let Some((rtt, _)) = flow.transport.rtt_of_reports(side) {
                    counts.add(Count::RttSumNs, rtt.range.sum_ns());
                }
            }
        }
        counts
    }

    fn add_half(&mut self, flow: &Flow, side: Side, connection: &Connection) {
        let half = connection.half(side);
        let of_packets = flow.deliveries().filter(|both| both.numbering == Numbering::Packets);
        let (unique, repeated) = match of_packets.map(|both| both.of(side)) {
            Some(delivery) => (delivery.unique_bytes, delivery.repeated_bytes),
            None => (half.sent.unique_bytes, half.tally().retransmitted_bytes),
        };
        let packets = i64::try_from(flow.direction(side).data_packets).unwrap_or(i64::MAX);
        let segments = i64::try_from(half.data_segments()).unwrap_or(i64::MAX);
        self.change(Count::ExtraSegments, segments.saturating_sub(packets));
        self.add(Count::GoodputBytes, unique);
        self.add(Count::RetransmittedBytes, repeated);
        self.add(Count::DuplicateAcks, connection.half(side.other()).acknowledged.duplicates);
        self.add(Count::ZeroWindows, half.windows.closed_packets());
        self.add_marks(half.ecn());
        self.add(Count::RttSumNs, half.path.round_trips.sum_ns());
        if half.has_recovered() || half.is_simulated() {
            self.add_recovery(half, of_packets.is_none());
        }
    }

    fn add_marks(&mut self, ecn: Ecn) {
        self.add(Count::EctPackets, ecn.ect_packets());
        self.add(Count::Ect1Packets, ecn.ect1_packets);
        self.add(Count::CePackets, ecn.ce_packets);
    }

    #[inline(never)]
    fn add_recovery(&mut self, half: &HalfConnection, counts_bytes: bool) {
        let (tally, classes) = (half.tally(), half.classes());
        self.add(Count::RetransmittedSegments, half.retransmitted_segments());
        self.add(Count::RetransmittedPackets, tally.retransmitted_packets);
        self.add(Count::SpuriousRetransmissions, tally.spurious);
        for (count, class) in BY_CLASS.into_iter().zip(Class::RETRANSMISSIONS) {
            self.add(count, classes.of(class));
        }
        self.add(Count::ReorderedPackets, classes.of(Class::Reordered));
        self.add(Count::SynRetransmissions, classes.of(Class::Syn));
        self.add(Count::LostBefore, half.repaired_before().segments());
        // What is known to be lost counts when it was sent.
        if !half.is_simulated() {
            self.add(Count::LostBehind, half.lost_after().segments());
        }
        if counts_bytes {
            self.add(Count::CaptureGapBytes, half.gap_bytes());
        }
    }

    pub fn get(&self, count: Count) -> i64 {
        match (count as usize).checked_sub(USUAL) {
            None => self.usual.get(count as usize).copied().unwrap_or_default(),
            Some(rare) => self.rare.as_ref().and_then(|counts| counts.get(rare).copied()).unwrap_or_default(),
        }
    }

    /// Data segments of TCP as the wire carried them.
    pub fn tcp_data_segments(&self) -> i64 {
        self.get(Count::TcpDataPackets).saturating_add(self.get(Count::ExtraSegments))
    }

    /// Add to one count; documents may have any number.
    pub fn add(&mut self, count: Count, number: impl Into<u64>) {
        self.change(count, i64::try_from(number.into()).unwrap_or(i64::MAX));
    }

    pub fn change(&mut self, count: Count, by: i64) {
        if by == 0 {
            return;
        }
        let place = match (count as usize).checked_sub(USUAL) {
            None => self.usual.get_mut(count as usize),
            Some(rare) => self.rare.get_or_insert_with(|| Box::new([0; RARE])).get_mut(rare),
        };
        if let Some(place) = place {
            *place = place.saturating_add(by);
        }
    }

    /// Set a count to 0.
    pub fn clear(&mut self, count: Count) {
        self.change(count, self.get(count).saturating_neg());
    }

    pub fn is_zero(&self) -> bool {
        self.usual.iter().chain(self.rare.iter().flat_map(|rare| rare.iter())).all(|&count| count == 0)
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        for (sum, number) in self.usual.iter_mut().zip(&other.usual) {
            *sum = sum.saturating_add(*number);
        }
        let Some(rare) = &other.rare else { return };
        let sums = self.rare.get_or_insert_with(|| Box::new([0; RARE]));
        for (sum, number) in sums.iter_mut().zip(rare.iter()) {
            *sum = sum.saturating_add(*number);
        }
    }
}

impl Sub<&Self> for Counts {
    type Output = Self;

    fn sub(mut self, other: &Self) -> Self {
        for (left, number) in self.usual.iter_mut().zip(&other.usual) {
            *left = left.saturating_sub(*number);
        }
        if let Some(rare) = &other.rare {
            let left = self.rare.get_or_insert_with(|| Box::new([0; RARE]));
            for (left, number) in left.iter_mut().zip(rare.iter()) {
                *left = left.saturating_sub(*number);
            }
        }
        // Most intervals after one with losses have none.
        self.rare = self.rare.filter(|rare| rare.iter().any(|&count| count != 0));
        self
    }
}
