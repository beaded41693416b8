//! Numbers as traces print them. None means: not a number, or out of range.

/// Factors to nanoseconds, by the number of fractional digits.
pub const TO_NS: [u64; 10] =
    [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// Nanoseconds of a time in seconds: `1`, `0.5`, `1.06612737641685`, `-0.1`, `1e-05`, `+0.7`.
/// Digits after the ninth round to the nearest.
#[inline]
pub fn time_ns(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let mut seconds: u64 = 0;
    let mut at = 0;
    while let Some(digit) = digits.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        seconds = seconds.checked_mul(10)?.checked_add(u64::from(digit))?;
        at += 1;
    }
    let whole_digits = at;
    let mut ns: u64 = 0;
    let mut scale: u64 = 1_000_000_000;
    let mut fraction_digits = 0;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        while let Some(digit) = digits.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            if scale > 1 {
                scale /= 10;
                ns += u64::from(digit) * scale;
            } else if fraction_digits == 9 && digit >= 5 {
                ns += 1;
            }
            fraction_digits += 1;
            at += 1;
        }
    }
    if whole_digits + fraction_digits == 0 {
        return None;
    }
    if at < digits.len() {
        return with_exponent(text);
    }
    let total = i64::try_from(seconds.checked_mul(1_000_000_000)?.checked_add(ns)?).ok()?;
    Some(if negative { -total } else { total })
}

/// Rare: ns-3 prints tiny times as `1e-05`.
#[cold]
fn with_exponent(text: &[u8]) -> Option<i64> {
    let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let ns = (seconds * 1e9).round();
    (ns.abs() < 9e18).then_some(ns as i64)
}

/// Factors by number of digits.
pub const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The value of the digits that eight bytes begin with (undefined without any) and their number.
/// One step for all of them: the end of a number is unpredictable for a processor.
#[inline(always)]
pub fn leading_digits(bytes: &[u8; 8]) -> (u64, usize) {
    let count = digit_count(bytes);
    // The digits moved to the end, with zeros before them. Then each product has a digit and ten
    // times the one before it, next to each other, in the upper half; and likewise with pairs and
    // fours.
    let digits = (u64::from_le_bytes(*bytes) ^ ZEROS).wrapping_shl(64 - 8 * count as u32);
    let pairs = digits.wrapping_mul(10 * 256 + 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul((100 << 16) + 1) >> 16 & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul((10_000 << 32) + 1) >> 32, count)
}

/// The number of digits that eight bytes begin with.
#[inline(always)]
pub fn digit_count(bytes: &[u8; 8]) -> usize {
    let digits = u64::from_le_bytes(*bytes) ^ ZEROS;
    // The highest bit is set for each byte above 9; a carry changes only bytes after it.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    (others.trailing_zeros() / 8) as usize
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// A decimal number without sign.
#[inline]
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal number that may be negative.
#[inline]
pub fn signed(text: &[u8]) -> Option<i64> {
    match text.first()? {
        b'-' => i64::try_from(decimal(&text[1..])?).ok().map(|value| -value),
        _ => i64::try_from(decimal(text)?).ok(),
    }
}

/// A hexadecimal number, with or without `0x`.
pub fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let digits = std::str::from_utf8(digits).ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

/// A number with a fraction, as measured values have it.
pub fn real(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_times_as_simulators_print_them() {
        for (text, ns) in [
            ("1", 1_000_000_000),
            ("0.5", 500_000_000),
            (".5", 500_000_000),
            ("17.60", 17_600_000_000),
            ("1.06612737641685", 1_066_127_376),
            ("0.3628845291000136", 362_884_529),
            ("0.9999999996", 1_000_000_000),
            ("1e-05", 10_000),
            ("1.5e+1", 15_000_000_000),
            ("+0.7", 700_000_000),
            ("-0.25", -250_000_000),
        ] {
            assert_eq!(time_ns(text.as_bytes()), Some(ns), "{text}");
        }
        for text in ["", ".", "-", "abc", "1.2.3", "1 ", "nan", "inf", "99999999999", "1e30", "0x10"] {
            assert_eq!(time_ns(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn test_integers() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "+1", "1a"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
        assert_eq!((signed(b"-12"), signed(b"12"), signed(b"-")), (Some(-12), Some(12), None));
        assert_eq!((hexadecimal(b"0x1a"), hexadecimal(b"ffffffff")), (Some(26), Some(0xffff_ffff)));
        assert_eq!((hexadecimal(b"+1"), hexadecimal(b"0x"), hexadecimal(b"xyz")), (None, None, None));
    }

    proptest! {
        #[test]
        fn test_nine_digits_are_exact(ns in 0..i64::MAX / 2) {
            let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(time_ns(text.as_bytes()), Some(ns));
        }

        #[test]
        fn test_any_bytes_are_a_number_or_not(bytes: Vec<u8>) {
            let _ = (time_ns(&bytes), decimal(&bytes), signed(&bytes), hexadecimal(&bytes), real(&bytes));
        }
    }
}
