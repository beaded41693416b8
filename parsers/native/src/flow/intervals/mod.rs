//! The counters of flows, cut into intervals of time.
//!
//! A flow counts from its first packet to its last. What belongs to an interval is the difference
//! of its counts when a packet of another interval arrives, so that a packet costs one comparison.
//! Flows that live in one interval need no further memory. The differences of a flow add up to
//! what it counted, whatever the clock did.

mod counts;
mod requests;

use serde::{Deserialize, Serialize};

use super::Flow;
use super::rtt_statistics::LogHistogram;
use super::tcp::vantage::{Vantage, believed};
use super::tcp::{Connection, ConnectionState};
use crate::packet::key::Side;
use counts::BY_CLASS;
pub use counts::{Count, Counts};
use requests::{Answers, Request, Stalls, large_hole_ns};

/// Width of the intervals, which begin at multiples of it since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntervalWidth {
    /// One interval without ends.
    Whole,
    Ns(i64),
}

impl IntervalWidth {
    /// Start of the interval of `time_ns`; 0 for the whole.
    pub fn start_ns(self, time_ns: i64) -> i64 {
        match self {
            Self::Whole => 0,
            Self::Ns(width) => time_ns.div_euclid(width.max(1)).saturating_mul(width.max(1)),
        }
    }

    /// Start and length of the interval of `time_ns`. The first that 64-bit times have begins with them.
    fn interval(self, time_ns: i64) -> (i64, u64) {
        let start_ns = self.start_ns(time_ns);
        match self {
            Self::Whole => (start_ns, u64::MAX),
            Self::Ns(width) => {
                let left = width.max(1) - time_ns.rem_euclid(width.max(1));
                (start_ns, time_ns.wrapping_sub(start_ns) as u64 + left as u64)
            }
        }
    }
}

/// Counts of one direction of a flow in one interval.
#[derive(Debug, Serialize, Deserialize)]
pub struct Piece {
    /// Index of the flow among its neighbours.
    pub flow: u8,
    /// The side that sent the packets.
    pub side: Side,
    /// Start of the interval.
    pub start_ns: i64,
    pub counts: Counts,
    /// Round-trip times of the data.
    pub rtt: LogHistogram,
    /// Further durations.
    pub samples: Option<(Duration, LogHistogram)>,
}

impl Piece {
    /// A piece with `counts` only.
    pub fn of_counts(flow: u8, side: Side, start_ns: i64, counts: Counts) -> Self {
        Self { flow, side, start_ns, counts, rtt: LogHistogram::default(), samples: None }
    }

    /// The same with a duration.
    pub fn with(mut self, what: Duration, duration_ns: u64) -> Self {
        let mut samples = LogHistogram::default();
        samples.add(duration_ns);
        self.samples = Some((what, samples));
        self
    }
}

named_enum! {
    /// Durations other than round-trip times.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Duration {
        /// From SYN to the final acknowledgement.
        Connect = "connect",
        /// From a query of DNS to its answer.
        Dns = "dns",
        /// From the last byte of a request to the first of the answer.
        Response = "response",
        /// From an echo request or a probe to its reply.
        Echo = "echo",
        /// From one end of a path to the other.
        Delay = "delay",
        /// From the sender of a test packet to the capture, by the sender's clock.
        OnewayDelay = "oneway_delay",
        /// The same above the least one.
        OnewayVariation = "oneway_variation",
    }
}

/// What was reported of a flow before the current interval.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Reported {
    counts: [Counts; 2],
    /// Number of spurious retransmissions.
    verdicts: [usize; 2],
    /// Round-trip times of flows other than TCP, by side.
    rtt_of_reports: Option<Box<[LogHistogram; 2]>>,
    has_attempt: bool,
    has_result: bool,
    unjudged: Vec<Unjudged>,
    /// Whether what was lost depends on where the flow was captured.
    is_judged: bool,
    /// Whether the flow showed enough for others to be judged at once.
    is_firm: bool,
}

/// Intervals with data whose losses wait for the place of the capture: its signs add up.
const MOST_UNJUDGED: usize = 32;
/// The same for payloads that may prove to have no numbers, of one flow and about of all that are followed: the n-th of
/// them has at most an n-th of that.
const MOST_UNPROVEN: usize = 1024;
const MOST_UNPROVEN_OF_ALL: usize = 1 << 18;

/// Segments of an interval that count only if they are visible where the flow was captured, and packets that count only
/// if their numbers are some.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Unjudged {
    start_ns: i64,
    side: Side,
    /// Data segments of TCP.
    segments: i64,
    /// Packets that arrived and have numbers of their own.
    numbered: i64,
    lost_before: i64,
    lost_behind: i64,
    reordered_packets: i64,
    /// Retransmissions, in the order of [`BY_CLASS`].
    by_class: [i64; BY_CLASS.len()],
}

impl Unjudged {
    /// Take them out of a piece, if it has any.
    fn take(piece: &mut Piece) -> Option<Self> {
        let mut take = |count| {
            let taken = piece.counts.get(count);
            piece.counts.clear(count);
            taken
        };
        let (lost_before, lost_behind) = (take(Count::LostBefore), take(Count::LostBehind));
        let (reordered_packets, by_class) = (take(Count::ReorderedPackets), BY_CLASS.map(&mut take));
        let numbered = take(Count::NumberedPackets);
        let (start_ns, side, segments) = (piece.start_ns, piece.side, piece.counts.tcp_data_segments());
        let has_any = [segments, numbered, lost_before, lost_behind, reordered_packets] != [0; 5]
            || by_class != [0; BY_CLASS.len()];
        has_any.then_some(Self {
            start_ns,
            side,
            segments,
            numbered,
            lost_before,
            lost_behind,
            reordered_packets,
            by_class,
        })
    }

    fn shown_arrivals(&self) -> i64 {
        self.segments.saturating_add(self.numbered).saturating_add(self.lost_before)
    }

    /// What counts of them in the flow at `index`, as far as it is known where it was captured.
    fn seen_from(self, index: u8, vantage: Option<Vantage>) -> Piece {
        let mut counts = Counts::default();
        counts.change(Count::NumberedPackets, self.numbered);
        if vantage != Some(Vantage::Sender) {
            counts.change(Count::LostBefore, self.lost_before);
            counts.change(Count::ReorderedPackets, self.reordered_packets);
            counts.change(Count::ArrivalsShown, self.shown_arrivals());
        }
        if vantage != Some(Vantage::Receiver) {
            counts.change(Count::LostBehind, self.lost_behind);
            counts.change(Count::LossesShown, self.segments);
            BY_CLASS.into_iter().zip(self.by_class).for_each(|(count, of)| counts.change(count, of));
        }
        Piece::of_counts(index, self.side, self.start_ns, counts)
    }
}

/// The current interval of a flow.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Current {
    start_ns: i64,
    /// 0 before the first packet.
    length_ns: u64,
    /// The request that waits for its answer.
    request: Option<Request>,
    answers: Option<Box<Answers>>,
    stalls: Option<Box<Stalls>>,
    reported: Option<Box<Reported>>,
    /// Intervals that may wait for a proof of numbers.
    most_unproven: u16,
}

/// How flows are cut: how wide the intervals are, and where the user says that they were captured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cuts {
    pub width: IntervalWidth,
    pub vantage: Option<Vantage>,
}

/// Cuts neighbouring flows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Intervals {
    width: IntervalWidth,
    vantage: Option<Vantage>,
    flows: Vec<Current>,
    /// What was cut off and not taken yet.
    pub pieces: Vec<Piece>,
}

impl Intervals {
    pub fn new(Cuts { width, vantage }: Cuts) -> Self {
        Self { width, vantage, flows: Vec::new(), pieces: Vec::new() }
    }

    /// Add a flow, while so many others are followed.
    pub fn open(&mut self, others: usize) {
        let share = MOST_UNPROVEN_OF_ALL / others.saturating_add(1);
        let most_unproven = share.clamp(1, MOST_UNPROVEN) as u16;
        self.flows.push(Current { most_unproven, ..Current::default() });
    }

    /// Cut `flow`, the one at `index`, if its next packet, of `time_ns`, is in another interval, and return
    /// whether it is.
    #[inline(always)]
    pub fn reach(&mut self, index: usize, flow: &mut Flow, time_ns: i64) -> bool {
        let (IntervalWidth::Ns(_), Some(current)) = (self.width, self.flows.get(index)) else {
            return false;
        };
        let is_other = time_ns.wrapping_sub(current.start_ns) as u64 >= current.length_ns;
        if is_other {
            self.begin(index, flow, time_ns);
        }
        is_other
    }

    /// The next packet of `flow`, the one at `index`, is a segment of `side` with data: its number and payload.
    #[inline(always)]
    pub fn note_data(&mut self, index: usize, flow: &Flow, side: Side, time_ns: i64, data: (u32, u32)) {
        let Some(current) = self.flows.get_mut(index) else { return };
        let Some(connection) = flow.transport.tcp.as_deref() else { return };
        let half = connection.half(side);
        let is_new = half.sent.expects(data.0);
        if !is_new && half.awaits(data.0) {
            let stalls = current.stalls.get_or_insert_default();
            if let Some((since_ns, counts)) = stalls.on_repeat(connection, side, time_ns, data) {
                self.pieces.push(Piece::of_counts(index as u8, side, self.width.start_ns(since_ns), counts));
            }
        }
        let asker = connection.opener().unwrap_or(flow.first);
        if side == asker {
            self.ask(index, connection, time_ns, is_new);
        } else if is_new && current.request.is_some() {
            self.answer(index, connection, time_ns);
        }
    }

    /// Data of the side that asks: a request, or more of one.
    fn ask(&mut self, index: usize, connection: &Connection, time_ns: i64, is_new: bool) {
        let Some(current) = self.flows.get_mut(index) else { return };
        let Some(request) = &mut current.request else {
            current.request = is_new.then(|| Request::new(time_ns));
            return;
        };
        request.is_repeated = !is_new;
        if is_new {
            let hung = request.hangs_at(time_ns).then(|| (request.asked_ns, request.count(true)));
            request.asked_ns = time_ns;
            if let Some((asked_ns, counts)) = hung {
                self.count_request(index, connection, asked_ns, &counts);
            }
        }
    }

    /// The first data of the other side since a request.
    fn answer(&mut self, index: usize, connection: &Connection, time_ns: i64) {
        let Some(current) = self.flows.get_mut(index) else { return };
        let Some(mut request) = current.request.take() else { return };
        let response_ns = u64::try_from(time_ns.saturating_sub(request.asked_ns));
        if let Ok(response_ns) = response_ns
            && !request.is_repeated
        {
            current.answers.get_or_insert_default().times.add(response_ns);
        }
        let counts = request.count(request.hangs_at(time_ns));
        self.count_request(index, connection, request.asked_ns, &counts);
    }

    /// Count a request of `asked_ns`, if it is known who opened the connection.
    fn count_request(&mut self, index: usize, connection: &Connection, asked_ns: i64, counts: &Counts) {
        let (Some(current), Some(opener)) = (self.flows.get_mut(index), connection.opener()) else { return };
        if (asked_ns.wrapping_sub(current.start_ns) as u64) < current.length_ns {
            current.answers.get_or_insert_default().counts += counts;
        } else if !counts.is_zero() {
            let start_ns = self.width.start_ns(asked_ns);
            self.pieces.push(Piece::of_counts(index as u8, opener, start_ns, counts.clone()));
        }
    }

    /// Whether the interval of the flow at `index` ended after `ended.0`, and at `ended.1` at the latest.
    pub fn has_ended(&self, index: usize, ended: (i64, i64)) -> bool {
        let Some(current) = self.flows.get(index).filter(|current| current.length_ns > 0) else {
            return false;
        };
        let end_ns = current.start_ns.saturating_add_unsigned(current.length_ns);
        ended.0 < end_ns && end_ns <= ended.1
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, index: usize, flow: &mut Flow, time_ns: i64) {
        self.cut(index, flow);
        if let Some(current) = self.flows.get_mut(index) {
            (current.start_ns, current.length_ns) = self.width.interval(time_ns);
        }
    }

    /// Cut off what `flow` counted since the last time.
    pub fn cut(&mut self, index: usize, flow: &mut Flow) {
        let Some(current) = self.flows.get_mut(index) else { return };
        if current.length_ns == 0 {
            return;
        }
        let (answers, cut_before) = (current.answers.take(), self.pieces.len());
        let most_unproven = current.most_unproven;
        let reported = current.reported.get_or_insert_default();
        let mut cutter =
            Cutter { width: self.width, start_ns: current.start_ns, index, reported, into: &mut self.pieces };
        cutter.cut_answers(flow, answers);
        for side in [Side::Low, Side::High] {
            let rtt = match flow.transport.tcp.as_deref_mut() {
                Some(connection) => connection.half_mut(side).path.round_trips.drain(),
                None => new_reports(cutter.reported, flow, side),
            };
            cutter.cut(flow, side, rtt);
        }
        cutter.cut_handshake(flow, false);
        // Not when they are taken, which depends on what else is done.
        cutter.judge(cut_before, flow, self.vantage, Some(most_unproven));
    }

    /// Forget the requests and the data that wait for an answer: it is not known for how long.
    pub fn forget_waiting(&mut self) {
        for current in &mut self.flows {
            (current.request, current.stalls) = (None, None);
        }
    }

    /// Count the request that still waits at the end of its connection.
    fn give_up(&mut self, index: usize, flow: &Flow, until_ns: i64) {
        let request = self.flows.get_mut(index).and_then(|current| current.request.take());
        let (Some(mut request), Some(connection)) = (request, flow.transport.tcp.as_deref()) else { return };
        if let Some(counts) = request.count_at_end(connection, until_ns) {
            self.count_request(index, connection, request.asked_ns, &counts);
        }
    }

    /// Cut off the rest of `flow`, the one at `index`. Nothing may follow; the trace would show it until
    /// `until_ns`.
    pub fn finish(&mut self, index: usize, flow: &Flow, until_ns: i64) {
        self.give_up(index, flow, until_ns);
        let Some(current) = self.flows.get_mut(index) else { return };
        let first_ns = [Side::Low, Side::High].map(|side| flow.direction(side).start_ns);
        let start_ns = match current.length_ns {
            0 => self.width.start_ns(first_ns[0].min(first_ns[1])),
            _ => current.start_ns,
        };
        let (answers, cut_before) = (current.answers.take(), self.pieces.len());
        let mut reported = current.reported.take().unwrap_or_default();
        let reported = &mut *reported;
        let mut cutter = Cutter { width: self.width, start_ns, index, reported, into: &mut self.pieces };
        cutter.cut_answers(flow, answers);
        for side in [Side::Low, Side::High] {
            let half = flow.transport.tcp.as_deref().map(|connection| connection.half(side));
            let rtt = match half {
                Some(half) => half.path.round_trips.undrained(),
                None => new_reports(cutter.reported, flow, side),
            };
            cutter.cut(flow, side, rtt);
            for (opened_ns, segments) in half.into_iter().flat_map(|half| half.never_repaired()) {
                cutter.change(side, opened_ns, |counts| counts.add(Count::LostBefore, segments));
            }
            if let Some(opened_ns) = large_hole_ns(flow, side) {
                cutter.change(side, opened_ns, |counts| counts.add(Count::LargeHoles, 1_u64));
            }
        }
        cutter.cut_handshake(flow, true);
        cutter.judge(cut_before, flow, self.vantage, None);
    }
}

/// Round-trip times of a flow other than TCP since the last time.
fn new_reports(reported: &mut Reported, flow: &Flow, side: Side) -> LogHistogram {
    let Some((_, all)) = flow.transport.rtt_of_reports(side) else { return LogHistogram::default() };
    let before = &mut reported.rtt_of_reports.get_or_insert_default()[side as usize];
    let new = all.since(before);
    before.clone_from(all);
    new
}

/// Cuts one flow.
struct Cutter<'a> {
    width: IntervalWidth,
    /// Start of the current interval.
    start_ns: i64,
    index: usize,
    reported: &'a mut Reported,
    into: &'a mut Vec<Piece>,
}

impl Cutter<'_> {
    /// Cut off what was counted of `side`, with the round-trip times since the last cut.
    fn cut(&mut self, flow: &Flow, side: Side, rtt: LogHistogram) {
        let all = Counts::of(flow, side);
        let reported = &mut self.reported.counts[side as usize];
        let mut counts = all.clone() - reported;
        *reported = all;
        self.move_verdicts(flow, side, &mut counts);
        if !counts.is_zero() || !rtt.is_empty() {
            let piece = Piece::of_counts(self.index as u8, side, self.start_ns, counts);
            self.into.push(Piece { rtt, ..piece });
        }
    }

    /// Hold back what was cut since `cut_before` and may not be visible, and give what was held back if it is
    /// known or must be: at the end, and after so many intervals without a proof of numbers.
    fn judge(&mut self, cut_before: usize, flow: &Flow, given: Option<Vantage>, most_unproven: Option<u16>) {
        let Reported { unjudged, is_firm, is_judged, .. } = &mut *self.reported;
        let transport = &flow.transport;
        let may_be_numbered = transport.may_be_numbered();
        *is_judged |= may_be_numbered || transport.has_vantage() || flow.shows_path();
        if !*is_judged {
            return;
        }
        unjudged.extend(self.into[cut_before..].iter_mut().filter_map(Unjudged::take));
        let may_wait = |most: u16| if may_be_numbered { usize::from(most) } else { MOST_UNJUDGED };
        *is_firm |= most_unproven.is_none_or(|most| unjudged.len() >= may_wait(most));
        if *is_firm {
            let known = [Side::Low, Side::High].map(|side| {
                let is_counted = transport.tcp.is_some() || transport.numbered_arrivals(side).is_some();
                let hides_losses = flow.numbers_first_fragments(side).then_some(Vantage::Sender);
                is_counted.then(|| hides_losses.or_else(|| believed(flow.vantage(side, given))))
            });
            let index = self.index as u8;
            let judged = |one: Unjudged| Some(one.seen_from(index, known[one.side as usize]?));
            self.into.extend(std::mem::take(unjudged).into_iter().filter_map(judged));
        }
    }

    /// Cut off the requests and the times that answers took, which belong to the side that asked.
    fn cut_answers(&mut self, flow: &Flow, answers: Option<Box<Answers>>) {
        let Some(answers) = answers else { return };
        let opener = flow.transport.tcp.as_deref().and_then(Connection::opener).unwrap_or(flow.first);
        let piece = Piece::of_counts(self.index as u8, opener, self.start_ns, answers.counts);
        let samples = (!answers.times.is_empty()).then_some((Duration::Response, answers.times));
        if samples.is_some() || !piece.counts.is_zero() {
            self.into.push(Piece { samples, ..piece });
        }
    }

    /// Count spurious retransmissions where they were sent, not where that became known.
    fn move_verdicts(&mut self, flow: &Flow, side: Side, counts: &mut Counts) {
        let Some(connection) = flow.transport.tcp.as_deref() else { return };
        let half = connection.half(side);
        let verdicts = half.verdicts();
        let reported = &mut self.reported.verdicts[side as usize];
        let new = verdicts.get(*reported..).unwrap_or_default();
        *reported = verdicts.len();
        let (width, start_ns) = (self.width, self.start_ns);
        for verdict in new.iter().filter(|verdict| width.start_ns(verdict.sent_ns) != start_ns) {
            let segments = i64::from(verdict.segments);
            let loss = if verdict.is_before { Count::LostBefore } else { Count::LostBehind };
            // A simulation shows what was lost, whatever was sent again.
            let not_lost = if verdict.is_before || !half.is_simulated() { segments } else { 0 };
            counts.change(Count::SpuriousRetransmissions, -segments);
            counts.change(loss, not_lost);
            self.change(side, verdict.sent_ns, |counts| {
                counts.change(Count::SpuriousRetransmissions, segments);
                counts.change(loss, -not_lost);
            });
        }
    }

    /// Count an attempt to connect, and its result, in the interval of its SYN.
    fn cut_handshake(&mut self, flow: &Flow, is_final: bool) {
        let Some(connection) = flow.transport.tcp.as_deref() else { return };
        let Some((opener, syn_ns)) = connection.opener().zip(connection.syn_ns()) else { return };
        if !std::mem::replace(&mut self.reported.has_attempt, true) {
            self.change(opener, syn_ns, |counts| counts.add(Count::ConnectionAttempts, 1_u64));
        }
        if self.reported.has_result {
            return;
        }
        let Some(result) = result_of(connection, is_final) else { return };
        self.reported.has_result = true;
        let mut counts = Counts::default();
        counts.add(result, 1_u64);
        let piece = Piece::of_counts(self.index as u8, opener, self.width.start_ns(syn_ns), counts);
        self.into.push(match connection.handshake_rtt_ns() {
            Some(connect_ns) => piece.with(Duration::Connect, connect_ns),
            None => piece,
        });
    }

    /// Change counts of `side` in the interval of `time_ns`.
    fn change(&mut self, side: Side, time_ns: i64, change: impl FnOnce(&mut Counts)) {
        let mut counts = Counts::default();
        change(&mut counts);
        self.into.push(Piece::of_counts(self.index as u8, side, self.width.start_ns(time_ns), counts));
    }
}

/// What became of an attempt to connect; None if that is not known yet, or if it was answered and
/// the final acknowledgement never came.
fn result_of(connection: &Connection, is_final: bool) -> Option<Count> {
    if connection.has_handshake() {
        return Some(Count::ConnectionsEstablished);
    }
    let is_answered = connection.has_answer();
    match connection.state() {
        ConnectionState::Refused => Some(Count::ConnectionsRefused),
        _ if is_final && !is_answered => Some(Count::ConnectionsUnanswered),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_all_that_waits_for_a_proof_of_numbers_has_one_bound() {
        let mut intervals = Intervals::new(Cuts { width: IntervalWidth::Ns(1), vantage: None });
        (0..1_000_000).for_each(|others| intervals.open(others));
        let waiting = |of: &[Current]| of.iter().map(|one| usize::from(one.most_unproven)).sum::<usize>();
        assert_eq!(waiting(&intervals.flows[..256]), 256 * MOST_UNPROVEN);
        assert!(waiting(&intervals.flows) * size_of::<Unjudged>() < 256 << 20);
    }

    proptest! {
        #[test]
        fn test_each_time_is_in_the_interval_of_its_multiple(time_ns in any::<i64>(), width in 1..=i64::MAX) {
            let (start_ns, length_ns) = IntervalWidth::Ns(width).interval(time_ns);
            let exact = i128::from(time_ns).div_euclid(i128::from(width)) * i128::from(width);
            prop_assert_eq!(i128::from(start_ns), exact.max(i128::from(i64::MIN)));
            prop_assert_eq!(i128::from(start_ns) + i128::from(length_ns), exact + i128::from(width));
        }
    }
}
