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

impl<T: Copy> BoundedSamples<T> {
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

    /// The same, or let it wait for [`BoundedSamples::put_in_order`] if packets are not followed in the order of the
    /// file, but its own came at a `turn`.
    pub fn add_in_turn(&mut self, turn: Option<u16>, sample: T) {
        match turn {
            Some(turn) => self.out_of_turn.push((turn, sample)),
            None => self.add(sample),
        }
    }

    /// Add the samples that came out of turn, here and at others, in order of their turns. Those of one turn are
    /// all at one place.
    pub fn put_in_order(&mut self, others: &mut [&mut Self]) {
        let mut own = std::mem::take(&mut self.out_of_turn);
        let mut lists: Vec<_> = others.iter_mut().map(|other| &mut other.out_of_turn).collect();
        lists.push(&mut own);
        let Some(&(_, any)) = lists.iter().find_map(|list| list.first()) else {
            self.out_of_turn = own;
            return;
        };
        // A counting sort: samples of each turn, their place after those kept, then all in order.
        let turns = || lists.iter().flat_map(|list| list.iter().map(|sample| usize::from(sample.0)));
        let mut places = vec![0_u32; 1 + turns().max().unwrap_or(0)];
        turns().for_each(|turn| places[turn] += 1);
        let mut count = 0;
        for place in &mut places {
            count += std::mem::replace(place, count);
        }
        let before = self.kept.len();
        self.kept.resize(before + count as usize, any);
        for list in lists {
            for (turn, sample) in list.drain(..) {
                let place = &mut places[usize::from(turn)];
                self.kept[before + *place as usize] = sample;
                *place += 1;
            }
        }
        self.left_out += self.kept.len().saturating_sub(self.limit) as u64;
        self.kept.truncate(self.limit);
        self.out_of_turn = own;
    }

    /// Keep `sample` if such samples are collected.
    pub fn offer(&mut self, sample: T) {
        if self.wanted {
            self.add(sample);
        }
    }
}
