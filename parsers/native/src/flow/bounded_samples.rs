//! Samples collected during a pass, up to a limit.

/// Samples of one kind, up to a limit.
#[derive(Debug)]
pub struct BoundedSamples<T> {
    /// The first samples, up to the limit.
    pub kept: Vec<T>,
    /// Whether they are collected.
    pub wanted: bool,
    limit: usize,
    /// Samples beyond the limit.
    pub left_out: u64,
}

impl<T> BoundedSamples<T> {
    /// Empty, with a capacity of `limit`.
    pub fn new(wanted: bool, limit: usize) -> Self {
        Self { kept: Vec::new(), wanted, limit, left_out: 0 }
    }

    /// Keep `sample` if the limit allows.
    pub fn add(&mut self, sample: T) {
        if self.kept.len() < self.limit {
            self.kept.push(sample);
        } else {
            self.left_out += 1;
        }
    }

    /// Keep `sample` if such samples are collected.
    pub fn offer(&mut self, sample: T) {
        if self.wanted {
            self.add(sample);
        }
    }
}
