//! What a sender waited for between its data, as its packets and acknowledgements show it.
//!
//! A sender that has data and room in both windows sends them. So a wait tells what was missing:
//! - an acknowledgement made room and nothing was sent: no data were there, and because data do not
//!   go away unsent, none had been since the last segment;
//! - data follow an acknowledgement at once: they had waited for the room it made;
//! - the last segment reached the edge of the receive window: they had waited for that one;
//! - data leave without an acknowledgement after the end of a write (PSH, or a segment that is not
//!   full; RFC 9293 section 3.9.1.2): they were written then. After another segment the sender paces.

use super::moment::saturated;
use super::path::Path;
use super::{Event, Moment};

/// How long after an acknowledgement data follow it at once: a part of the shortest round-trip time,
/// within these bounds.
const PROMPT_NS: (i64, i64) = (500_000, 3_000_000);
const PROMPT_PART: i64 = 8;
/// A shorter wait without an acknowledgement is within a burst.
const BURST_NS: i64 = 1_000_000;
/// Shortest full-sized segment (RFC 9293 section 3.7.1).
const SHORTEST_FULL_SIZE: u32 = 536;
/// Segments in a row of one size that is the full one of the path.
const USUAL: u32 = 3;
/// Paced packets in a row that show a pace, and by which factor it may change from one to the next: BBR
/// paces at 5/4 and 3/4 of its rate in turns.
const PACED: u8 = 3;
const PACE_CHANGE: i64 = 2;
/// Segments that a pacing sender lets go at a time (Linux's least `tso_segs`).
const PACED_SEGMENTS: u32 = 2;
/// Timeouts in a row without any answer that show that nothing passes.
const OUTAGE_TIMEOUTS: u32 = 2;
/// Room for a burst, as a part (1/n) of the flight.
const SLACK_PART: i64 = 8;
/// A full send buffer takes more as soon as an acknowledgement frees some of it: within this part of the time from one
/// to the next, and what a busy host takes. Of what leaves at any time a third is later, so that it fails the test of
/// as many refills to each late one. Away from the sender times are those of ticks of its timestamps.
const REFILL_PART: f64 = 2.0 / 3.0;
const REFILLS_TO_LATE: u32 = 3;
const REFILL_LEAST_NS: i64 = PROMPT_NS.0;
const REFILL_AWAY_NS: i64 = 2_000_000;

/// What a sender waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its first data.
    Opening,
    /// Data, which then came of themselves.
    Data,
    /// Data, which then came with an acknowledgement, perhaps by chance.
    DataWithAck,
    /// Data, while acknowledgements made room for a burst, until one of them released it.
    Refill,
    /// The same, though the newest data were not the end of a write.
    RefillOfMore,
    /// Data, with none in flight.
    Idle,
    /// The answer of the other side to what it had sent, or its own to what it was asked.
    Answer,
    /// Its congestion window or its pace.
    Window,
    /// The receive window.
    Receiver,
    /// A closed receive window.
    ClosedWindow,
    /// The repair of losses that acknowledgements reported.
    Recovery,
    /// A retransmission timer, and the repair after it.
    Timeout,
    /// Any answer, while the timer expired again and again.
    Outage,
}

impl Wait {
    /// Whether there were no data though others were in flight.
    pub fn is_for_data(self) -> bool {
        matches!(self, Self::Data | Self::DataWithAck | Self::Refill | Self::RefillOfMore)
    }
}

/// Timeouts in a row, each after no less time than the one before (RFC 6298 section 5.5), and the silence
/// before the last.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    timeouts: u32,
    last_ns: i64,
    silence_ns: i64,
}

/// A wait, up to a time; it began where the last one ended.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub end_ns: i64,
    pub wait: Wait,
    /// Waits of this kind in a row.
    pub count: u32,
    /// Largest flight in it, and by how much that may be wrong.
    pub flight: u32,
    pub flight_error: u32,
    /// The receive window then; None if its scale is unknown.
    pub window: Option<u32>,
}

/// The newest data, and what came from the other side since.
#[derive(Debug, Default)]
struct Sending {
    last: LastSent,
    answers: Answers,
}

/// The newest data.
#[derive(Clone, Copy, Debug, Default)]
struct LastSent {
    time_ns: i64,
    /// Segments of its burst, and their bytes.
    burst: (u32, u32),
    flight: i64,
    flight_error: u32,
    /// Space that they left in the receive window; None if its scale is unknown.
    room: Option<i64>,
    window: Option<u32>,
    /// Whether the newest segment is full, or several that segmentation offload has not yet split.
    is_whole: bool,
    is_pushed: bool,
}

/// What came from the other side since the newest data.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    /// Acknowledgements of data, how many, and the longest time from one to the next.
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    count: u32,
    most_ns: i64,
    /// When the last one can have come at the earliest.
    earliest_ns: i64,
    /// Bytes that they acknowledged, and of them those of the last one.
    freed: i64,
    freed_last: i64,
    /// When the receive window had room again.
    opened_ns: Option<i64>,
    /// When all data were acknowledged.
    emptied_ns: Option<i64>,
    /// First and last data of the other side.
    heard_ns: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Debug)]
struct Repair {
    wait: Wait,
    /// Acknowledging this ends it.
    until: i64,
}

/// The waits of a direction, in order.
#[derive(Debug, Default)]
pub struct Waits {
    pub spans: Vec<Span>,
    /// When the first packet of the flow was seen.
    pub start_ns: Option<i64>,
    /// What the path did meanwhile.
    pub path: Path,
    decided_ns: i64,
    /// When the newest packet was captured.
    last_ns: i64,
    /// None of a side without data, which most acknowledgers are.
    sending: Option<Box<Sending>>,
    repair: Option<Repair>,
    unanswered: Unanswered,
    delivered: i64,
    /// Size of the newest segments, and how many in a row had it.
    usual: (u32, u32),
    /// Whether writes end with PSH, and how many of the newest segments in a row have it.
    has_pushes: bool,
    pushed: u32,
    /// All segments of new data, and those with PSH.
    segments: (u32, u32),
    /// Segments that are not full.
    short: u32,
    /// Refills of the flight that the last acknowledgement may have released, and those that came too late for that.
    released_refills: u32,
    late_refills: u32,
    full_size: u32,
    /// Bytes of the headers of the newest data.
    headers: u32,
    /// Nanoseconds for 1024 bytes between packets that left alone, and how many in a row agreed.
    pace: (i64, u8),
    is_opener: bool,
    /// Whether order and times are estimates, from a capture away from the sender.
    pub is_estimated: bool,
    /// Whether data wait between the sender and a capture beside it: in the queue of its own interface.
    pub is_behind_queue: bool,
    /// Whether the clock of the capture went back by more than what these decisions resolve.
    pub has_stepped: bool,
}

impl Waits {
    /// A packet of the flow was captured.
    pub fn on_packet(&mut self, time_ns: i64) {
        if self.start_ns.is_none() {
            (self.decided_ns, self.last_ns) = (time_ns, time_ns);
        }
        self.start_ns = Some(self.start_ns.map_or(time_ns, |ns| ns.min(time_ns)));
        self.has_stepped |= self.last_ns.saturating_sub(time_ns) > PROMPT_NS.1;
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// When the newest packet was captured.
    pub fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// The sender saw what a packet shows.
    pub fn on_moment(&mut self, moment: &Moment) {
        self.is_opener = moment.is_opener;
        match moment.event {
            Event::Data { is_pushed, .. } => self.on_data(moment, is_pushed),
            Event::Repair { is_timeout } => self.on_repair(moment, is_timeout),
            Event::Acknowledgement { .. } => self.on_acknowledgement(moment),
            Event::Other => {}
        }
        self.path.on_moment(moment, self.repair.is_some());
        self.delivered = self.delivered.max(moment.delivered);
    }

    /// The flow ends: of what it shows only the waits and the path stay.
    pub fn finish(&mut self) {
        // Data that are all acknowledged were the last.
        if let Some(Sending { last, answers }) = self.sending.as_deref_mut() {
            last.is_pushed |= answers.emptied_ns.is_some();
            answers.last_ns = None;
        }
        self.decide_outage(self.last_ns);
        self.close(self.last_ns);
        self.sending = None;
        self.spans.shrink_to_fit();
        self.path.finish();
    }

    /// Waits, laps and cuts so far.
    pub fn kept(&self) -> usize {
        self.spans.len() + self.path.laps.len() + self.path.cuts.len()
    }

    /// Whether a steady rate may be that of an application that paces its data: of four segments more than one ends a
    /// write, or perhaps does, or in each round trip one is not full, so that no more waited behind it.
    pub fn may_be_paced_writes(&self) -> bool {
        let (segments, pushed) = self.segments;
        pushed == 0 || pushed.saturating_mul(4) > segments || self.short as usize >= self.path.laps.len()
    }

    /// Whether the side sent data.
    pub fn has_data(&self) -> bool {
        self.usual.1 > 0
    }

    fn last_sent(&self) -> Option<LastSent> {
        self.sending.as_ref().map(|sending| sending.last)
    }

    fn answers(&self) -> Answers {
        self.sending.as_ref().map(|sending| sending.answers).unwrap_or_default()
    }

    /// Payload of a full packet, and its bytes as IP carries it.
    pub fn packet(&self) -> (u32, u32) {
        (self.full_size, self.full_size.saturating_add(self.headers))
    }

    /// Time within which data follow an acknowledgement at once.
    fn prompt_ns(&self) -> i64 {
        let (least, most) = PROMPT_NS;
        self.path.base_rtt_ns().map_or(most, |ns| (ns / PROMPT_PART).clamp(least, most))
    }

    fn on_data(&mut self, moment: &Moment, is_pushed: bool) {
        self.note_size(moment);
        self.unanswered = Unanswered { last_ns: moment.time_ns, ..self.unanswered };
        self.has_pushes |= is_pushed;
        let (segments, pushed) = self.segments;
        self.segments = (segments.saturating_add(1), pushed.saturating_add(u32::from(is_pushed)));
        self.pushed = if is_pushed { self.pushed.saturating_add(1) } else { 0 };
        self.close(moment.time_ns);
        let (segments, bytes) = self
            .last_sent()
            .filter(|sent| moment.time_ns.saturating_sub(sent.time_ns) <= BURST_NS)
            .map_or((0, 0), |sent| sent.burst);
        let last = LastSent {
            time_ns: moment.time_ns,
            burst: (segments.saturating_add(1), bytes.saturating_add(moment.payload)),
            flight: moment.flight(),
            flight_error: moment.flight_error,
            room: moment.window_end.map(|end| end.saturating_sub(moment.next)),
            window: moment.window_end.map(|end| saturated(end.saturating_sub(moment.delivered))),
            is_whole: self.is_whole(moment),
            is_pushed,
        };
        self.short = self.short.saturating_add(u32::from(!last.is_whole));
        **self.sending.get_or_insert_default() = Sending { last, answers: Answers::default() };
    }

    fn note_size(&mut self, moment: &Moment) {
        (self.full_size, self.headers) = (moment.full_size, moment.headers);
        let (size, times) = &mut self.usual;
        *times = if *size == moment.payload { times.saturating_add(1) } else { 1 };
        *size = moment.payload;
    }

    /// Whether a segment is full. A path may allow only shorter ones than both ends announced: they
    /// repeat, and not each ends a write.
    fn is_whole(&self, moment: &Moment) -> bool {
        let (size, times) = self.usual;
        moment.payload.checked_rem(moment.full_size) == Some(0)
            || (times > USUAL && size >= SHORTEST_FULL_SIZE && self.pushed <= USUAL)
    }

    fn on_repair(&mut self, moment: &Moment, is_timeout: bool) {
        self.begin_repair(moment, is_timeout);
        if is_timeout {
            self.note_timeout(moment.time_ns);
        }
    }

    /// Note a retransmission by timer, unless it goes on with what an earlier one began: no timer expires
    /// within a round trip, and each back-off waits longer (RFC 6298 sections 2.3 and 5.5). The second in a
    /// row that nothing answers shows that the first had met an outage, too.
    fn note_timeout(&mut self, time_ns: i64) {
        let Unanswered { timeouts, last_ns, silence_ns } = self.unanswered;
        let since_ns = time_ns.saturating_sub(last_ns);
        let least_ns = self.path.base_rtt_ns().unwrap_or_default();
        if since_ns < least_ns || (timeouts > 0 && since_ns < silence_ns) {
            return;
        }
        self.unanswered =
            Unanswered { timeouts: timeouts.saturating_add(1), last_ns: time_ns, silence_ns: since_ns };
        if self.unanswered.timeouts == OUTAGE_TIMEOUTS
            && let Some(last) = self.spans.last_mut().filter(|last| last.wait == Wait::Timeout)
        {
            last.wait = Wait::Outage;
        }
        self.decide_outage(time_ns);
    }

    fn decide_outage(&mut self, end_ns: i64) {
        if self.unanswered.timeouts >= OUTAGE_TIMEOUTS {
            self.decide(end_ns, Wait::Outage);
        }
    }

    fn begin_repair(&mut self, moment: &Moment, is_timeout: bool) {
        let wait = if is_timeout { Wait::Timeout } else { Wait::Recovery };
        match self.repair {
            Some(Repair { wait: Wait::Recovery, .. }) if is_timeout => self.decide(moment.time_ns, wait),
            Some(_) => return,
            None if is_timeout => {
                // The sender waited for its timer since the last acknowledgement or data.
                let since_ns = |of: &Sending| of.answers.last_ns.unwrap_or(of.last.time_ns);
                self.close(self.sending.as_deref().map_or(moment.time_ns, since_ns));
                self.decide(moment.time_ns, wait);
            }
            None => self.close(moment.time_ns),
        }
        self.repair = Some(Repair { wait, until: moment.next });
    }

    fn on_acknowledgement(&mut self, moment: &Moment) {
        let time_ns = moment.time_ns;
        self.decide_outage(time_ns);
        self.unanswered = Unanswered { last_ns: time_ns, ..Unanswered::default() };
        if let Some(repair) = self.repair
            && moment.delivered >= repair.until
        {
            self.decide(time_ns, repair.wait);
            self.repair = None;
            if let Some(Sending { last, answers }) = self.sending.as_deref_mut() {
                // What follows is a wait of its own.
                (last.time_ns, *answers) = (time_ns, Answers::default());
            }
        }
        let Some(Sending { answers, .. }) = self.sending.as_deref_mut() else { return };
        let room = moment.window_end.map(|end| end.saturating_sub(moment.next));
        if room.is_none_or(|room| room >= i64::from(moment.full_size)) {
            answers.opened_ns.get_or_insert(time_ns);
        }
        if let Event::Acknowledgement { carries_data: true, .. } = moment.event {
            let (first_ns, _) = answers.heard_ns.unwrap_or((time_ns, time_ns));
            answers.heard_ns = Some((first_ns, time_ns));
        }
        let bytes = moment.delivered.saturating_sub(self.delivered);
        if bytes > 0 {
            answers.first_ns.get_or_insert(time_ns);
            let before_ns = answers.last_ns.replace(time_ns).unwrap_or(time_ns);
            answers.most_ns = answers.most_ns.max(time_ns.saturating_sub(before_ns));
            answers.count = answers.count.saturating_add(1);
            answers.earliest_ns = moment.earliest_ns;
            answers.freed = answers.freed.saturating_add(bytes);
            answers.freed_last = bytes;
        }
        if moment.flight() <= 0 {
            answers.emptied_ns.get_or_insert(time_ns);
        }
    }

    /// Decide on the time up to `end_ns`, when data were sent or the flow ended.
    fn close(&mut self, end_ns: i64) {
        let Some(sent) = self.last_sent() else { return self.decide(end_ns, Wait::Opening) };
        if let Some(repair) = self.repair {
            return self.decide(end_ns, repair.wait);
        }
        let prompt_ns = self.prompt_ns();
        let Answers { opened_ns, emptied_ns, .. } = self.answers();
        let was_released = opened_ns.is_some_and(|ns| end_ns.saturating_sub(ns) <= prompt_ns);
        if self.is_at_edge(&sent, was_released) {
            let closed = sent.window.is_some_and(|window| window < self.full_size);
            let wait = if closed { Wait::ClosedWindow } else { Wait::Receiver };
            match opened_ns.filter(|ns| end_ns.saturating_sub(*ns) > prompt_ns) {
                Some(opened_ns) => self.decide(opened_ns, wait),
                None => return self.decide(end_ns, wait),
            }
        }
        let ends_write = !sent.is_whole || sent.is_pushed || !self.has_pushes;
        if let Some(emptied_ns) = emptied_ns
            && end_ns.saturating_sub(emptied_ns) > prompt_ns
        {
            if ends_write && self.is_paced(&sent, ends_write, end_ns) {
                return self.decide(end_ns, Wait::Window);
            }
            let (before, after) =
                if ends_write { (Wait::Data, Wait::Idle) } else { (Wait::Window, Wait::Idle) };
            self.decide_on_data(emptied_ns, before);
            return self.decide_on_data(end_ns, after);
        }
        // Linux pushes the last of each two or more segments that leave together, whatever follows.
        let is_together = sent.is_whole && self.has_pushes && sent.burst.1 > self.full_size;
        let ends_write = ends_write && !(is_together && emptied_ns.is_none());
        let wait = self.wait_for_data_or_window(&sent, ends_write, end_ns);
        self.decide_on_data(end_ns, wait);
    }

    /// Whether data at this place had no room in the receive window for the next segment. After one that is not
    /// full there may be no more, unless what follows was released when there was room for a full one: less than
    /// that is not used (RFC 9293 section 3.8.6.2.1).
    fn is_at_edge(&self, sent: &LastSent, was_released: bool) -> bool {
        let is_full = |room| room < i64::from(self.full_size) && (sent.is_whole || room <= 0 || was_released);
        sent.room.is_some_and(is_full)
    }

    fn wait_for_data_or_window(&mut self, sent: &LastSent, ends_write: bool, end_ns: i64) -> Wait {
        let prompt_ns = self.prompt_ns();
        let follows = |time_ns: Option<i64>| time_ns.is_some_and(|ns| end_ns.saturating_sub(ns) <= prompt_ns);
        let Answers { first_ns, last_ns, freed, freed_last, .. } = self.answers();
        let unused = freed - freed_last;
        let is_answer = follows(last_ns);
        let was_unanswered = first_ns.is_some() && !follows(first_ns) && (!is_answer || unused > 0);
        let is_refill = was_unanswered && unused >= self.room_for_burst(sent);
        if is_refill && (is_answer || !ends_write) {
            self.note_refill(end_ns);
        }
        let is_spontaneous = !is_answer && first_ns.is_none();
        let is_paced = is_spontaneous && self.is_paced(sent, ends_write, end_ns);
        match (is_answer, was_unanswered) {
            (true, true) if is_refill && ends_write => Wait::Refill,
            (true, true) if is_refill => Wait::RefillOfMore,
            _ if !ends_write || is_paced => Wait::Window,
            (true, true) => Wait::DataWithAck,
            // What waits for room is sent together: single writes had not waited.
            (true, false) if !sent.is_whole && self.pushed > USUAL => Wait::DataWithAck,
            (true, false) => Wait::Window,
            (false, _) if end_ns.saturating_sub(sent.time_ns) <= BURST_NS => {
                self.spans.last().map_or(Wait::Window, |last| last.wait)
            }
            (false, _) => Wait::Data,
        }
    }

    /// Note whether a refill that leaves now follows the last acknowledgement so soon that this may have released it.
    fn note_refill(&mut self, end_ns: i64) {
        let Answers { first_ns, last_ns, count, most_ns, earliest_ns, .. } = self.answers();
        let soon_ns = if self.is_estimated {
            REFILL_AWAY_NS
        } else {
            // The longest of these times may be that between two writes.
            let train_ns = last_ns.unwrap_or(0).saturating_sub(first_ns.unwrap_or(0)).saturating_sub(most_ns);
            let gap_ns = train_ns / i64::from(count).saturating_sub(2).max(1);
            REFILL_LEAST_NS.max((REFILL_PART * gap_ns as f64) as i64)
        };
        let is_soon = end_ns.saturating_sub(earliest_ns) <= soon_ns;
        let refills = if is_soon { &mut self.released_refills } else { &mut self.late_refills };
        *refills = refills.saturating_add(1);
    }

    /// Whether acknowledgements released what refilled the flight: an application that writes at any time is late for
    /// them more often.
    pub fn releases_refills(&self) -> bool {
        self.released_refills / REFILLS_TO_LATE >= self.late_refills
    }

    fn room_for_burst(&self, sent: &LastSent) -> i64 {
        (sent.flight / SLACK_PART).max(2 * i64::from(self.full_size))
    }

    /// Whether full segments leave one or two at a time, each after a time that is proportional to the
    /// ones before: a pace. An application that writes at times sends bursts, or segments that are not
    /// full.
    fn is_paced(&mut self, sent: &LastSent, ends_write: bool, end_ns: i64) -> bool {
        let gap_ns = end_ns.saturating_sub(sent.time_ns);
        let (segments, bytes) = sent.burst;
        if !sent.is_whole || bytes == 0 || gap_ns <= BURST_NS {
            return false;
        }
        let pace = gap_ns.saturating_mul(1024) / i64::from(bytes);
        let (known, agreed) = &mut self.pace;
        let is_within = pace / PACE_CHANGE <= *known;
        if !ends_write {
            // There were more data.
            (*known, *agreed) = (pace, agreed.saturating_add(1).min(2 * PACED));
            return true;
        }
        if is_within && pace >= *known / PACE_CHANGE && segments <= PACED_SEGMENTS {
            (*known, *agreed) = (pace, agreed.saturating_add(1).min(2 * PACED));
        } else if !is_within {
            *agreed = agreed.saturating_sub(1);
            *known = if *agreed == 0 { pace } else { *known };
        }
        // A sender that had to wait for something else makes up for it: less is a pace, too.
        *agreed >= PACED && is_within
    }

    /// The same, with the time in which one side served a request of the other.
    fn decide_on_data(&mut self, end_ns: i64, wait: Wait) {
        let (Some((first_ns, last_ns)), true) =
            (self.answers().heard_ns, matches!(wait, Wait::Data | Wait::DataWithAck | Wait::Idle))
        else {
            return self.decide(end_ns, wait);
        };
        if self.is_opener {
            self.decide(first_ns.min(end_ns), Wait::Answer);
            self.decide(end_ns, wait);
        } else {
            self.decide(last_ns.min(end_ns), wait);
            self.decide(end_ns, Wait::Answer);
        }
    }

    fn decide(&mut self, end_ns: i64, wait: Wait) {
        if end_ns <= self.decided_ns {
            return;
        }
        self.decided_ns = end_ns;
        let sent = self.last_sent().unwrap_or_default();
        let (flight, flight_error, window) = (saturated(sent.flight), sent.flight_error, sent.window);
        match self.spans.last_mut() {
            Some(last) if last.wait == wait => {
                last.end_ns = end_ns;
                last.count = last.count.saturating_add(1);
                last.flight = last.flight.max(flight);
                last.flight_error = last.flight_error.max(flight_error);
                last.window = window.or(last.window);
            }
            _ => self.spans.push(Span { end_ns, wait, count: 1, flight, flight_error, window }),
        }
    }
}
