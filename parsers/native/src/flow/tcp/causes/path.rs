//! What the path did to a sender's data: laps of one round-trip time, and cuts of its window.

use super::{Event, Moment};

/// Why a sender reduced its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    Loss,
    Timeout,
    /// The receiver echoed a mark.
    Mark,
}

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub time_ns: i64,
    pub reason: CutReason,
    /// Round-trip time of the newest data before it, and the shortest one of the lap before it.
    pub rtt_ns: i64,
    pub least_rtt_ns: i64,
    /// Bytes delivered up to it.
    pub delivered: i64,
}

/// A time of one round trip.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    pub end_ns: i64,
    pub duration_ns: i64,
    /// Bytes delivered in it.
    pub bytes: u32,
    /// Shortest round-trip time in it.
    pub rtt_ns: i64,
}

impl Lap {
    /// Bytes in a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.bytes) * 1e9 / self.duration_ns as f64
    }
}

/// Laps and cuts of a direction, in order.
#[derive(Debug, Default)]
pub struct Path {
    pub laps: Vec<Lap>,
    pub cuts: Vec<Cut>,
    base_rtt_ns: Option<i64>,
    lap_start_ns: Option<i64>,
    lap_delivered: i64,
    lap_rtt_ns: Option<i64>,
    last_rtt_ns: i64,
    was_repairing: bool,
    /// Whether the receiver echoed a mark since the last cut.
    is_marked: bool,
}

impl Path {
    /// The shortest round-trip time so far.
    pub fn base_rtt_ns(&self) -> Option<i64> {
        self.base_rtt_ns
    }

    /// The round-trip times so far were those of a part of the path.
    pub fn forget_rtts(&mut self) {
        (self.base_rtt_ns, self.lap_rtt_ns, self.last_rtt_ns) = (None, None, 0);
    }

    pub fn on_moment(&mut self, moment: &Moment, is_repairing: bool) {
        if let Some(rtt_ns) = moment.rtt_ns.and_then(|ns| i64::try_from(ns).ok()).filter(|&ns| ns > 0) {
            self.last_rtt_ns = rtt_ns;
            self.base_rtt_ns = Some(self.base_rtt_ns.map_or(rtt_ns, |base| base.min(rtt_ns)));
            self.lap_rtt_ns = Some(self.lap_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        match moment.event {
            Event::Acknowledgement { echoes_mark, .. } => {
                self.is_marked |= echoes_mark;
                self.on_acknowledgement(moment);
            }
            Event::Repair { is_timeout } if !self.was_repairing => {
                self.cut(moment, if is_timeout { CutReason::Timeout } else { CutReason::Loss });
            }
            // RFC 3168 section 6.1.2: the first new data after a reduction say so, whatever it was for.
            Event::Data { cuts_window: true, .. } if self.is_marked && !is_repairing => {
                self.cut(moment, CutReason::Mark);
            }
            _ => {}
        }
        self.was_repairing = is_repairing;
    }

    fn on_acknowledgement(&mut self, moment: &Moment) {
        let Some(start_ns) = self.lap_start_ns.filter(|_| moment.flight() > 0) else {
            // A lap has data in flight all the time.
            self.lap_start_ns = (moment.flight() > 0).then_some(moment.time_ns);
            self.lap_delivered = moment.delivered;
            self.lap_rtt_ns = None;
            return;
        };
        let duration_ns = moment.time_ns.saturating_sub(start_ns);
        let Some(rtt_ns) = self.lap_rtt_ns.filter(|&ns| duration_ns >= ns.max(1)) else { return };
        let bytes = moment.delivered.saturating_sub(self.lap_delivered);
        let bytes = u32::try_from(bytes).unwrap_or_default();
        self.laps.push(Lap { end_ns: moment.time_ns, duration_ns, bytes, rtt_ns });
        self.lap_start_ns = Some(moment.time_ns);
        self.lap_delivered = moment.delivered;
        self.lap_rtt_ns = None;
    }

    fn cut(&mut self, moment: &Moment, reason: CutReason) {
        let rtt_ns = self.last_rtt_ns;
        let least_rtt_ns = self.laps.last().map_or(rtt_ns, |lap| lap.rtt_ns);
        let (time_ns, delivered) = (moment.time_ns, moment.delivered);
        self.cuts.push(Cut { time_ns, reason, rtt_ns, least_rtt_ns, delivered });
        self.is_marked = false;
    }
}
