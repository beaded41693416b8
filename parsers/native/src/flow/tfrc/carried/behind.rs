//! Losses behind the capture, as far as reports tell of them.
//!
//! A capture at the sender shows every packet and no loss. But a report names the receive rate since
//! the one before and the highest packet that came; that rate times the time between them is bytes, and
//! what is missing to those that were sent was lost. The time between two reports where they were made
//! shows twice: between the packets that they name, if these took equally long, and between the reports
//! themselves, if those did. Packets come in whole numbers, so the better one of the two is that which
//! gives one. Which packets were lost does not show: those are taken that the receiver could just
//! declare lost when it reported.

use std::collections::VecDeque;

use super::receiving::Receiving;
use crate::flow::tfrc::{Place, TfrcSamples};
use crate::tfrc::DataPacket;
use crate::tfrc::profile::ReceiverProfile;

/// Packets that wait for a report to cover them, 72 bytes each. CCID 3 reports about once per
/// round-trip time; of a longer flight the oldest are taken to have arrived.
const WAITING: usize = 1 << 12;

/// Numbers of packets that are this close to a whole one are that one.
const WHOLE: f64 = 0.2;

/// The receiver behind the capture.
#[derive(Debug)]
pub struct Behind {
    /// As it would be with the losses that follow from the reports.
    pub receiving: Receiving,
    ndupack: usize,
    waiting: VecDeque<(i64, DataPacket)>,
    /// When the last report was made: by the packet that it names, and by itself, each earlier or later
    /// by the time that its way takes.
    covered: Option<(f64, f64)>,
    /// Loss event rate that the last report named.
    p: Option<f64>,
    /// Whether a report named a rate for a range, without which nothing can be told.
    pub is_known: bool,
}

/// What a report tells.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The highest packet that came.
    pub number: i64,
    /// Bytes per second.
    pub x_recv: Option<f64>,
    /// Loss event rate.
    pub p: Option<f64>,
    /// When it passed.
    pub time: f64,
    /// How long the receiver waited with it.
    pub elapsed: f64,
}

impl Behind {
    /// Nothing sent yet.
    pub fn new(profile: &ReceiverProfile) -> Self {
        Self {
            receiving: Receiving::new(profile, true),
            ndupack: profile.ndupack as usize,
            waiting: VecDeque::new(),
            covered: None,
            p: None,
            is_known: false,
        }
    }

    /// A packet passes the capture.
    pub fn on_data(
        &mut self,
        at: Place,
        origin_ns: i64,
        (number, packet): (i64, DataPacket),
        samples: &mut TfrcSamples,
    ) {
        if self.waiting.len() == WAITING
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            self.receiving.take(at, origin_ns, &oldest, samples);
        }
        self.waiting.push_back((number, packet));
    }

    /// A report passes. The answer is the payload that it covers.
    pub fn on_report(&mut self, at: Place, origin_ns: i64, told: Told, samples: &mut TfrcSamples) -> u64 {
        let packets = self.waiting.iter().take_while(|(waiting, _)| *waiting <= told.number).count();
        let bytes = self.waiting.iter().take(packets).map(|(_, packet)| u64::from(packet.bytes)).sum();
        let lost = self.lost(packets, bytes, told);
        self.p = told.p;
        if let Some(x_recv) = told.x_recv {
            self.receiving.state.set_x_recv(x_recv);
        }
        let end = packets.saturating_sub(1).saturating_sub(self.ndupack.saturating_sub(1)).max(lost);
        for at_waiting in 0..packets {
            let Some((_, packet)) = self.waiting.pop_front() else { break };
            self.covered = Some((packet.time + told.elapsed, told.time));
            if at_waiting + lost < end || at_waiting >= end {
                self.receiving.take(at, origin_ns, &packet, samples);
            }
        }
        bytes
    }

    /// Of the next `packets`, which have so many bytes, how many were lost if the rest came at the rate
    /// that is told. The one that the report names came.
    fn lost(&mut self, packets: usize, bytes: u64, told: Told) -> usize {
        let last = packets.checked_sub(1).and_then(|last| self.waiting.get(last));
        let (Some(x_recv), Some(since), Some((_, last))) = (told.x_recv, self.covered, last) else {
            return 0;
        };
        let data = self.waiting.iter().take(packets).filter(|(_, packet)| packet.bytes > 0).count();
        if data == 0 {
            return 0;
        }
        self.is_known = true;
        if told.p == Some(0.0) {
            return 0;
        }
        let missing = |time: f64| (bytes as f64 - x_recv * time) * data as f64 / bytes as f64;
        let error = |missing: &f64| (missing - missing.round().max(0.0)).abs();
        let candidates = [told.time - since.1, last.time + told.elapsed - since.0].map(missing);
        // Reports that a queue has pushed together have no time between them, and yet a packet came.
        let came = |missing: &f64| data as f64 - missing >= 1.0 - WHOLE;
        let best =
            candidates.into_iter().filter(came).min_by(|one, other| error(one).total_cmp(&error(other)));
        let is_early = told.time - since.1 < self.receiving.state.rtt();
        match best {
            // That rate is of a whole round-trip time (RFC 5348 section 6.2), of which most was before.
            // Such a report is made because p has risen, and then there is a loss.
            Some(best) if is_early && error(&best) > WHOLE => usize::from(told.p > self.p).min(packets - 1),
            // A float beyond the range of integers saturates.
            Some(best) => (best.round().max(0.0) as usize).min(packets - 1),
            None => 0,
        }
    }
}
