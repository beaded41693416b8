//! Two files of one trace, one after the other: whether the flows go on, and what the clock did.

use super::file_survey::{FileSurvey, NumberRange, Succession};
use crate::packet::sender_stamp::Stamp;

/// The smallest change of the clock that is believed: queues delay timestamps, too.
const SMALLEST_STEP_NS: f64 = 300e6;

/// The shortest part of a flow that shows how fast its sender's timestamps run.
const SHORTEST_NS: i64 = 200_000_000;

/// A silence between two files that is worth a word, next to those inside of them.
const SHORTEST_GAP_NS: i64 = 1_000_000_000;
const SILENCES: i64 = 10;

/// What the numbers of two neighbours show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    /// Directions of flows that go on in the second file, that go on in the first, and that cover the
    /// same numbers in both.
    pub after: usize,
    pub before: usize,
    pub among: usize,
    /// Directions of flows in both that have no numbers.
    pub unnumbered: usize,
    /// Payload bytes that are in neither, though the receiver had them: lost ones it asks for.
    pub missing_bytes: u64,
    /// Flows that miss them.
    pub flows_with_gap: u64,
    /// How much more time passed by the clock than by the timestamps of the flows.
    pub step_ns: Option<i64>,
}

impl Comparison {
    /// Compare a file with the one read before it.
    pub fn of(before: &FileSurvey, file: &FileSurvey) -> Self {
        let mut found = Self::default();
        let mut steps_ns = Vec::new();
        for (key, mine) in &file.directions {
            let Some(other) = before.directions.get(key) else { continue };
            if mine.is_new_since(other) {
                continue;
            }
            match mine.relation_to(other) {
                Succession::After => found.after += 1,
                Succession::Before => found.before += 1,
                Succession::Among => found.among += 1,
                Succession::Unknown => found.unnumbered += 1,
            }
            let (flow, side) = *key;
            let answers = file.directions.get(&(flow, side.other())).and_then(|back| back.acknowledgements);
            let missing = missing_bytes(other.data, mine.data, answers).unwrap_or(0);
            if missing > 0 && mine.may_follow(other) {
                found.missing_bytes += missing.unsigned_abs();
                found.flows_with_gap += 1;
            }
            steps_ns.extend(other.stamps.zip(mine.stamps).and_then(|(other, mine)| step_ns(other, mine)));
        }
        steps_ns.sort_unstable();
        found.step_ns = steps_ns.get(steps_ns.len() / 2).copied().filter(|&step_ns| step_ns != 0);
        found
    }

    /// Whether most flows in both files go on from the first to the second.
    pub fn goes_on(&self) -> bool {
        let numbered = self.after + self.before + self.among;
        if numbered > 0 { self.after * 2 > numbered } else { self.unnumbered > 0 }
    }

    /// Whether most flows in both files go on from the second to the first.
    pub fn is_contrary(&self) -> bool {
        self.before > self.after + self.among
    }
}

/// Bytes between the data of two files that are acknowledged in the second.
fn missing_bytes(
    before: Option<NumberRange>,
    data: Option<NumberRange>,
    answers: Option<NumberRange>,
) -> Option<i64> {
    let before = before?;
    Some(data?.ahead_of(&before).min(answers?.end_ahead_of(&before)))
}

/// The time between two files if nothing was captured for much longer than ever inside of them.
pub fn silence_ns(before: &FileSurvey, file: &FileSurvey) -> Option<i64> {
    let silence_ns = file.span_ns?.0.saturating_sub(before.span_ns?.1);
    let usual_ns = before.longest_silence_ns.max(file.longest_silence_ns);
    (silence_ns >= SHORTEST_GAP_NS && silence_ns / SILENCES > usual_ns).then_some(silence_ns)
}

/// How much more time passed by the capture's clock than by the timestamps of one sender; 0 if that is
/// less than can be known, None if it is unknown.
fn step_ns(before: (Stamp, Stamp), file: (Stamp, Stamp)) -> Option<i64> {
    let of = |(first, last): (Stamp, Stamp)| {
        let passed_ns = last.time_ns.saturating_sub(first.time_ns);
        (passed_ns, last.value.wrapping_sub(first.value) as i32)
    };
    let (base_ns, ticks) = [of(before), of(file)].into_iter().max_by_key(|of| of.0)?;
    if base_ns < SHORTEST_NS || ticks <= 0 {
        return None;
    }
    let tick_ns = base_ns as f64 / f64::from(ticks);
    let (last, next) = (before.1, file.0);
    let by_stamps_ns = f64::from(next.value.wrapping_sub(last.value) as i32) * tick_ns;
    let step_ns = next.time_ns.saturating_sub(last.time_ns) as f64 - by_stamps_ns;
    // The rate is as uncertain as the times it comes from.
    let doubt_ns = (SMALLEST_STEP_NS + tick_ns) * (1.0 + by_stamps_ns.abs() / base_ns as f64);
    Some(if step_ns.abs() > doubt_ns { step_ns.round() as i64 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn stamps(start_ms: i64, ticks: u32, tick_ms: i64) -> (Stamp, Stamp) {
        let first = Stamp { time_ns: start_ms * MS, value: u32::MAX - 100 };
        (
            first,
            Stamp {
                time_ns: first.time_ns + i64::from(ticks) * tick_ms * MS,
                value: ticks.wrapping_sub(101),
            },
        )
    }

    #[test]
    fn test_timestamps_distinguish_a_silence_from_a_step() {
        for tick_ms in [1, 4, 10] {
            let before = stamps(0, 500, tick_ms);
            let end_ms = 500 * tick_ms;
            let later = |by_clock_ms: i64, by_stamps_ms: i64| {
                let value = before.1.value.wrapping_add((by_stamps_ms / tick_ms) as u32);
                let first = Stamp { time_ns: (end_ms + by_clock_ms) * MS, value };
                let last = Stamp {
                    time_ns: first.time_ns + 40 * MS,
                    value: value.wrapping_add(40 / tick_ms as u32),
                };
                step_ns(before, (first, last))
            };
            assert_eq!(later(5_000, 5_000), Some(0));
            assert_eq!(later(20, 20), Some(0));
            assert_eq!(later(5_000, 20).map(|ns| ns / MS / 100), Some(49));
            assert_eq!(later(-4_980, 20).map(|ns| ns / MS / 100), Some(-50));
        }
        assert_eq!(step_ns(stamps(0, 5, 1), stamps(9_000, 5, 1)), None);
    }
}
