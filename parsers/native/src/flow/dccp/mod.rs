//! One DCCP connection as the capture shows it.
//!
//! Read RFC 4340 sections 7 (sequence numbers), 8 (connection states) and 6 (features) with this
//! file. Every packet of a direction increments the sequence number, whatever its type, so a gap at
//! the capture point is a packet that did not reach it.

pub mod ccid;
mod feedback_options;
#[cfg(test)]
mod tests;
mod vantage;

use serde::{Deserialize, Serialize};

use super::delivery::{Delivery, NumberedCounts, Numbers};
use super::outstanding::{Outstanding, Pool};
use super::rtt_statistics::{LogHistogram, RttStatistics};
use super::sequences::{NumberArrival, NumberedArrivals, Sequences};
use super::tcp::ConnectionState;
use crate::packet::dccp::{DccpHeader, DccpType};
use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::packet::seq::distance;
use crate::plural::all_counted;
use crate::wire::dccp::options::{DccpOption, Feature, options};
use crate::wire::probe::SenderClock;

/// Limit of unacknowledged packets in one direction. CCID 3 acknowledges once per RTT, so this is a
/// window of 4,096 packets; older ones give no RTT.
const MAX_OUTSTANDING: usize = 4_096;
/// Elapsed times are in units of 10 µs (RFC 4340 section 13.2).
const ELAPSED_UNIT_NS: i64 = 10_000;
/// The feature that selects the congestion control of a half-connection (RFC 4340 section 6.4).
const CCID: u8 = 1;
/// Bits of sequence numbers.
const NUMBER_BITS: u32 = 48;
/// Bits of short sequence numbers.
const SHORT_BITS: u32 = 24;

#[derive(Debug, Serialize, Deserialize)]
pub struct HalfConnection {
    /// Its sequence numbers at the capture point.
    sequences: Sequences,
    received_bytes: u64,
    /// Packets not acknowledged yet, by the low 32 bits of their numbers, but no Acks: nobody answers those, and
    /// what acknowledges one is sent for another reason, at any time.
    outstanding: Outstanding,
    /// Congestion control of its data, once both sides agree.
    pub ccid: Option<u8>,
    /// Options with an impossible length.
    bad_options: u32,
    /// Acknowledgements of packets that the capture had not shown.
    acks_of_unseen: u32,
    /// Elapsed times longer than the time since the packet.
    impossible_elapsed_times: u32,
    has_closed: bool,
    /// Time to live of its first packet; 0 before that.
    ttl: u8,
    /// TFRC state of its data and reports.
    ccid_half: ccid::CcidHalf,
    /// RTT of its packets, less the time that the other side held the acknowledgement.
    pub rtt: RttStatistics,
    pub rtt_sketch: LogHistogram,
}

impl Default for HalfConnection {
    fn default() -> Self {
        Self {
            sequences: Sequences::new(NUMBER_BITS),
            received_bytes: 0,
            outstanding: Outstanding::default(),
            ccid: None,
            bad_options: 0,
            acks_of_unseen: 0,
            impossible_elapsed_times: 0,
            has_closed: false,
            ttl: 0,
            ccid_half: ccid::CcidHalf::default(),
            rtt: RttStatistics::default(),
            rtt_sketch: LogHistogram::default(),
        }
    }
}

/// Both halves and what belongs to neither.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Connection {
    halves: [HalfConnection; 2],
    /// The side that sent the first Request.
    opener: Option<Side>,
    /// Service of the connection (RFC 4340 section 8.1.2).
    pub service_code: Option<u32>,
    /// Times of the first Request and Response, and the number of Requests.
    request_ns: Option<i64>,
    response_ns: Option<i64>,
    requests: u32,
    handshake_done: bool,
    /// From Request to the packet that acknowledges the Response.
    pub handshake_rtt_ns: Option<u64>,
    reset_by: Option<(Side, u8)>,
    /// The two parts of the handshake: Request to Response, and Response to its acknowledgement.
    handshake_ns: [Option<u64>; 2],
    /// Time of the last Request.
    last_request_ns: Option<i64>,
    latest: LatestPacket,
}

/// Facts of the latest packet.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct LatestPacket {
    seq: u64,
    /// Meaning of its number: new, duplicate, or far from the others.
    arrival: Option<NumberArrival>,
    /// Restarts of its sender's numbering.
    restarts: u64,
    /// The full number that it acknowledges.
    ack: Option<u64>,
    rtt_ns: Option<u64>,
    /// Whether the packet before it is missing.
    follows_gap: bool,
    acknowledges_unseen: bool,
    has_impossible_elapsed_time: bool,
}

/// Reset code of a connection that closed normally (RFC 4340 section 5.6).
const CLOSED: u8 = 1;

impl Connection {
    /// The capture has a gap here.
    pub fn leave_gap(&mut self) {
        self.halves.iter_mut().for_each(|half| half.sequences.leave_gap());
    }

    pub fn half(&self, side: Side) -> &HalfConnection {
        &self.halves[side as usize]
    }

    /// The side that opened the connection, if the capture shows it.
    pub fn opener(&self) -> Option<Side> {
        self.opener
    }

    /// State so far, in the terms of TCP.
    pub fn state(&self) -> ConnectionState {
        let closing = self.halves.iter().filter(|half| half.has_closed).count();
        match (self.reset_by, closing) {
            (Some((_, CLOSED)), _) => ConnectionState::Closed,
            (Some((by, _)), _) if self.opener == Some(by.other()) && self.response_ns.is_none() => {
                ConnectionState::Refused
            }
            (Some(_), _) => ConnectionState::Reset,
            (None, 1..) => ConnectionState::HalfClosed,
            (None, _) if self.opener.is_none() => ConnectionState::Midstream,
            (None, _) if self.handshake_done => ConnectionState::Established,
            (None, _) if self.response_ns.is_some() => ConnectionState::Opening,
            (None, _) => ConnectionState::Attempted,
        }
    }

    /// Process a packet that `side` sent, with the options after its header. Returns the RTT of the
    /// other side's packet that it acknowledges.
    pub fn on_packet(
        &mut self,
        side: Side,
        packet: &Packet,
        header: &DccpHeader,
        after: &[u8],
        pool: &mut Pool,
    ) -> Option<u64> {
        let time_ns = packet.time_ns;
        let [low, high] = &mut self.halves;
        let (sender, receiver) = match side {
            Side::Low => (low, high),
            Side::High => (high, low),
        };
        if sender.ttl == 0 {
            sender.ttl = packet.network.ttl;
        }
        self.latest = sender.take_number(header, packet, pool);
        let latest = &mut self.latest;
        let mut elapsed_ns = 0;
        for option in options(after) {
            match option {
                DccpOption::ElapsedTime(elapsed) => elapsed_ns = i64::from(elapsed) * ELAPSED_UNIT_NS,
                DccpOption::Feature(feature) => agree_on_ccid(sender, receiver, feature),
                DccpOption::Malformed(_) => sender.bad_options = sender.bad_options.saturating_add(1),
                _ => {}
            }
        }
        if let Some(ack) = header.ack {
            receiver.take_ack(ack, header, (time_ns, elapsed_ns), pool, latest);
        }
        let rtt_ns = latest.rtt_ns;
        self.take_state(side, header, time_ns);
        rtt_ns
    }

    fn take_state(&mut self, side: Side, header: &DccpHeader, time_ns: i64) {
        self.service_code = self.service_code.or(header.service_code);
        match header.kind {
            DccpType::Request => {
                self.opener.get_or_insert(side);
                self.request_ns.get_or_insert(time_ns);
                self.last_request_ns = Some(time_ns);
                self.requests = self.requests.saturating_add(1);
            }
            DccpType::Response => {
                self.opener.get_or_insert(side.other());
                if self.response_ns.is_none() {
                    self.handshake_ns[0] = time_between(self.last_request_ns, time_ns);
                }
                self.response_ns.get_or_insert(time_ns);
            }
            DccpType::CloseReq | DccpType::Close => self.halves[side as usize].has_closed = true,
            DccpType::Reset => {
                self.reset_by.get_or_insert((side, header.reset_code.unwrap_or(0)));
            }
            _ if self.opener == Some(side) && self.response_ns.is_some() && header.ack.is_some() => {
                self.complete_handshake(time_ns);
            }
            _ => {}
        }
    }

    /// The opener answers the Response. After a retransmitted Request it is unknown which one was
    /// answered.
    fn complete_handshake(&mut self, time_ns: i64) {
        let was_done = std::mem::replace(&mut self.handshake_done, true);
        if was_done {
            return;
        }
        self.handshake_ns[1] = time_between(self.response_ns, time_ns);
        if self.requests == 1 {
            self.handshake_rtt_ns = time_between(self.request_ns, time_ns);
        }
    }
}

fn time_between(since: Option<i64>, time_ns: i64) -> Option<u64> {
    u64::try_from(time_ns.checked_sub(since?)?).ok()
}

/// A Confirm of the CCID names its half-connection: that of the data sent by the feature's owner
/// (RFC 4340 section 6.4: the sender's, "L" is the owner of the option).
fn agree_on_ccid(sender: &mut HalfConnection, receiver: &mut HalfConnection, feature: Feature<'_>) {
    if feature.number == CCID && feature.confirms {
        let owner = if feature.is_local { sender } else { receiver };
        owner.ccid = feature.values.first().copied().or(owner.ccid);
    }
}

impl HalfConnection {
    /// Problems of this connection as text.
    pub fn findings(&self) -> impl Iterator<Item = String> {
        all_counted([
            (self.bad_options, "option[s] with impossible lengths"),
            (self.acks_of_unseen, "packet[s] acknowledged but not in the capture"),
            (self.impossible_elapsed_times, "acknowledgement[s] with an impossible elapsed time"),
        ])
    }

    /// What its numbers show so far of losses before the capture.
    pub fn arrivals(&self) -> NumberedArrivals {
        self.sequences.arrivals()
    }

    /// Delivery of its packets at the capture point.
    pub fn delivery(&self) -> Option<Delivery> {
        let sent = self.sequences.sent();
        if sent == 0 {
            return None;
        }
        let Sequences { received, duplicates, reordered, restarts, .. } = self.sequences;
        let mut delivery = Delivery::default();
        delivery.sent = sent;
        delivery.received = received;
        delivery.received_bytes = self.received_bytes;
        delivery.lost = sent.saturating_sub(received);
        delivery.duplicates = duplicates;
        delivery.counted = Some(NumberedCounts {
            by: Numbers::Dccp,
            reordered,
            restarts,
            has_delays: false,
            clock: SenderClock::Unstated,
        });
        Some(delivery)
    }

    fn take_number(&mut self, header: &DccpHeader, packet: &Packet, pool: &mut Pool) -> LatestPacket {
        let seq = self.whole(header.seq, header.is_short);
        // Captures have no send times to compare with numbers.
        let before = self.sequences.highest_in_run();
        let arrival = self.sequences.take(seq, 0);
        let ahead = before.map_or(1, |before| distance(seq, before as u64, NUMBER_BITS));
        if arrival == NumberArrival::New {
            self.received_bytes += u64::from(packet.wire_bytes);
        }
        if self.outstanding.count() == MAX_OUTSTANDING {
            self.outstanding.drop_oldest(pool);
        }
        if header.kind != DccpType::Ack {
            // Without space in the pool this packet gives no RTT.
            let _ = self.outstanding.push(seq as u32, packet.time_ns, pool);
        }
        let restarts = self.sequences.stretch();
        LatestPacket {
            seq,
            arrival: Some(arrival),
            restarts,
            follows_gap: ahead > 1,
            ..LatestPacket::default()
        }
    }

    /// Process an acknowledgement: the other side received packet `ack` of this half `elapsed_ns`
    /// before it sent this.
    fn take_ack(
        &mut self,
        ack: u64,
        header: &DccpHeader,
        (time_ns, elapsed_ns): (i64, i64),
        pool: &mut Pool,
        latest: &mut LatestPacket,
    ) {
        let ack = self.whole(ack, header.is_short);
        latest.ack = Some(ack);
        let Some(sent_ns) = self.outstanding.pop_through(ack as u32, pool) else {
            let is_ahead =
                self.sequences.highest().is_none_or(|highest| distance(ack, highest as u64, NUMBER_BITS) > 0);
            self.acks_of_unseen = self.acks_of_unseen.saturating_add(u32::from(is_ahead));
            latest.acknowledges_unseen = is_ahead;
            return;
        };
        let rtt_ns = time_ns.saturating_sub(sent_ns).saturating_sub(elapsed_ns);
        if (-ELAPSED_UNIT_NS..=0).contains(&rtt_ns) {
            // At the receiver nothing is left, or less, as elapsed times are rounded.
            return;
        }
        let Ok(rtt_ns) = u64::try_from(rtt_ns) else {
            self.impossible_elapsed_times = self.impossible_elapsed_times.saturating_add(1);
            latest.has_impossible_elapsed_time = true;
            return;
        };
        self.rtt.add(rtt_ns);
        self.rtt_sketch.add(rtt_ns);
        latest.rtt_ns = Some(rtt_ns);
    }

    /// The full 48-bit number of a short one, if any was seen before.
    fn whole(&self, number: u64, is_short: bool) -> u64 {
        match self.sequences.highest() {
            Some(highest) if is_short => {
                let ahead = distance(number, highest as u64, SHORT_BITS);
                (highest as u64).wrapping_add(ahead as u64) & ((1 << NUMBER_BITS) - 1)
            }
            _ => number,
        }
    }
}
