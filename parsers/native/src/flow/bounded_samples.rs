//! Samples that are kept of a pass, up to a bound.

/// Samples of one kind, up to a bound.
#[derive(Debug)]
pub struct BoundedSamples<T> {
    /// Those kept: the first ones.
    pub kept: Vec<T>,
    /// Whether anybody asked for them.
    pub wanted: bool,
    limit: usize,
    /// Those for which there was no room.
    pub left_out: u64,
}

impl<T> BoundedSamples<T> {
    /// None yet, and room for `limit`.
    pub fn new(wanted: bool, limit: usize) -> Self {
        Self { kept: Vec::new(), wanted, limit, left_out: 0 }
    }

    /// Keep `sample` if there is room.
    pub fn add(&mut self, sample: T) {
        if self.kept.len() < self.limit {
            self.kept.push(sample);
        } else {
            self.left_out += 1;
        }
    }

    /// Keep `sample` if anybody asked for such.
    pub fn offer(&mut self, sample: T) {
        if self.wanted {
            self.add(sample);
        }
    }
}
