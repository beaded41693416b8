//! Flows of consecutive numbers, of which those that are over leave.

use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::flow::flow_places::FLOWS;
use crate::long_array;

/// Marks a flow that left in [`Neighbours::places`].
const NOWHERE: u8 = u8::MAX;

/// Of a whole group, the most flows that are kept close together.
const FEW: usize = FLOWS / 4;

/// A set of neighbours.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct FlowSet([u64; FLOWS / 64]);

impl FlowSet {
    pub const ALL: Self = Self([u64::MAX; FLOWS / 64]);

    #[inline(always)]
    pub fn has(&self, index: usize) -> bool {
        self.0[index / 64 % self.0.len()] >> (index % 64) & 1 != 0
    }

    pub fn set(&mut self, index: usize, is_in: bool) {
        let (word, bit) = (&mut self.0[index / 64 % (FLOWS / 64)], 1 << (index % 64));
        *word = if is_in { *word | bit } else { *word & !bit };
    }
}

/// Which of the neighbours are over or may be.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Marks {
    /// May be over before their next packet.
    doubtful: FlowSet,
    /// No packet is theirs any more.
    over: FlowSet,
    /// Not here any more.
    left: FlowSet,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Neighbours {
    flows: Vec<Flow>,
    opened: u16,
    left: u16,
    /// The places in `flows` of neighbours of which few are left.
    #[serde(with = "long_array")]
    places: Option<Box<[u8; FLOWS]>>,
    marks: Option<Box<Marks>>,
}

impl Neighbours {
    pub fn new() -> Self {
        Self { flows: Vec::new(), opened: 0, left: 0, places: None, marks: None }
    }

    /// Reserve address space for a whole group: memory is used page by page as flows are opened.
    pub fn reserve(&mut self) {
        self.flows.reserve_exact(FLOWS);
    }

    pub fn open(&mut self, flow: Flow) {
        self.flows.push(flow);
        self.opened += 1;
    }

    /// Whether what was read back from a checkpoint fits together.
    pub fn is_sound(&self) -> bool {
        let opened = usize::from(self.opened);
        let is_whole = self.places.is_some()
            || matches!(self.flows.len(), len if len == opened || len == 0 && opened == FLOWS);
        opened <= FLOWS
            && is_whole
            && opened == self.indices().count() + usize::from(self.left)
            && self.indices().all(|index| self.place(index) < self.flows.len())
    }

    /// How many there are or were.
    pub fn opened(&self) -> usize {
        self.opened.into()
    }

    /// Whether all of a whole group left, and were forgotten.
    pub fn have_left(&self) -> bool {
        self.flows.is_empty() && self.opened > 0
    }

    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        match &self.places {
            None => index,
            Some(places) => usize::from(places[index % FLOWS]),
        }
    }

    /// The flow at `index`, which must not have left.
    #[inline(always)]
    pub fn at(&self, index: usize) -> &Flow {
        &self.flows[self.place(index)]
    }

    /// The same, mutable.
    #[inline(always)]
    pub fn at_mut(&mut self, index: usize) -> &mut Flow {
        let place = self.place(index);
        &mut self.flows[place]
    }

    /// Indices of those that have not left.
    pub fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        let left = match &self.marks {
            Some(marks) => marks.left,
            None if self.flows.is_empty() => FlowSet::ALL,
            None => FlowSet::default(),
        };
        (0..usize::from(self.opened)).filter(move |&index| !left.has(index))
    }

    /// Those that have not left.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        let here = self.indices();
        let Self { flows, places, .. } = self;
        let mut before = 0;
        let mut flows = flows.iter_mut();
        here.filter_map(move |index| {
            let place = places.as_ref().map_or(index, |places| usize::from(places[index % FLOWS]));
            let flow = flows.nth(place - before)?;
            before = place + 1;
            Some(flow)
        })
    }

    /// Whether it is over or has left.
    pub fn is_over(&self, index: usize) -> bool {
        match &self.marks {
            Some(marks) => marks.over.has(index),
            None => self.flows.is_empty(),
        }
    }

    pub fn has_left(&self, index: usize) -> bool {
        match &self.marks {
            Some(marks) => marks.left.has(index),
            None => self.flows.is_empty(),
        }
    }

    /// Whether the flow at `index` may be over before its next packet.
    #[inline(always)]
    pub fn is_doubtful(&self, index: usize) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.doubtful.has(index))
    }

    pub fn set_doubtful(&mut self, index: usize, is_doubtful: bool) {
        if is_doubtful || self.marks.is_some() {
            self.marks.get_or_insert_default().doubtful.set(index, is_doubtful);
        }
    }

    pub fn set_over(&mut self, index: usize) {
        self.marks.get_or_insert_default().over.set(index, true);
    }

    /// Take the flow at `index` out.
    pub fn remove(&mut self, index: usize) -> Flow {
        let flow = std::mem::replace(self.at_mut(index), Flow::vacant());
        self.left += 1;
        self.marks.get_or_insert_default().left.set(index, true);
        flow
    }

    /// Give back the memory of those that left, if they are most of a whole group; returns whether all left.
    pub fn shrink(&mut self) -> bool {
        let remaining = usize::from(self.opened - self.left);
        if usize::from(self.opened) < FLOWS || remaining > FEW.min(self.flows.len() / 2) {
            return false;
        }
        if remaining == 0 {
            *self = Self { flows: Vec::new(), places: None, marks: None, ..*self };
            return true;
        }
        let mut places = Box::new([NOWHERE; FLOWS]);
        let mut flows = Vec::with_capacity(remaining);
        for index in self.indices() {
            places[index] = flows.len() as u8;
            flows.push(std::mem::replace(self.at_mut(index), Flow::vacant()));
        }
        (self.flows, self.places) = (flows, Some(places));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(source: usize) -> Flow {
        Flow { source: source as u32, ..Flow::vacant() }
    }

    proptest! {
        #[test]
        fn test_those_that_stay_keep_their_indices(
            opened in 1..=FLOWS,
            leaving in proptest::collection::vec((0..FLOWS, any::<bool>()), 0..600),
        ) {
            let mut flows = Neighbours::new();
            (0..opened).for_each(|index| flows.open(flow(index)));
            let mut left = vec![false; opened];
            for (index, shrinks) in leaving {
                let index = index % opened;
                if !flows.has_left(index) {
                    prop_assert_eq!(flows.remove(index).source as usize, index);
                    left[index] = true;
                }
                if shrinks {
                    prop_assert_eq!(flows.shrink(), opened == FLOWS && !left.contains(&false));
                }
                let here: Vec<usize> = (0..opened).filter(|&index| !left[index]).collect();
                prop_assert_eq!(flows.indices().collect::<Vec<_>>(), here.clone());
                prop_assert!(here.iter().all(|&index| flows.at(index).source as usize == index));
                let found: Vec<_> = flows.iter_mut().map(|flow| flow.source as usize).collect();
                prop_assert_eq!(found, here);
                prop_assert!((0..opened).all(|index| flows.has_left(index) == left[index]));
                if flows.have_left() {
                    break;
                }
            }
        }
    }
}
