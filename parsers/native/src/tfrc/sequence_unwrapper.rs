//! Unwraps sequence numbers: RTP has 16 bits, short DCCP 24, DCCP 48.

use serde::{Deserialize, Serialize};

use crate::packet::seq::distance;

/// The numbers of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unwrapper {
    bits: u32,
    highest: Option<i64>,
}

impl Unwrapper {
    /// None yet; numbers have `bits` bits, 1 to 63.
    pub fn new(bits: u32) -> Self {
        Self { bits: bits.clamp(1, 63), highest: None }
    }

    /// The extended number of the packet `seq`: the first stays, every other is the one nearest to
    /// the highest so far. Half of all numbers lie below it.
    pub fn extend(&mut self, seq: u64) -> i64 {
        let seq = seq & ((1 << self.bits) - 1);
        let Some(highest) = self.highest else {
            self.highest = Some(seq as i64);
            return seq as i64;
        };
        let extended = highest.saturating_add(distance(seq, highest as u64, self.bits));
        self.highest = Some(highest.max(extended));
        extended
    }

    /// The same without taking the packet in; its own number before the first one.
    pub fn peek(&self, seq: u64) -> i64 {
        self.clone().extend(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn test_what_was_wrapped_comes_back(
            bits in prop::sample::select(vec![16_u32, 24, 32, 48]),
            start in 0_u64..1 << 48,
            steps in proptest::collection::vec(-1000_i64..1000, 0..50),
        ) {
            let start = start & ((1 << bits) - 1);
            let mut unwrapper = Unwrapper::new(bits);
            let mut true_number = start as i64;
            prop_assert_eq!(unwrapper.extend(start), true_number);
            for step in steps {
                true_number += step;
                let seq = true_number.rem_euclid(1 << bits) as u64;
                prop_assert_eq!(unwrapper.extend(seq), true_number);
            }
        }

        #[test]
        fn test_any_numbers_are_taken(bits in 0_u32..70, numbers in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut unwrapper = Unwrapper::new(bits);
            for number in numbers {
                unwrapper.extend(number);
            }
        }
    }
}
