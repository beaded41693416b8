//! The time at the beginning of a line.
//!
//! | option | printed | meaning |
//! |---|---|---|
//! | none | `07:53:26.956209` | the time of day; [`Clock`] counts the days |
//! | `-t` | nothing | unknown |
//! | `-tt` | `1795247606.956209` | time since the epoch |
//! | `-ttt`, `-ttttt` | ` 00:00:00.000019`, `-00:00:00.000002` | since the line before, or since the first: see [`super::pending_times`] |
//! | `-tttt` | `2026-11-21 07:53:26.956209` | a date without time zone |
//! | `-ttt` of versions 3 | `000019`, `1. 000019` | since the line before, in microseconds |

use super::scan::{SECOND, long_number, number, number_after, trim_start};
use crate::input::text::number::TO_NS;

pub const DAY: i64 = 86_400 * SECOND;

/// A time as printed, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    Missing,
    Epoch(i64),
    /// Since the epoch, in a time zone that is not named.
    Date(i64),
    OfDay(i64),
    /// Since the previous line, or since the first line.
    Since(i64),
    /// Since the previous line.
    Difference(i64),
}

/// The line without the number printed by `--number`.
#[inline]
pub fn without_number(line: &[u8]) -> &[u8] {
    let text = trim_start(line);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return line;
    }
    // Two blanks; a third one belongs to the time.
    text.get(digits..).and_then(|rest| rest.strip_prefix(b"  ")).unwrap_or(line)
}

/// The length of the frame that `--lengths` prints, `caplen 98 len 266 `, and the text after it.
#[inline]
pub fn without_lengths(text: &[u8]) -> (Option<u32>, &[u8]) {
    let lengths = || {
        let (_, rest) = number_after(text, b"caplen ")?;
        let (frame_bytes, rest) = number_after(rest, b" len ")?;
        Some((Some(frame_bytes), rest.strip_prefix(b" ")?))
    };
    match text.first() {
        Some(b'c') => lengths().unwrap_or((None, text)),
        _ => (None, text),
    }
}

/// The time that the line begins with, and the text after it and its blank.
#[inline(never)]
pub fn read(line: &[u8]) -> Option<(Stamp, &[u8])> {
    match line.first()? {
        b' ' => {
            let (ns, rest) = of_day(line.get(1..)?)?;
            Some((Stamp::Since(ns), rest))
        }
        b'-' => {
            let (ns, rest) = of_day(line.get(1..)?)?;
            Some((Stamp::Since(-ns), rest))
        }
        b'0'..=b'9' => match (line.get(2)?, line.get(4)) {
            (b':', _) => of_day(line).map(|(ns, rest)| (Stamp::OfDay(ns), rest)),
            (_, Some(b'-')) => dated(line),
            _ => epoch(line),
        },
        _ => None,
    }
}

/// `seconds.ffffff` and the blank after it.
#[inline(always)]
fn epoch(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let (seconds, rest) = long_number(line)?;
    if !matches!(rest, [b'.', b'0'..=b'9', ..]) {
        return microseconds(line);
    }
    let (ns, rest) = fraction(rest)?;
    let seconds_ns = i64::try_from(seconds).ok()?.checked_mul(SECOND)?;
    Some((Stamp::Epoch(seconds_ns.checked_add(ns)?), rest.strip_prefix(b" ")?))
}

/// Versions 3 print the time since the previous line as `000019`, or `2. 000019` with seconds.
#[cold]
fn microseconds(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let (first, rest) = number(line)?;
    let (seconds, digits) = match rest.strip_prefix(b". ") {
        Some(digits) => (first, digits),
        None => (0, line),
    };
    let (us, rest) = number(digits)?;
    let is_time = digits.len() - rest.len() == 6;
    let ns = i64::from(seconds) * SECOND + i64::from(us) * 1_000;
    Some((Stamp::Difference(ns), rest.strip_prefix(b" ")?)).filter(|_| is_time)
}

/// `HH:MM:SS.ffffff` and the blank after it.
#[inline]
fn of_day(text: &[u8]) -> Option<(i64, &[u8])> {
    let (clock, rest) = text.split_at_checked(8)?;
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let seconds = two(h1, h2)? * 3600 + two(m1, m2)? * 60 + two(s1, s2)?;
    let (ns, rest) = fraction(rest)?;
    Some((seconds * SECOND + ns, rest.strip_prefix(b" ")?))
}

/// `.ffffff`, of any number of digits up to nine, or nothing.
#[inline(always)]
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let (value, rest) = long_number(digits)?;
    let factor = *TO_NS.get(digits.len() - rest.len())?;
    Some(((value * factor) as i64, rest))
}

#[inline]
fn two(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then_some(i64::from(tens) * 10 + i64::from(ones))
}

/// `YYYY-MM-DD HH:MM:SS.ffffff`.
fn dated(line: &[u8]) -> Option<(Stamp, &[u8])> {
    let (year, rest) = number(line)?;
    let (month, rest) = number(rest.strip_prefix(b"-")?)?;
    let (day, rest) = number(rest.strip_prefix(b"-")?)?;
    let (ns, rest) = of_day(rest.strip_prefix(b" ")?)?;
    if !(1970..2262).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_since_epoch(i64::from(year), i64::from(month), i64::from(day));
    Some((Stamp::Date(days * DAY + ns), rest))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March, so that the leap
/// day is the last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days_of_months = (153 * month + 2) / 5;
    // 719,469 days are between the first of March of the year 0 and the epoch, less the day itself.
    year * 365 + leap_days + days_of_months + day - 719_469
}

/// Times of day, continued over midnight.
#[derive(Debug, Default)]
pub struct Clock {
    previous: Option<i64>,
    days: i64,
}

impl Clock {
    /// Nanoseconds since midnight before the first line.
    #[inline]
    pub fn unwrap(&mut self, of_day: i64) -> i64 {
        if let Some(previous) = self.previous {
            // Half a day back cannot be a clock that was set back, and cannot be distinguished from
            // a long pause.
            if of_day < previous - DAY / 2 {
                self.days += 1;
            } else if of_day > previous + DAY / 2 && self.days > 0 {
                self.days -= 1;
            }
        }
        self.previous = Some(of_day);
        self.days.saturating_mul(DAY).saturating_add(of_day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp_of(line: &str) -> Option<Stamp> {
        read(without_number(line.as_bytes())).filter(|(_, rest)| *rest == b"IP x").map(|(stamp, _)| stamp)
    }

    #[test]
    fn test_every_form() {
        let of_day = 28_406 * SECOND + 956_209_000;
        for (line, stamp) in [
            ("07:53:26.956209 IP x", Stamp::OfDay(of_day)),
            ("07:53:26.956209001 IP x", Stamp::OfDay(of_day + 1)),
            ("07:53:26 IP x", Stamp::OfDay(28_406 * SECOND)),
            ("1795247606.956209 IP x", Stamp::Epoch(1_795_247_606_956_209_000)),
            ("1795247606.956209123 IP x", Stamp::Epoch(1_795_247_606_956_209_123)),
            ("0.500000 IP x", Stamp::Epoch(500_000_000)),
            (" 00:00:00.000019 IP x", Stamp::Since(19_000)),
            ("-00:00:00.000002 IP x", Stamp::Since(-2_000)),
            ("2026-11-21 07:53:26.956209 IP x", Stamp::Date(1_795_247_606_956_209_000)),
            ("1970-01-01 00:00:00.5 IP x", Stamp::Date(500_000_000)),
            ("2000-02-29 00:00:00.000000 IP x", Stamp::Date(951_782_400 * SECOND)),
            ("000019 IP x", Stamp::Difference(19_000)),
            ("2. 000019 IP x", Stamp::Difference(2 * SECOND + 19_000)),
            ("    1  1795247606.956209 IP x", Stamp::Epoch(1_795_247_606_956_209_000)),
            ("123456  07:53:26.956209 IP x", Stamp::OfDay(of_day)),
            ("    2   00:00:00.000019 IP x", Stamp::Since(19_000)),
            ("    2  -00:00:00.000019 IP x", Stamp::Since(-19_000)),
        ] {
            assert_eq!(stamp_of(line), Some(stamp), "{line}");
        }
    }

    #[test]
    fn test_what_is_no_time() {
        for line in [
            "",
            "IP x",
            "    10.0.0.1.5 > 10.0.0.2.6: x",
            "07:53 IP x",
            "07:5x:26.9 IP x",
            "07:53:26.9999999999 IP x",
            "2026-13-01 07:53:26.9 IP x",
            "4026-12-01 07:53:26.9 IP x",
            "99999999999999.5 IP x",
            "12345 IP x",
            "07:53:26.956209",
        ] {
            assert_eq!(stamp_of(line), None, "{line}");
        }
    }

    #[test]
    fn test_days_are_counted_over_midnight_and_back() {
        let mut clock = Clock::default();
        let times = [DAY - 2, DAY - 1, 1, DAY - 1, 2, DAY / 4];
        let unwrapped = times.map(|time| clock.unwrap(time));
        assert_eq!(unwrapped, [DAY - 2, DAY - 1, DAY + 1, DAY - 1, DAY + 2, DAY + DAY / 4]);
    }

    #[test]
    fn test_days_follow_each_other_through_all_years() {
        let length = |year: i64, month: i64| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut days = 0;
        for year in 1970..2262 {
            for month in 1..=12 {
                for day in 1..=length(year, month) {
                    assert_eq!(days_since_epoch(year, month, day), days);
                    days += 1;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn test_any_bytes_have_a_time_or_not(bytes: Vec<u8>) {
            let _ = read(without_number(&bytes));
        }
    }
}
