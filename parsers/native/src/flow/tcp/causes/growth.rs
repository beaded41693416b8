//! Whether a sender's flight still grows, as in slow start it does in each round trip (RFC 5681 section 3.1).

/// Growth below which a flight stands, and round trips after which it does (as BBR leaves its Startup:
/// draft-ietf-ccwg-bbr section 5.3.1.2).
pub const GROWTH: f64 = 1.25;
pub const FULL_ROUNDS: u32 = 3;

/// The stretches of time in which a flight stands: few, as it grows between them.
#[derive(Debug, Default)]
pub struct Growth {
    most: i64,
    /// What the last round trip ends with the acknowledgement of, and round trips since the flight grew.
    round_end: i64,
    rounds: u32,
    standing: Vec<(i64, i64)>,
}

impl Growth {
    /// New data leave, up to `next`.
    pub fn on_data(&mut self, time_ns: i64, flight: i64, next: i64) {
        if flight as f64 >= GROWTH * self.most as f64 {
            (self.most, self.rounds, self.round_end) = (flight, 0, next);
            if let Some((_, until_ns)) = self.standing.last_mut().filter(|last| last.1 == i64::MAX) {
                *until_ns = time_ns;
            }
        }
    }

    /// So much is delivered, with data up to `next` sent.
    pub fn on_acknowledgement(&mut self, time_ns: i64, delivered: i64, next: i64) {
        if delivered < self.round_end || self.rounds == FULL_ROUNDS {
            return;
        }
        self.rounds += 1;
        self.round_end = next.saturating_add(1);
        if self.rounds == FULL_ROUNDS {
            self.standing.push((time_ns, i64::MAX));
        }
    }

    /// The first stretch that ends after a time.
    pub fn standing_after(&self, time_ns: i64) -> Option<(i64, i64)> {
        let first = self.standing.partition_point(|&(_, until_ns)| until_ns <= time_ns);
        self.standing.get(first).copied()
    }

    /// The flow ends.
    pub fn finish(&mut self) {
        self.standing.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow whose flights, each acknowledged 10 ns later, are so long.
    fn grown(flights: &[i64]) -> Growth {
        let mut growth = Growth::default();
        let mut next = 0;
        for (&flight, time_ns) in flights.iter().zip((0..).step_by(100)) {
            next += flight;
            growth.on_data(time_ns, flight, next);
            growth.on_acknowledgement(time_ns + 10, next, next);
        }
        growth
    }

    #[test]
    fn test_a_flight_stands_from_the_third_round_trip_without_growth_until_it_grows() {
        assert_eq!(grown(&[10, 20, 40, 80, 160]).standing_after(0), None);
        let growth = grown(&[10, 20, 20, 20, 21, 20, 30, 30]);
        assert_eq!(growth.standing_after(0), Some((310, 600)));
        assert_eq!(growth.standing_after(600), None);
        assert_eq!(grown(&[10; 9]).standing_after(1_000), Some((210, i64::MAX)));
    }
}
