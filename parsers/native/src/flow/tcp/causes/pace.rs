//! The rate at which a sender paces its data, in each lap of one round-trip time.
//!
//! Without pacing, data leave at once when an acknowledgement makes room. A sender that paces lets one burst
//! go after another, each after a time in proportion to the one before, whenever acknowledgements come.

/// Packets that leave within this time are one burst.
const BURST_NS: i64 = 200_000;
/// Bursts of a lap that tell whether it was paced, and the most that are kept.
const BURSTS: usize = 4;
const MOST_BURSTS: usize = 256;
/// A burst within this part (1/n) of the time since the one before follows an acknowledgement.
const PROMPT_PART: i64 = 8;
/// Quartiles of the rates of a pace are at most this part of their median apart.
const SPREAD: f64 = 0.3;

/// What let the bursts of a lap go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Acknowledgements,
    /// A pace, in bytes a second.
    Pace(u64),
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    start_ns: i64,
    end_ns: i64,
    bytes: u32,
}

/// The bursts of the current lap.
#[derive(Debug, Default)]
pub struct Pace {
    burst: Option<Burst>,
    /// When the newest acknowledgement came.
    acknowledged_ns: Option<i64>,
    /// Bytes a second from each burst to the next.
    rates: Vec<u64>,
    /// How many of them ended when an acknowledgement came.
    prompt: usize,
}

impl Pace {
    /// The sender sent `bytes` of new data.
    pub fn on_data(&mut self, time_ns: i64, bytes: u32) {
        if let Some(burst) = &mut self.burst {
            if time_ns.saturating_sub(burst.end_ns) <= BURST_NS {
                burst.end_ns = time_ns;
                burst.bytes = burst.bytes.saturating_add(bytes);
                return;
            }
            let last = *burst;
            self.end_burst(last, time_ns);
        }
        self.burst = Some(Burst { start_ns: time_ns, end_ns: time_ns, bytes });
    }

    fn end_burst(&mut self, last: Burst, time_ns: i64) {
        let gap_ns = time_ns.saturating_sub(last.start_ns);
        if gap_ns <= 0 || self.rates.len() >= MOST_BURSTS {
            return;
        }
        self.rates.push(u64::from(last.bytes).saturating_mul(1_000_000_000) / gap_ns.unsigned_abs());
        let follows = |ns: &i64| *ns > last.end_ns && time_ns.saturating_sub(*ns) < gap_ns / PROMPT_PART;
        self.prompt += usize::from(self.acknowledged_ns.as_ref().is_some_and(follows));
    }

    /// The sender sent old data: what follows is no burst of the same pace.
    pub fn on_repair(&mut self) {
        self.burst = None;
    }

    pub fn on_acknowledgement(&mut self, time_ns: i64) {
        self.acknowledged_ns = Some(time_ns);
    }

    /// End a lap: what let most of its bursts go; None if there were few, or their rates differ.
    pub fn end_lap(&mut self) -> Option<Clock> {
        let prompt = std::mem::take(&mut self.prompt);
        let count = self.rates.len();
        self.rates.sort_unstable();
        let [low, median, high] =
            [count / 4, count / 2, 3 * count / 4].map(|index| self.rates.get(index).copied());
        self.rates.clear();
        if count < BURSTS {
            return None;
        }
        if 2 * prompt > count {
            return Some(Clock::Acknowledgements);
        }
        let (low, median, high) = (low?, median?, high?);
        let is_steady = (high - low) as f64 <= SPREAD * median as f64;
        is_steady.then_some(Clock::Pace(median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Ten bursts of two segments, each some time after an acknowledgement.
    fn lap_of(delay_ns: i64) -> Option<Clock> {
        let mut pace = Pace::default();
        for burst in 0..10 {
            let time_ns = burst * 4 * MS;
            pace.on_acknowledgement(time_ns - delay_ns);
            pace.on_data(time_ns, 1_000);
            pace.on_data(time_ns + 1_000, 1_000);
        }
        pace.end_lap()
    }

    #[test]
    fn test_bursts_that_acknowledgements_do_not_let_go_show_a_pace() {
        assert_eq!(lap_of(50_000), Some(Clock::Acknowledgements));
        assert_eq!(lap_of(2 * MS), Some(Clock::Pace(500_000)));
    }

    #[test]
    fn test_bursts_at_rates_that_differ_show_no_pace() {
        let mut pace = Pace::default();
        for burst in 0..12 {
            pace.on_data(burst * burst * MS, 1_000);
        }
        assert_eq!(pace.end_lap(), None);
    }

    #[test]
    fn test_few_bursts_and_bursts_of_repairs_tell_nothing() {
        let mut pace = Pace::default();
        for burst in 0..4 {
            pace.on_data(burst * 4 * MS, 1_000);
        }
        assert_eq!(pace.end_lap(), None);
        for burst in 5..15 {
            pace.on_data(burst * 4 * MS, 1_000);
            pace.on_repair();
        }
        assert_eq!(pace.end_lap(), None);
    }
}
