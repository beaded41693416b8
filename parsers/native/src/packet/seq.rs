//! Sequence numbers that wrap, as a type that cannot be compared by mistake.

use serde::{Deserialize, Serialize};

/// A 32-bit TCP sequence number (RFC 9293 section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Signed distance from `other` to `self`, right as long as they are less than 2^31 apart.
    #[inline(always)]
    pub fn since(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

/// Positions in one direction's byte stream, unwrapped to 64 bits: 0 is the first number seen.
///
/// Numbers are unwrapped against the highest position so far, so a stream may be longer than 4 GiB
/// and a retransmission across a wrap still falls where it belongs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Unwrapper {
    base: SeqNumber,
}

impl Unwrapper {
    /// Position 0 is `base`.
    pub fn new(base: SeqNumber) -> Self {
        Self { base }
    }

    /// The number at position 0.
    pub fn base(self) -> SeqNumber {
        self.base
    }

    /// The number at `position`.
    #[inline(always)]
    pub fn number(self, position: i64) -> SeqNumber {
        SeqNumber(self.base.0.wrapping_add(position as u32))
    }

    /// Position of `number`, taking it to be within 2^31 of position `near`.
    #[inline(always)]
    pub fn position(self, number: SeqNumber, near: i64) -> i64 {
        near + i64::from(number.since(self.number(near)))
    }
}

/// Signed distance from `from` to `number`, if only the low `bits` of both are known (1 to 64).
pub fn distance(number: u64, from: u64, bits: u32) -> i64 {
    let unused = u64::BITS - bits;
    (number.wrapping_sub(from) << unused) as i64 >> unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_order_survives_the_wrap() {
        assert_eq!(SeqNumber(5).since(SeqNumber(u32::MAX - 4)), 10);
        assert_eq!(SeqNumber(u32::MAX - 4).since(SeqNumber(5)), -10);
    }

    proptest! {
        #[test]
        fn test_a_stream_of_any_length_unwraps_to_its_true_positions(
            base: u32,
            steps in proptest::collection::vec(-1_000_000_i64..1_000_000_000, 1..50),
        ) {
            let unwrapper = Unwrapper::new(SeqNumber(base));
            let mut truth = 0_i64;
            for step in steps {
                let next = truth + step;
                let number = SeqNumber(base.wrapping_add(next as u32));
                prop_assert_eq!(unwrapper.position(number, truth), next);
                truth = next;
            }
        }
    }
}
