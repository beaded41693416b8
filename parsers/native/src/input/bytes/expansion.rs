//! Decompression bombs: memory is flat whatever an input expands to, but not the time that it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Decompressed bytes that are accepted from any input.
const FLOOR: u64 = 1 << 30;

/// Decompressed bytes for each compressed one beyond the floor. Full-size segments of zeros reach 66 (gzip)
/// to 116 (bzip2), jumbo frames of zeros 664.
const MAX_RATIO: u64 = 1_000;

/// When to give up an input as a decompression bomb.
pub struct ExpansionBound {
    /// The user's bound, which replaces the ratio.
    pub most: Option<u64>,
    /// Compressed bytes read so far.
    pub packed: Arc<AtomicU64>,
}

impl ExpansionBound {
    /// Decompressed bytes that are accepted by now.
    pub fn now(&self) -> u64 {
        self.most.unwrap_or_else(|| self.packed.load(Ordering::Relaxed).saturating_mul(MAX_RATIO).max(FLOOR))
    }

    /// What exceeding the bound is called.
    pub fn exceeded(&self) -> String {
        match self.most {
            Some(most) => format!("more than {most} bytes after decompression"),
            None => format!(
                "more than {MAX_RATIO} times as large after decompression, beyond {} GiB",
                FLOOR >> 30
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(most: Option<u64>, packed: u64) -> u64 {
        ExpansionBound { most, packed: Arc::new(AtomicU64::new(packed)) }.now()
    }

    #[test]
    fn test_the_ratio_counts_above_the_floor() {
        assert_eq!(bound(None, 0), FLOOR);
        assert_eq!(bound(None, 1_000), FLOOR);
        assert_eq!(bound(None, 1 << 30), 1_000 << 30);
    }

    #[test]
    fn test_the_bound_of_the_user_replaces_the_ratio() {
        assert_eq!(bound(Some(5), 1 << 30), 5);
        assert_eq!(bound(Some(u64::MAX), 1), u64::MAX);
    }
}
