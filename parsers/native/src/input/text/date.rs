//! Dates as logs write them, to time since the epoch.

use super::number;

const NS: i64 = 1_000_000_000;

/// Days since 1970 of a date of the Gregorian calendar; None if there is no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    const DAYS_TO_1970: i64 = 719_468;
    Some(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - DAYS_TO_1970)
}

/// A date such as `2026-11-21` in ns since the epoch.
pub fn date_ns(text: &[u8]) -> Option<i64> {
    let (year, rest) = text.split_at_checked(4)?;
    let [b'-', m1, m2, b'-', d1, d2] = *rest else { return None };
    let part = |digits: &[u8]| number::decimal(digits).and_then(|value| i64::try_from(value).ok());
    days(part(year)?, part(&[m1, m2])?, part(&[d1, d2])?)?.checked_mul(86_400 * NS)
}

/// A time of day such as `07:54:00` or `07:54:00.123` (also with a comma) in ns.
pub fn clock_ns(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = text.split_at_checked(8)?;
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *clock else { return None };
    let part =
        |digits: [u8; 2], limit: i64| number::signed(&digits).filter(|value| (0..limit).contains(value));
    // 60 is a leap second.
    let seconds = part([h1, h2], 24)? * 3600 + part([m1, m2], 60)? * 60 + part([s1, s2], 61)?;
    Some(seconds * NS + fraction_ns(fraction)?)
}

/// `.5` or `,5` of a second in ns; empty is 0.
fn fraction_ns(text: &[u8]) -> Option<i64> {
    let Some((b'.' | b',', digits)) = text.split_first() else {
        return text.is_empty().then_some(0);
    };
    let mut ns = 0;
    let mut scale = NS / 10;
    for byte in digits {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        ns += digit * scale;
        scale /= 10;
    }
    (!digits.is_empty()).then_some(ns)
}

/// A date with time in ISO 8601: `2026-11-21T07:54:00,123456789+01:00`. Without a zone, UTC.
pub fn iso_ns(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (b'T' | b' ', rest) = rest.split_first()? else { return None };
    let zone_at = rest.iter().position(|byte| matches!(byte, b'+' | b'-' | b'Z')).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    date_ns(date)?.checked_add(clock_ns(clock)?)?.checked_sub(zone_ns(zone)?)
}

/// A zone's offset from UTC: `Z`, `+01:00`, `+0100`, or empty.
fn zone_ns(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [] | b"Z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match *digits {
        [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => ([h1, h2], [m1, m2]),
        [h1, h2] => ([h1, h2], *b"00"),
        _ => return None,
    };
    let part = |digits: [u8; 2]| number::decimal(&digits).and_then(|value| i64::try_from(value).ok());
    Some(sign * (part(hours)? * 3600 + part(minutes)? * 60) * NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_dates_as_programs_print_them() {
        // Printed by GNU date: `date -ud '2026-11-21 07:54:00' +%s`
        let expected = 1_795_247_640 * NS;
        for text in [
            "2026-11-21T07:54:00Z",
            "2026-11-21T07:54:00",
            "2026-11-21 07:54:00",
            "2026-11-21T08:54:00+01:00",
            "2026-11-20T23:54:00-0800",
            "2026-11-21T07:54:00,000000000+00:00",
        ] {
            assert_eq!(iso_ns(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(iso_ns(b"2026-11-21T07:54:00.25Z"), Some(expected + NS / 4));
        assert_eq!(iso_ns(b"1970-01-01T00:00:00Z"), Some(0));
        // `date -ud '2000-02-29' +%s`
        assert_eq!(date_ns(b"2000-02-29"), Some(951_782_400 * NS));
    }

    #[test]
    fn test_days_that_do_not_exist() {
        for text in ["2025-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "2026-1-01", ""] {
            assert_eq!(date_ns(text.as_bytes()), None, "{text}");
        }
        for text in ["24:00:00", "07:60:00", "07:54", "07:54:00.", "07:54:00x", "-1:00:00"] {
            assert_eq!(clock_ns(text.as_bytes()), None, "{text}");
        }
        // Years beyond what 64 bits of nanoseconds hold.
        assert_eq!(iso_ns(b"9999-01-01T00:00:00Z"), None);
    }

    #[test]
    fn test_days_follow_each_other() {
        let mut expected = 0;
        for year in 1970..2110 {
            for (month, day) in (1..=12).flat_map(|month| (1..=31).map(move |day| (month, day))) {
                if let Some(found) = days(year, month, day) {
                    assert_eq!(found, expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
        // 140 years with 34 leap days: 2100 has none.
        assert_eq!(expected, 140 * 365 + 34);
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_a_date_or_not(bytes: Vec<u8>) {
            let _ = (iso_ns(&bytes), date_ns(&bytes), clock_ns(&bytes));
        }
    }
}
