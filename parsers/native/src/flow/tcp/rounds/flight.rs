//! How much of one direction is on its way, and when a round of it is over.
//!
//! This is what every data packet and every acknowledgement touches: 32 bytes. What is known of the
//! rounds before is in [`Rounds`], which only the end of a round touches.

use super::{RepairCause, Round, RoundEnd, Rounds, SentInRound};

/// In [`Flight::round_end`]: no data is outstanding.
const IDLE: i64 = i64::MAX;

/// Time is multiplied by bytes below: in ticks of 1024 ns an hour of 1 GB is still exact.
const TICK_BITS: u32 = 10;

/// Data of one direction that are neither acknowledged nor within a SACK block: RFC 5681's FlightSize,
/// less what is known to have arrived. What was lost is part of it until it is acknowledged.
#[derive(Debug)]
pub struct Flight {
    /// Acknowledging this position ends the round (the highest sent when it began), or [`IDLE`].
    round_end: i64,
    /// Largest flight of the round so far.
    highest: u32,
    /// Payload of the newest data.
    last_payload: u32,
    /// Sum of bytes times ticks, added when bytes leave the flight and subtracted when they enter
    /// it: the integral of the flight over time once it is empty. It wraps, but the integral is the
    /// same.
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
    /// `bytes` of sequence numbers up to `next` went out, of which `payload` is data.
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

    /// Data after silence.
    #[inline(never)]
    fn begin(&mut self, bytes: i64, next: i64, time_ns: i64) {
        self.round_end = next;
        let rounds = self.rounds.get_or_insert_with(|| Box::new(Rounds::new(time_ns)));
        rounds.begin(next.saturating_sub(bytes), time_ns);
    }

    /// The flight is `bytes` at this moment. To be told before acknowledgements make it smaller: it
    /// has grown since the last one, or stayed.
    #[inline(always)]
    pub fn note(&mut self, bytes: i64) {
        if bytes > i64::from(self.highest) {
            self.highest = saturated(bytes);
        }
    }

    /// `bytes` arrived and are not acknowledged yet.
    pub fn on_sacked(&mut self, bytes: i64, time_ns: i64) {
        self.byte_ticks = self.byte_ticks.wrapping_add(byte_ticks(bytes, time_ns));
    }

    /// `bytes` left the flight with the acknowledgement of all up to `acknowledged`; whether that ends
    /// the round.
    #[inline(always)]
    pub fn on_progress(&mut self, bytes: i64, acknowledged: i64, time_ns: i64) -> bool {
        self.byte_ticks = self.byte_ticks.wrapping_add(byte_ticks(bytes, time_ns));
        acknowledged >= self.round_end
    }

    /// The round is over, see [`Flight::on_progress`], and begins with `outstanding` in flight; the next
    /// one ends when `next` is acknowledged.
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

    /// Something up to `next` is sent again.
    #[cold]
    pub fn on_repair(&mut self, repair: RepairCause, next: i64, time_ns: i64) {
        if self.round_end == IDLE {
            // Everything was acknowledged: nothing is repaired by it.
            return;
        }
        if let Some(rounds) = &mut self.rounds {
            rounds.on_repair(repair, self.highest, next, time_ns);
            self.round_end = self.round_end.min(rounds.end_of_repair().unwrap_or(IDLE));
        }
    }

    /// The RTT of the newest data is not looked for.
    pub fn note_unwatched(&mut self) {
        if let Some(rounds) = &mut self.rounds {
            rounds.unwatched = rounds.unwatched.saturating_add(1);
        }
    }

    /// The rounds that are over; None if no data was sent.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.rounds.as_deref()
    }

    /// Largest flight, `outstanding` included, which is there still.
    pub fn max_bytes(&self, outstanding: i64) -> Option<u32> {
        let rounds = self.rounds()?;
        Some(rounds.max_flight.max(self.highest).max(saturated(outstanding)))
    }

    /// Mean flight over the time in which there was any, until `end_ns`, when `outstanding` is there
    /// still. None if no time went by.
    pub fn mean_bytes(&self, outstanding: i64, end_ns: i64) -> Option<f64> {
        let rounds = self.rounds()?;
        let unfinished_ns = if self.round_end == IDLE { 0 } else { end_ns.saturating_sub(rounds.since_ns()) };
        let busy_ns = rounds.times.rounds_ns().saturating_add(unfinished_ns);
        let integral = self.byte_ticks.wrapping_add(byte_ticks(outstanding, end_ns));
        // What could have wrapped is not told, nor what a clock that went backwards made of it.
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
