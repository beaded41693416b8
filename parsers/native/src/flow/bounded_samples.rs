//! Samples collected during a pass, up to a limit.

/// Samples of one kind, up to a limit.
#[derive(Debug)]
pub struct BoundedSamples<T> {
    /// The first samples, up to the limit.
    pub kept: Vec<T>,
    /// Whether they are collected.
    pub wanted: bool,
    limit: usize,
    /// Samples that came out of turn, each with its turn.
    out_of_turn: Vec<(u16, T)>,
    /// Samples beyond the limit.
    pub left_out: u64,
}

impl<T> BoundedSamples<T> {
    /// Empty, with a capacity of `limit`.
    pub fn new(wanted: bool, limit: usize) -> Self {
        Self { kept: Vec::new(), wanted, limit, out_of_turn: Vec::new(), left_out: 0 }
    }

    /// Keep `sample` if the limit allows.
    pub fn add(&mut self, sample: T) {
        if self.kept.len() < self.limit {
            self.kept.push(sample);
        } else {
            self.left_out += 1;
        }
    }

    /// The same for a sample out of turn, which [`BoundedSamples::put_in_order`] then keeps.
    pub fn add_in_turn(&mut self, turn: Option<u16>, sample: T) {
        match turn {
            Some(turn) => self.out_of_turn.push((turn, sample)),
            None => self.add(sample),
        }
    }

    /// Add the samples that came out of turn, in order of their turns.
    pub fn put_in_order(&mut self) {
        let mut samples = std::mem::take(&mut self.out_of_turn);
        samples.sort_by_key(|sample| sample.0);
        for (_, sample) in samples.drain(..) {
            self.add(sample);
        }
        self.out_of_turn = samples;
    }

    /// Keep `sample` if such samples are collected.
    pub fn offer(&mut self, sample: T) {
        if self.wanted {
            self.add(sample);
        }
    }
}
