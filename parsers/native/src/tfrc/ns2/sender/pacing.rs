//! When ns-2's agent sends: on its timer, and outside of it.

use super::{LEAST, MOST_TURNS, Mode, Sender};
use crate::tfrc::ns2::PRINTED;

impl Sender {
    /// A packet was sent: in the timer's turn, out of it, or because there was something at last.
    pub(super) fn pace(&mut self, time: f64) {
        let is_extra = (time - self.pacing.extra).abs() <= PRINTED;
        let is_on_time = is_extra || (time - self.pacing.timer).abs() <= PRINTED;
        let waits = self.parameters.old_code;
        let leaves_at_once = self.pacing.is_data_limited && !waits && !is_on_time;
        if leaves_at_once || (self.pacing.is_data_limited && waits) {
            self.pacing.is_data_limited = false;
            // With the old code, data that reach an idle sender wait for the timer. Their arrival
            // time is unknown, except that it was after the previous expiry.
            self.pacing.last_limited = if waits { (self.pacing.missed + time) / 2.0 } else { time };
            self.pacing.is_all_idle = false;
        }
        // Of a report and a timer at one time the timer came first, or the report would have set it anew. A
        // report that changed the rate has then overwritten what the timer did.
        let is_overwritten =
            (time - self.pacing.coinciding).abs() <= PRINTED && self.last_change == self.pacing.coinciding;
        if is_extra {
            self.pacing.extra = f64::NEG_INFINITY;
        } else if is_overwritten {
            self.pacing.coinciding = f64::NEG_INFINITY;
        } else if !leaves_at_once {
            self.next_packet(time);
        }
    }

    /// Turns of the send timer before `time` at which nothing was sent.
    pub(super) fn miss_packets(&mut self, time: f64) {
        if self.pacing.extra.is_finite() && self.pacing.extra < time - PRINTED {
            self.skip_slot(self.pacing.extra);
            self.pacing.extra = f64::NEG_INFINITY;
        }
        for _ in 0..MOST_TURNS {
            if self.pacing.timer >= time - PRINTED {
                return;
            }
            self.skip_slot(self.pacing.timer);
            self.next_packet(self.pacing.timer);
        }
        self.pacing.timer = time;
    }

    /// A packet was due at `time` and was not sent.
    fn skip_slot(&mut self, time: f64) {
        self.pacing.is_data_limited = self.parameters.sndr_type;
        self.pacing.missed = time;
    }

    /// Set the send timer (`nextpkt`).
    pub(super) fn next_packet(&mut self, time: f64) {
        let slow = self.parameters.slow_increase && self.round_id > 2 && self.mode == Mode::SlowStart;
        let rate = if slow && self.pacing.old_rate + LEAST < self.rate {
            self.pacing.old_rate += self.pacing.delta;
            self.pacing.old_rate
        } else if self.parameters.ca {
            self.rate * self.round_trip.map_or(1.0, |round_trip| round_trip.damping())
        } else {
            self.rate
        };
        if rate > LEAST {
            let least = if self.parameters.voip { 1.0 / self.parameters.voip_max_pkt_rate } else { LEAST };
            // A packet that `overhead_` made late by chance is not one that was missing.
            let longest = (self.size / rate).max(least) * (1.0 + self.parameters.overhead);
            self.pacing.timer = time + longest.max(LEAST);
        }
    }

    pub(super) fn send_extra(&mut self, time: f64) {
        let coincides = (self.pacing.timer - time).abs() <= PRINTED;
        self.pacing.coinciding = if coincides { time } else { f64::NEG_INFINITY };
        self.next_packet(time);
        self.pacing.extra = time;
    }
}
