//! DCCP options (RFC 4340 section 5.8), those of CCID 3 (RFC 4342 section 8) and CCID 4 (RFC 5622).

use std::iter;

use super::super::{u16_at, u32_at};

/// One option. Times are in units of 10 µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccpOption<'a> {
    /// The next option must be understood by the receiver.
    Mandatory,
    /// The receiver cannot keep up.
    SlowReceiver,
    /// A Change or Confirm of a feature (RFC 4340 section 6).
    Feature(Feature<'a>),
    /// Packets without data directly before this one (RFC 4340 section 7.7).
    NdpCount(u64),
    /// Run lengths of received packets (RFC 4340 section 11.4).
    AckVector {
        nonce: bool,
        /// One run in each byte.
        runs: &'a [u8],
    },
    /// When the packet was sent, on the sender's clock.
    Timestamp(u32),
    /// The other side's timestamp, and how long it was held.
    TimestampEcho(u32, Option<u32>),
    /// Time since the acknowledged packet arrived.
    ElapsedTime(u32),
    /// The inverse of the loss event rate, rounded up; all ones for no loss (RFC 4342 section 8.5).
    LossEventRate(u32),
    /// The loss intervals, newest first.
    LossIntervals(LossIntervals<'a>),
    /// Bytes per second received since the last report (RFC 4342 section 8.3).
    ReceiveRate(u32),
    /// Packets lost or marked in each short loss interval, 24 bits each (RFC 5622 section 8.7).
    DroppedPackets(&'a [u8]),
    /// The sender's RTT estimate in µs (RFC 6323).
    RttEstimate(u32),
    /// Of another kind.
    Other(u8),
    /// Of this kind, with an invalid length.
    Malformed(u8),
}

/// A step of a feature negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature<'a> {
    pub confirms: bool,
    /// Whether the feature is located at the option's sender ("L"), not at its receiver ("R").
    pub is_local: bool,
    /// 1 is the CCID.
    pub number: u8,
    /// The values, the preferred or agreed one first.
    pub values: &'a [u8],
}

/// The option Loss Intervals (RFC 4342 section 8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossIntervals<'a> {
    /// Packets below the acknowledged one that no interval covers.
    pub skip: u8,
    intervals: &'a [u8],
}

/// One loss interval: packets received in order, followed by the packets from the first lost one to
/// the end of a loss event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossInterval {
    pub lossless: u32,
    pub ecn_nonce: bool,
    /// Packets in the part with losses.
    pub loss: u32,
    /// Data packets among all of them.
    pub data: u32,
}

impl<'a> LossIntervals<'a> {
    const EACH: usize = 9;

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&skip, intervals) = bytes.split_first()?;
        intervals.len().is_multiple_of(Self::EACH).then_some(Self { skip, intervals })
    }

    pub fn iter(self) -> impl Iterator<Item = LossInterval> + 'a {
        self.intervals.chunks_exact(Self::EACH).map(|bytes| {
            let loss = u24_at(bytes, 3);
            LossInterval {
                lossless: u24_at(bytes, 0),
                ecn_nonce: loss >> 23 != 0,
                loss: loss & 0x7f_ffff,
                data: u24_at(bytes, 6),
            }
        })
    }
}

/// The options in `bytes`, which follow a header. One whose length goes beyond the end is
/// [`DccpOption::Malformed`] and the last, because the position of the next is unknown.
pub fn options(mut bytes: &[u8]) -> impl Iterator<Item = DccpOption<'_>> {
    iter::from_fn(move || {
        loop {
            let (&kind, rest) = bytes.split_first()?;
            bytes = rest;
            match kind {
                0 => continue,
                1 => return Some(DccpOption::Mandatory),
                2 => return Some(DccpOption::SlowReceiver),
                3..32 => return Some(DccpOption::Other(kind)),
                _ => {}
            }
            let data = rest.first().and_then(|&length| rest.get(1..usize::from(length).checked_sub(1)?));
            let Some(data) = data else {
                bytes = &[];
                return Some(DccpOption::Malformed(kind));
            };
            bytes = &rest[1 + data.len()..];
            return Some(option(kind, data).unwrap_or(DccpOption::Malformed(kind)));
        }
    })
}

/// The option of a kind from 32 on; None if its data are invalid.
fn option(kind: u8, data: &[u8]) -> Option<DccpOption<'_>> {
    Some(match kind {
        32..=35 => {
            let (&number, values) = data.split_first()?;
            let (confirms, is_local) = (kind % 2 == 1, kind < 34);
            DccpOption::Feature(Feature { confirms, is_local, number, values })
        }
        37 => DccpOption::NdpCount(unsigned(data, 1..=6)?),
        38 | 39 => DccpOption::AckVector { nonce: kind == 39, runs: data },
        41 => DccpOption::Timestamp(exactly_u32(data)?),
        42 => {
            let (echo, elapsed) = data.split_at_checked(4)?;
            let elapsed = if elapsed.is_empty() { None } else { Some(elapsed_time(elapsed)?) };
            DccpOption::TimestampEcho(u32_at(echo, 0), elapsed)
        }
        43 => DccpOption::ElapsedTime(elapsed_time(data)?),
        128 => DccpOption::RttEstimate(unsigned(data, 1..=3)? as u32),
        192 => DccpOption::LossEventRate(exactly_u32(data)?),
        193 => DccpOption::LossIntervals(LossIntervals::read(data)?),
        194 => DccpOption::ReceiveRate(exactly_u32(data)?),
        195 if data.len().is_multiple_of(3) => DccpOption::DroppedPackets(data),
        195 => return None,
        _ => DccpOption::Other(kind),
    })
}

fn exactly_u32(data: &[u8]) -> Option<u32> {
    data.try_into().ok().map(u32::from_be_bytes)
}

fn elapsed_time(data: &[u8]) -> Option<u32> {
    match data.len() {
        2 => Some(u32::from(u16_at(data, 0))),
        4 => Some(u32_at(data, 0)),
        _ => None,
    }
}

fn unsigned(data: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Option<u64> {
    lengths.contains(&data.len()).then(|| data.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn u24_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::vectors::{from_hex, vectors};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn described(found: &[DccpOption<'_>]) -> Value {
        let mut described_options = json!({"loss_intervals": [], "skip_length": null});
        let tens_of_us = |time: u32| f64::from(time) * 1e-5;
        for option in found {
            match *option {
                DccpOption::LossEventRate(inverse) => {
                    described_options["loss_event_rate_inverse"] = inverse.into();
                    described_options["p"] =
                        if inverse == u32::MAX { 0.0 } else { 1.0 / f64::from(inverse) }.into();
                }
                DccpOption::ReceiveRate(rate) => described_options["receive_rate_Bps"] = rate.into(),
                DccpOption::ElapsedTime(time) => {
                    described_options["elapsed_time_s"] = tens_of_us(time).into()
                }
                DccpOption::Timestamp(time) => described_options["timestamp"] = time.into(),
                DccpOption::TimestampEcho(time, _) => described_options["timestamp_echo"] = time.into(),
                DccpOption::LossIntervals(intervals) => {
                    described_options["skip_length"] = intervals.skip.into();
                    let rows = intervals.iter().map(|interval| {
                        json!({"lossless": interval.lossless, "loss": interval.loss, "data": interval.data,
                               "ecn_nonce": u8::from(interval.ecn_nonce)})
                    });
                    described_options["loss_intervals"] = rows.collect();
                }
                _ => panic!("{option:?}"),
            }
        }
        described_options
    }

    fn is_like(ours: &Value, theirs: &Value) -> bool {
        match (ours.as_f64(), theirs.as_f64()) {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() <= 1e-9 * theirs.abs(),
            _ => ours == theirs,
        }
    }

    #[test]
    fn test_options_are_those_of_the_vectors() {
        for vector in vectors("dccp_options.json") {
            let bytes = from_hex(vector["hex"].as_str().unwrap());
            let mut found: Vec<_> = options(&bytes).collect();
            // An option Loss Intervals without intervals is empty, and the vectors have null for
            // it.
            found.retain(
                |option| !matches!(option, DccpOption::LossIntervals(list) if list.iter().next().is_none()),
            );
            let described_options = described(&found);
            for (name, expected) in vector["expect"].as_object().unwrap() {
                assert!(
                    is_like(&described_options[name], expected),
                    "{}: {name} is {}",
                    vector["id"],
                    described_options[name]
                );
            }
        }
    }

    #[test]
    fn test_features_name_whose_they_are() {
        // Change L CCID 3 or 2, Confirm R CCID 3 of those
        let bytes = [32, 5, 1, 3, 2, 35, 6, 1, 3, 3, 2];
        let feature = |confirms, is_local, values| Feature { confirms, is_local, number: 1, values };
        let found: Vec<_> = options(&bytes).collect();
        assert_eq!(
            found,
            [
                DccpOption::Feature(feature(false, true, &[3, 2])),
                DccpOption::Feature(feature(true, false, &[3, 3, 2])),
            ]
        );
    }

    #[test]
    fn test_a_timestamp_echo_may_say_how_long_it_was_held() {
        let bytes = [42, 6, 0, 0, 0, 9, 42, 8, 0, 0, 0, 9, 1, 0, 42, 10, 0, 0, 0, 9, 0, 1, 0, 0];
        let found: Vec<_> = options(&bytes).collect();
        let echo = |elapsed| DccpOption::TimestampEcho(9, elapsed);
        assert_eq!(found, [echo(None), echo(Some(256)), echo(Some(65536))]);
    }

    #[test]
    fn test_a_length_that_lies_ends_the_options() {
        for bytes in [&[41][..], &[41, 0], &[41, 1, 0, 0], &[41, 6, 0, 0, 0]] {
            assert_eq!(options(bytes).collect::<Vec<_>>(), [DccpOption::Malformed(41)], "{bytes:?}");
        }
        // One that is allowed here but of the wrong kind is skipped.
        let found: Vec<_> = options(&[194, 4, 0, 0, 2]).collect();
        assert_eq!(found, [DccpOption::Malformed(194), DccpOption::SlowReceiver]);
    }

    proptest! {
        #[test]
        fn test_no_options_panic_or_go_on_for_ever(bytes in proptest::collection::vec(any::<u8>(), 0..1024)) {
            prop_assert!(options(&bytes).count() <= bytes.len());
        }
    }
}
