//! Losses behind the capture, as far as reports tell of them.
//!
//! A capture at the sender shows every packet and no loss. But a report names the receive rate since
//! the one before and the highest packet that came; from one such packet to the next that rate is
//! bytes, and what is missing to the bytes that were sent was lost. Times are those of sending, so
//! that a queue on the way of the reports does no harm. Which packets of the range were lost does not
//! show: those are taken that the receiver could just declare lost when it reported.

use std::collections::VecDeque;

use super::receiving::Receiving;
use crate::flow::tfrc::{Place, TfrcSamples};
use crate::tfrc::DataPacket;
use crate::tfrc::profile::ReceiverProfile;

/// Packets that wait for a report to cover them, 72 bytes each. CCID 3 reports about once per
/// round-trip time; of a longer flight the oldest are taken to have arrived.
const WAITING: usize = 1 << 12;

/// The receiver behind the capture.
#[derive(Debug)]
pub struct Behind {
    /// As it would be with the losses that follow from the reports.
    pub receiving: Receiving,
    ndupack: usize,
    waiting: VecDeque<(i64, DataPacket)>,
    /// When the packet was sent that the last report names.
    covered: Option<f64>,
    /// Whether a report named a rate for a range, without which nothing can be told.
    pub is_known: bool,
}

impl Behind {
    /// Nothing sent yet.
    pub fn new(profile: &ReceiverProfile) -> Self {
        Self {
            receiving: Receiving::new(profile, true),
            ndupack: profile.ndupack as usize,
            waiting: VecDeque::new(),
            covered: None,
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

    /// A report names `number` as the highest that came, and the rate. The answer is the payload that it
    /// covers.
    pub fn on_report(
        &mut self,
        at: Place,
        origin_ns: i64,
        (number, x_recv): (i64, Option<f64>),
        samples: &mut TfrcSamples,
    ) -> u64 {
        let packets = self.waiting.iter().take_while(|(waiting, _)| *waiting <= number).count();
        let bytes = self.waiting.iter().take(packets).map(|(_, packet)| u64::from(packet.bytes)).sum();
        let lost = self.lost(packets, bytes, x_recv);
        if let Some(x_recv) = x_recv {
            self.receiving.state.set_x_recv(x_recv);
        }
        let end = packets.saturating_sub(1).saturating_sub(self.ndupack.saturating_sub(1)).max(lost);
        for at_waiting in 0..packets {
            let Some((_, packet)) = self.waiting.pop_front() else { break };
            self.covered = Some(packet.time);
            if at_waiting + lost < end || at_waiting >= end {
                self.receiving.take(at, origin_ns, &packet, samples);
            }
        }
        bytes
    }

    /// Of the next `packets`, which have so many bytes, how many were lost if the rest came at this
    /// rate. The one that the report names came.
    fn lost(&mut self, packets: usize, bytes: u64, x_recv: Option<f64>) -> usize {
        let last = packets.checked_sub(1).and_then(|last| self.waiting.get(last));
        let (Some(x_recv), Some(since), Some((_, last))) = (x_recv, self.covered, last) else { return 0 };
        let data = self.waiting.iter().take(packets).filter(|(_, packet)| packet.bytes > 0).count();
        let time = last.time - since;
        if data == 0 || time <= 0.0 {
            return 0;
        }
        self.is_known = true;
        let missing = (bytes as f64 - x_recv * time) * data as f64 / bytes as f64;
        // A float beyond the range of integers saturates.
        (missing.round().max(0.0) as usize).min(packets - 1)
    }
}
