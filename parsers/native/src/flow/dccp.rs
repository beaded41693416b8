//! One DCCP connection as the capture shows it.
//!
//! Read RFC 4340 sections 7 (sequence numbers), 8 (connection states) and 6 (features) beside this
//! file. Every packet of a direction has the next number, whatever its type, so a gap at the place
//! of the capture is a packet that did not come there.

use super::delivery::{Counted, Delivery, Numbers};
use super::key::Side;
use super::rtt::{RttStatistics, Sketch};
use super::sendings::{Pool, Sendings};
use super::sequences::{Arrival, Sequences};
use super::tcp::State;
use crate::dccp::{Header, Kind};
use crate::event::Packet;
use crate::seq::distance;
use crate::wire::dccp::options::{DccpOption, Feature, options};

/// Packets of one direction that wait for their acknowledgement. CCID 3 acknowledges once per RTT,
/// so this is a window of 4,096 packets; the oldest beyond give no RTT.
const MAX_OUTSTANDING: usize = 4_096;
/// Elapsed times are in units of 10 µs (RFC 4340 section 13.2).
const ELAPSED_UNIT_NS: i64 = 10_000;
/// The feature that says which congestion control a half-connection uses (RFC 4340 section 6.4).
const CCID: u8 = 1;
/// Sequence numbers of the wire.
const NUMBER_BITS: u32 = 48;
/// Numbers of packets that may have short ones.
const SHORT_BITS: u32 = 24;

/// What one side sent.
#[derive(Debug)]
pub struct Half {
    /// Which of its numbers came to the place of the capture.
    sequences: Sequences,
    received_bytes: u64,
    /// Packets not acknowledged yet, by the low 32 bits of their numbers.
    outstanding: Sendings,
    /// Congestion control of its data, once both sides agree.
    pub ccid: Option<u8>,
    /// Options whose length cannot be true.
    bad_options: u32,
    /// Acknowledgements of packets that the capture had not shown.
    acks_of_unseen: u32,
    /// Elapsed times longer than the packet can have been there.
    impossible_elapsed_times: u32,
    has_closed: bool,
    /// RTT of its packets, without the time that the other side held the acknowledgement.
    pub rtt: RttStatistics,
    /// Its percentiles.
    pub rtt_sketch: Sketch,
}

impl Default for Half {
    fn default() -> Self {
        Self {
            sequences: Sequences::new(NUMBER_BITS),
            received_bytes: 0,
            outstanding: Sendings::default(),
            ccid: None,
            bad_options: 0,
            acks_of_unseen: 0,
            impossible_elapsed_times: 0,
            has_closed: false,
            rtt: RttStatistics::default(),
            rtt_sketch: Sketch::default(),
        }
    }
}

/// Both halves and what belongs to neither.
#[derive(Debug, Default)]
pub struct Connection {
    halves: [Half; 2],
    /// The side that sent the first Request.
    opener: Option<Side>,
    /// What the connection is for (RFC 4340 section 8.1.2).
    pub service_code: Option<u32>,
    /// Times of the first Request and Response, and how many Requests there were.
    request_ns: Option<i64>,
    response_ns: Option<i64>,
    requests: u32,
    handshake_done: bool,
    /// From Request to the packet that acknowledges the Response.
    pub handshake_rtt_ns: Option<u64>,
    reset_by: Option<(Side, u8)>,
}

/// Reset code of a connection that ended as it should (RFC 4340 section 5.6).
const CLOSED: u8 = 1;

impl Connection {
    /// What one side sent.
    pub fn half(&self, side: Side) -> &Half {
        &self.halves[side as usize]
    }

    /// Who opened the connection, if the capture shows it.
    pub fn opener(&self) -> Option<Side> {
        self.opener
    }

    /// State as far as seen, in the words of TCP.
    pub fn state(&self) -> State {
        let closing = self.halves.iter().filter(|half| half.has_closed).count();
        match (self.reset_by, closing) {
            (Some((_, CLOSED)), _) => State::Closed,
            (Some((by, _)), _) if self.opener == Some(by.other()) && self.response_ns.is_none() => {
                State::Refused
            }
            (Some(_), _) => State::Reset,
            (None, 1..) => State::HalfClosed,
            (None, _) if self.opener.is_none() => State::Midstream,
            (None, _) if self.handshake_done => State::Established,
            (None, _) if self.response_ns.is_some() => State::Opening,
            (None, _) => State::Attempted,
        }
    }

    /// Take in a packet that `side` sent, with the options behind its header. The answer is the RTT
    /// of the other side's packet that it acknowledges.
    pub fn on_packet(
        &mut self,
        side: Side,
        packet: &Packet,
        header: &Header,
        behind: &[u8],
        pool: &mut Pool,
    ) -> Option<u64> {
        let time_ns = packet.time_ns;
        let [low, high] = &mut self.halves;
        let (sender, receiver) = match side {
            Side::Low => (low, high),
            Side::High => (high, low),
        };
        sender.take_number(header, packet, pool);
        let mut elapsed_ns = 0;
        for option in options(behind) {
            match option {
                DccpOption::ElapsedTime(elapsed) => elapsed_ns = i64::from(elapsed) * ELAPSED_UNIT_NS,
                DccpOption::Feature(feature) => agree_on_ccid(sender, receiver, feature),
                DccpOption::Malformed(_) => sender.bad_options = sender.bad_options.saturating_add(1),
                _ => {}
            }
        }
        let rtt_ns = header.ack.and_then(|ack| receiver.take_ack(ack, header, time_ns, elapsed_ns, pool));
        self.take_state(side, header, time_ns);
        rtt_ns
    }

    fn take_state(&mut self, side: Side, header: &Header, time_ns: i64) {
        self.service_code = self.service_code.or(header.service_code);
        match header.kind {
            Kind::Request => {
                self.opener.get_or_insert(side);
                self.request_ns.get_or_insert(time_ns);
                self.requests = self.requests.saturating_add(1);
            }
            Kind::Response => {
                self.opener.get_or_insert(side.other());
                self.response_ns.get_or_insert(time_ns);
            }
            Kind::CloseReq | Kind::Close => self.halves[side as usize].has_closed = true,
            Kind::Reset => {
                self.reset_by.get_or_insert((side, header.reset_code.unwrap_or(0)));
            }
            _ if self.opener == Some(side) && self.response_ns.is_some() && header.ack.is_some() => {
                self.complete_handshake(time_ns);
            }
            _ => {}
        }
    }

    /// The opener answers the Response. Of a Request sent twice nobody knows which was answered.
    fn complete_handshake(&mut self, time_ns: i64) {
        let was_done = std::mem::replace(&mut self.handshake_done, true);
        if !was_done && self.requests == 1 {
            let since = self.request_ns.and_then(|since| time_ns.checked_sub(since));
            self.handshake_rtt_ns = since.and_then(|elapsed| u64::try_from(elapsed).ok());
        }
    }
}

/// A Confirm of the CCID names the half-connection that it is about: that of the data which the
/// feature's owner sends (RFC 4340 section 6.4: the sender's, "L" is the owner of the option).
fn agree_on_ccid(sender: &mut Half, receiver: &mut Half, feature: Feature<'_>) {
    if feature.number == CCID && feature.confirms {
        let owner = if feature.is_local { sender } else { receiver };
        owner.ccid = feature.values.first().copied().or(owner.ccid);
    }
}

impl Half {
    /// What is wrong with it, in words.
    pub fn findings(&self) -> impl Iterator<Item = String> {
        let counts = [
            (self.bad_options, "options with impossible lengths"),
            (self.acks_of_unseen, "of its packets were acknowledged that the capture does not show"),
            (
                self.impossible_elapsed_times,
                "acknowledgements were held for longer than their packets were away",
            ),
        ];
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
    }

    /// What became of its packets at the place of the capture.
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
        delivery.counted = Some(Counted { by: Numbers::Dccp, reordered, restarts, has_delays: false });
        Some(delivery)
    }

    fn take_number(&mut self, header: &Header, packet: &Packet, pool: &mut Pool) {
        let seq = self.whole(header.seq, header.is_short);
        // Captures have no times of sending that numbers could be held against.
        if self.sequences.take(seq, 0) == Arrival::New {
            self.received_bytes += u64::from(packet.wire_bytes);
        }
        if self.outstanding.count() == MAX_OUTSTANDING {
            self.outstanding.drop_oldest(pool);
        }
        // Without room this packet gives no RTT.
        let _ = self.outstanding.push(seq as u32, packet.time_ns, pool);
    }

    /// The other side received the packet `ack` of this half, `elapsed_ns` before it said so.
    fn take_ack(
        &mut self,
        ack: u64,
        header: &Header,
        time_ns: i64,
        elapsed_ns: i64,
        pool: &mut Pool,
    ) -> Option<u64> {
        let ack = self.whole(ack, header.is_short);
        let Some(sent_ns) = self.outstanding.pop_through(ack as u32, pool) else {
            let is_ahead =
                self.sequences.highest().is_none_or(|highest| distance(ack, highest as u64, NUMBER_BITS) > 0);
            self.acks_of_unseen = self.acks_of_unseen.saturating_add(u32::from(is_ahead));
            return None;
        };
        let Ok(rtt_ns) = u64::try_from(time_ns.saturating_sub(sent_ns).saturating_sub(elapsed_ns)) else {
            self.impossible_elapsed_times = self.impossible_elapsed_times.saturating_add(1);
            return None;
        };
        self.rtt.add(rtt_ns);
        self.rtt_sketch.add(rtt_ns);
        Some(rtt_ns)
    }

    /// The number of 48 bits that is meant by a short one, if any was seen before.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    #[derive(Default)]
    struct Script {
        connection: Connection,
        pool: Pool,
    }

    impl Script {
        fn give(&mut self, side: Side, time_ms: i64, header: Header, options: &[u8]) -> Option<u64> {
            let packet = Packet { time_ns: time_ms * MS, wire_bytes: 100, ..Packet::default() };
            self.connection.on_packet(side, &packet, &header, options, &mut self.pool)
        }

        fn data(&mut self, time_ms: i64, seq: u64) {
            self.give(Side::Low, time_ms, header(Kind::Data, seq, None), &[]);
        }

        fn ack(&mut self, time_ms: i64, seq: u64, ack: u64, options: &[u8]) -> Option<u64> {
            self.give(Side::High, time_ms, header(Kind::Ack, seq, Some(ack)), options)
        }

        fn lost(&self) -> u64 {
            self.connection.half(Side::Low).delivery().unwrap().lost
        }
    }

    fn header(kind: Kind, seq: u64, ack: Option<u64>) -> Header {
        Header {
            kind,
            ccval: 0,
            coverage: 0,
            is_short: false,
            seq,
            ack,
            service_code: None,
            reset_code: None,
        }
    }

    #[test]
    fn test_an_rtt_is_without_the_time_that_the_receiver_held_the_acknowledgement() {
        let mut script = Script::default();
        script.data(0, 7);
        script.data(5, 8);
        // Elapsed time of 2,000 units: 20 ms
        let rtt_ns = script.ack(75, 1, 8, &[43, 4, 0x07, 0xd0]);
        assert_eq!(rtt_ns, Some(50_000_000));
        assert_eq!(script.ack(76, 2, 8, &[]), None, "acknowledged before");
    }

    #[test]
    fn test_an_elapsed_time_longer_than_the_packet_was_away_gives_no_rtt() {
        let mut script = Script::default();
        script.data(0, 7);
        assert_eq!(script.ack(10, 1, 7, &[43, 4, 0x07, 0xd0]), None);
        assert_eq!(script.connection.half(Side::Low).impossible_elapsed_times, 1);
    }

    #[test]
    fn test_gaps_in_the_numbers_are_packets_that_did_not_come() {
        let mut script = Script::default();
        [10, 11, 14, 13].iter().for_each(|&seq| script.data(0, seq));
        assert_eq!(script.lost(), 1);
    }

    #[test]
    fn test_short_numbers_go_on_where_long_ones_ended() {
        let mut script = Script::default();
        let last_of_24_bits = 0x1234_56ff_ffff;
        script.data(0, last_of_24_bits);
        let short = Header { is_short: true, ..header(Kind::Data, 0, None) };
        script.give(Side::Low, 1, short, &[]);
        let short_ack = Header { is_short: true, ..header(Kind::Ack, 5, Some(0)) };
        assert_eq!(script.give(Side::High, 31, short_ack, &[]), Some(30_000_000));
        assert_eq!(script.connection.half(Side::Low).sequences.highest(), Some(last_of_24_bits as i64 + 1));
        assert_eq!(script.lost(), 0);
    }

    #[test]
    fn test_the_handshake_tells_service_rtt_and_congestion_control() {
        let mut script = Script::default();
        let request = Header { service_code: Some(42), ..header(Kind::Request, 1, None) };
        script.give(Side::Low, 0, request, &[]);
        assert_eq!(script.connection.state(), State::Attempted);
        // Confirm L and Confirm R: both half-connections use CCID 3.
        let confirms = [33, 4, 1, 3, 35, 4, 1, 3];
        script.give(Side::High, 20, header(Kind::Response, 100, Some(1)), &confirms);
        assert_eq!(script.connection.state(), State::Opening);
        script.give(Side::Low, 40, header(Kind::Ack, 2, Some(100)), &[]);
        assert_eq!(script.connection.state(), State::Established);
        assert_eq!(script.connection.handshake_rtt_ns, Some(40_000_000));
        assert_eq!(script.connection.service_code, Some(42));
        assert_eq!([Side::Low, Side::High].map(|side| script.connection.half(side).ccid), [Some(3); 2]);
        assert_eq!(script.connection.opener(), Some(Side::Low));
    }

    #[test]
    fn test_a_request_sent_twice_gives_no_handshake_rtt() {
        let mut script = Script::default();
        script.give(Side::Low, 0, header(Kind::Request, 1, None), &[]);
        script.give(Side::Low, 1000, header(Kind::Request, 2, None), &[]);
        script.give(Side::High, 1020, header(Kind::Response, 100, Some(2)), &[]);
        script.give(Side::Low, 1040, header(Kind::Ack, 3, Some(100)), &[]);
        assert_eq!(script.connection.state(), State::Established);
        assert_eq!(script.connection.handshake_rtt_ns, None);
    }

    #[test]
    fn test_how_a_connection_ends() {
        let reset = |code| Header { reset_code: Some(code), ..header(Kind::Reset, 9, Some(1)) };
        let mut refused = Script::default();
        refused.give(Side::Low, 0, header(Kind::Request, 1, None), &[]);
        refused.give(Side::High, 1, reset(3), &[]);
        assert_eq!(refused.connection.state(), State::Refused);
        let mut closed = Script::default();
        closed.data(0, 1);
        assert_eq!(closed.connection.state(), State::Midstream);
        closed.give(Side::Low, 1, header(Kind::Close, 2, Some(5)), &[]);
        assert_eq!(closed.connection.state(), State::HalfClosed);
        closed.give(Side::High, 2, reset(CLOSED), &[]);
        assert_eq!(closed.connection.state(), State::Closed);
    }

    proptest! {
        #[test]
        fn test_no_packets_panic_and_all_are_counted(
            packets in proptest::collection::vec(
                (any::<bool>(), 0_u8..10, any::<bool>(), 0_u64..1 << 48, any::<Option<u64>>(), any::<i64>(),
                 proptest::collection::vec(any::<u8>(), 0..12)),
                0..60,
            ),
        ) {
            let mut script = Script::default();
            for (is_high, kind, is_short, seq, ack, time_ns, options) in &packets {
                let side = if *is_high { Side::High } else { Side::Low };
                let header = Header {
                    is_short: *is_short,
                    ..header(Kind::from_number(*kind).unwrap(), *seq, *ack)
                };
                let packet = Packet { time_ns: *time_ns, ..Packet::default() };
                script.connection.on_packet(side, &packet, &header, options, &mut script.pool);
            }
            for half in &script.connection.halves {
                prop_assert!(half.outstanding.count() <= MAX_OUTSTANDING);
            }
        }
    }
}
