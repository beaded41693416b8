//! The precision of times. ns-3 prints six significant digits by default, so the step grows with
//! the time.

/// Digits that are printed by default.
const USUAL_DIGITS: u32 = 6;
/// Steps below this get no caveat: delays in a simulation are milliseconds.
const COARSE_NS: u64 = 100_000;

#[derive(Debug, Default)]
pub struct Precision {
    most_digits: u32,
    latest_ns: i64,
}

impl Precision {
    /// Take a time as printed.
    #[inline]
    pub fn note(&mut self, time: &[u8], time_ns: i64) {
        if time.len() as u32 > self.most_digits {
            self.most_digits = self.most_digits.max(significant_digits(time));
        }
        self.latest_ns = self.latest_ns.max(time_ns);
    }

    /// The step of the latest times.
    fn step_ns(&self) -> u64 {
        let seconds = self.latest_ns.unsigned_abs() / 1_000_000_000;
        let whole_digits = seconds.checked_ilog10().map_or(0, |log| log + 1);
        let digits = self.most_digits.max(USUAL_DIGITS);
        10_u64.saturating_pow((9 + whole_digits).saturating_sub(digits))
    }

    /// A caveat about the step.
    pub fn caveat(&self) -> Option<String> {
        let step_ns = self.step_ns();
        (step_ns >= COARSE_NS).then(|| {
            let step_ms = step_ns as f64 / 1e6;
            let digits = self.most_digits.max(USUAL_DIGITS);
            format!(
                "times have {digits} digits, at the end in steps of {step_ms} ms: delays and jitter are no finer"
            )
        })
    }
}

fn significant_digits(time: &[u8]) -> u32 {
    let mantissa = time.iter().take_while(|&&byte| byte != b'e');
    let significant = mantissa.filter(|byte| byte.is_ascii_digit()).skip_while(|&&byte| byte == b'0');
    significant.count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::text::number::time_ns;

    fn caveat(times: &[&str]) -> Option<String> {
        let mut precision = Precision::default();
        for time in times {
            precision.note(time.as_bytes(), time_ns(time.as_bytes()).unwrap());
        }
        precision.caveat()
    }

    #[test]
    fn test_six_digits_are_coarse_after_ten_seconds() {
        assert_eq!(caveat(&["0.0474481", "9.99999"]), None);
        assert!(caveat(&["0.5", "15.5126"]).unwrap().contains("0.1 ms"));
        assert!(caveat(&["0.5", "123.457", "99.1234"]).unwrap().contains("steps of 1 ms"));
    }

    #[test]
    fn test_more_digits_are_fine() {
        assert_eq!(caveat(&["15.512612345", "100"]), None);
    }
}
