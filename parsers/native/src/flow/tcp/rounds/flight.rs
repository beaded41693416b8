//! Bytes in flight in one direction, and the ends of its rounds.
//!
//! Every data packet and every acknowledgement touches this: 32 bytes. Past rounds are in
//! [`Rounds`], touched only at the end of a round.

use serde::{Deserialize, Serialize};

use super::{RepairCause, Round, RoundEnd, Rounds, SentInRound};

/// Value of [`Flight::round_end`] while no data are outstanding.
const IDLE: i64 = i64::MAX;

/// Time is multiplied by bytes: in ticks of 1024 ns an hour of 1 GB is still exact.
const TICK_BITS: u32 = 10;

/// Data of one direction neither acknowledged nor within a SACK block: RFC 5681's FlightSize, less
/// the data known to have arrived. Lost data count until acknowledged.
#[derive(Debug, Serialize, Deserialize)]
pub struct Flight {
    /// Acknowledging this position ends the round (the highest sent when it began), or [`IDLE`].
    round_end: i64,
    /// Largest flight of the round so far.
    highest: u32,
    last_payload: u32,
    /// Sum of bytes times ticks, added when bytes leave the flight and subtracted when they enter
    /// it: the integral of the flight over time once it is empty. Wrapping preserves the integral.
    byte_ticks: i64,
    /// None before the first data.
    rounds: Option<Box<Rounds>>,
}

impl Default for Flight {
    fn default() -> Self {
        Self { round_end: IDLE, highest: 0, last_payload: 0, byte_ticks: 0, rounds: None }
    }
}

impl Flight {
    /// Record `bytes` of sequence numbers sent up to `next`, of which `payload` are data.
    #[inline(always)]
    pub fn on_sent(&mut self, bytes: i64, payload: u32, next: i64, time_ns: i64) {
        self.byte_ticks = self.byte_ticks.wrapping_sub(byte_ticks(bytes, time_ns));
        if payload > 0 {
            self.last_payload = payload;
            if self.round_end == IDLE {
                self.begin(bytes, next, time_ns);
            }
        }
    }

    #[inline(never)]
    fn begin(&mut self, bytes: i64, next: i64, time_ns: i64) {
        self.round_end = next;
        let rounds = self.rounds.get_or_insert_with(|| Box::new(Rounds::new(time_ns)));
        rounds.begin(next.saturating_sub(bytes), time_ns);
    }

    /// Record that the flight is `bytes` now. Call it before acknowledgements reduce the flight:
    /// since the previous one it has not shrunk.
    #[inline(always)]
    pub fn note(&mut self, bytes: i64) {
        if bytes > i64::from(self.highest) {
            self.highest = saturated(bytes);
        }
    }

    /// Record `bytes` that arrived and are not acknowledged yet.
    pub fn on_sacked(&mut self, bytes: i64, time_ns: i64) {
        self.byte_ticks = self.byte_ticks.wrapping_add(byte_ticks(bytes, time_ns));
    }

    /// Remove the `bytes` acknowledged up to `acknowledged`; returns whether that ends the round.
    #[inline(always)]
    pub fn on_progress(&mut self, bytes: i64, acknowledged: i64, time_ns: i64) -> bool {
        self.byte_ticks = self.byte_ticks.wrapping_add(byte_ticks(bytes, time_ns));
        acknowledged >= self.round_end
    }

    /// End the round (see [`Flight::on_progress`]) and begin the next with `outstanding` in flight;
    /// it ends when `next` is acknowledged.
    #[inline(never)]
    pub fn end_round(
        &mut self,
        (acknowledged, next): (i64, i64),
        outstanding: i64,
        close: RoundEnd,
    ) -> Option<Round> {
        let rounds = self.rounds.as_mut()?;
        let is_empty = acknowledged >= next;
        let sent = SentInRound { flight: self.highest, last_payload: self.last_payload };
        let round = rounds.end(acknowledged, is_empty, sent, &close);
        self.highest = saturated(outstanding);
        self.round_end = if is_empty { IDLE } else { rounds.end_of_repair().unwrap_or(next) };
        Some(round)
    }

    /// Record a retransmission of data below `next`.
    #[cold]
    pub fn on_repair(&mut self, repair: RepairCause, next: i64, time_ns: i64) {
        if self.round_end == IDLE {
            // All data were acknowledged: nothing is repaired.
            return;
        }
        if let Some(rounds) = &mut self.rounds {
            rounds.on_repair(repair, self.highest, next, time_ns);
            self.round_end = self.round_end.min(rounds.end_of_repair().unwrap_or(IDLE));
        }
    }

    /// Count data without RTT sample.
    pub fn note_unwatched(&mut self) {
        if let Some(rounds) = &mut self.rounds {
            rounds.unwatched = rounds.unwatched.saturating_add(1);
        }
    }

    /// Past rounds; None if no data were sent.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.rounds.as_deref()
    }

    /// Largest flight, including `outstanding`.
    pub fn max_bytes(&self, outstanding: i64) -> Option<u32> {
        let rounds = self.rounds()?;
        Some(rounds.max_flight.max(self.highest).max(saturated(outstanding)))
    }

    /// Largest congestion window, as far as the flight shows it, including `outstanding`; None if lost data, which
    /// count until they are acknowledged, made the flight larger.
    pub fn max_cwnd(&self, outstanding: i64) -> Option<u32> {
        let rounds = self.rounds()?;
        let is_repairing = rounds.end_of_repair().is_some();
        let newest = if is_repairing { 0 } else { self.highest.max(saturated(outstanding)) };
        let most = self.max_bytes(outstanding)?;
        Some(rounds.max_unrepaired.max(newest)).filter(|&flight| flight == most)
    }

    /// Mean flight until `end_ns` over the time with data in flight, while `outstanding` is still
    /// there. None if no time passed.
    pub fn mean_bytes(&self, outstanding: i64, end_ns: i64) -> Option<f64> {
        let rounds = self.rounds()?;
        let unfinished_ns = if self.round_end == IDLE { 0 } else { end_ns.saturating_sub(rounds.since_ns()) };
        let busy_ns = rounds.busy_ns.saturating_add(unfinished_ns);
        let integral = self.byte_ticks.wrapping_add(byte_ticks(outstanding, end_ns));
        // Return nothing where the sum could have wrapped or the clock went backwards.
        let most = i64::from(self.max_bytes(outstanding)?).checked_mul(busy_ns >> TICK_BITS)?;
        let is_possible = busy_ns > 0 && integral >= 0 && integral <= most.saturating_mul(2);
        is_possible.then(|| integral as f64 * f64::from(1_u32 << TICK_BITS) / busy_ns as f64)
    }
}

#[inline(always)]
fn byte_ticks(bytes: i64, time_ns: i64) -> i64 {
    bytes.wrapping_mul(time_ns >> TICK_BITS)
}

#[inline(always)]
fn saturated(bytes: i64) -> u32 {
    bytes.clamp(0, i64::from(u32::MAX)) as u32
}
