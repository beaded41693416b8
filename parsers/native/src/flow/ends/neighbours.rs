//! Flows of consecutive numbers, of which those that are over leave.

use serde::{Deserialize, Serialize};

use super::idle_times::{IdleTimes, Silence};
use super::packed_flows::{PackedFlows, Packer};
use crate::flow::Flow;
use crate::flow::flow_places::FLOWS;
use crate::long_array;
use crate::packet::key::FlowKey;

/// Marks a flow that left in [`Neighbours::places`].
const NOWHERE: u8 = u8::MAX;

/// Of a whole group, the most flows that are kept close together.
const FEW: usize = FLOWS / 4;

/// The fewest flows of a group that are packed at a time, unless they are most of those that are not packed.
const LEAST_PACKED: usize = FLOWS / 16;

/// A set of neighbours.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct FlowSet([u64; FLOWS / 64]);

impl FlowSet {
    pub const ALL: Self = Self([u64::MAX; FLOWS / 64]);

    #[inline(always)]
    pub fn has(&self, index: usize) -> bool {
        self.0[index / 64 % self.0.len()] >> (index % 64) & 1 != 0
    }

    /// Indices after this one that are not in the set, in order.
    fn others_after(&self, index: usize) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().skip(index / 64);
        words.flat_map(move |(number, &word)| {
            // Those of its word up to it do not count.
            let counted = if number == index / 64 { (u64::MAX << (index % 64)) << 1 } else { u64::MAX };
            let mut others = !word & counted;
            std::iter::from_fn(move || {
                let bit = (others != 0).then(|| others.trailing_zeros() as usize)?;
                others &= others - 1;
                Some(number * 64 + bit)
            })
        })
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
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
    /// Here, but packed.
    packed: FlowSet,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Neighbours {
    flows: Vec<Flow>,
    opened: u16,
    left: u16,
    /// The places of neighbours of which few are left or some are packed: in `flows`, or of these in `packed`.
    #[serde(with = "long_array")]
    places: Option<Box<[u8; FLOWS]>>,
    marks: Option<Box<Marks>>,
    /// Those that are packed, if any.
    packed: Option<Box<PackedFlows>>,
}

impl Neighbours {
    pub fn new() -> Self {
        Self { flows: Vec::new(), opened: 0, left: 0, places: None, marks: None, packed: None }
    }

    /// Reserve address space for a whole group: memory is used page by page as flows are opened.
    pub fn reserve(&mut self) {
        self.flows.reserve_exact(FLOWS);
    }

    pub fn open(&mut self, flow: Flow) {
        if let Some(places) = &mut self.places {
            places[usize::from(self.opened) % FLOWS] = self.flows.len() as u8;
        }
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
            && self.unpacked().all(|index| self.place(index) < self.flows.len())
            && match &self.packed {
                None => self.packed() == 0,
                Some(packed) => {
                    let mut places = self.indices().filter(|&index| self.is_packed(index));
                    packed.is_sound() && places.all(|index| self.place(index) < packed.count())
                }
            }
    }

    /// How many there are or were.
    pub fn opened(&self) -> usize {
        self.opened.into()
    }

    /// Whether all of a whole group left, and were forgotten.
    pub fn have_left(&self) -> bool {
        self.flows.is_empty() && self.packed.is_none() && self.opened > 0
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
        if self.places.is_none() { &self.flows[index] } else { self.placed(index) }
    }

    #[inline(never)]
    fn placed(&self, index: usize) -> &Flow {
        let place = self.place(index);
        match &self.packed {
            Some(packed) if self.is_packed(index) => packed.get(place),
            _ => &self.flows[place],
        }
    }

    /// The same, unpacked to be changed.
    #[inline(always)]
    pub fn at_mut(&mut self, index: usize) -> &mut Flow {
        if self.places.is_none() { &mut self.flows[index] } else { self.placed_mut(index) }
    }

    #[inline(never)]
    fn placed_mut(&mut self, index: usize) -> &mut Flow {
        if self.is_packed(index) {
            self.unpack(index);
        }
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

    /// Indices of those that have not left and are not packed.
    fn unpacked(&self) -> impl Iterator<Item = usize> + use<> {
        let packed = self.marks.as_ref().map(|marks| marks.packed).unwrap_or_default();
        self.indices().filter(move |&index| !packed.has(index))
    }

    /// Those that have not left and are not packed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        let here = self.unpacked();
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

    /// Whether all that have not left are packed.
    pub fn are_packed(&self) -> bool {
        self.flows.is_empty() && self.packed.is_some()
    }

    /// Whether the flow at `index` is packed.
    #[inline(always)]
    pub fn is_packed(&self, index: usize) -> bool {
        self.packed.is_some() && self.marks.as_ref().is_some_and(|marks| marks.packed.has(index))
    }

    /// How many are packed.
    pub fn packed(&self) -> usize {
        self.marks.as_ref().map_or(0, |marks| marks.packed.count())
    }

    /// Since when the flow at `index` has been silent, packed or not.
    pub fn silence(&self, index: usize, idle: &IdleTimes) -> Option<Silence> {
        match &self.packed {
            Some(packed) if self.is_packed(index) => Some(packed.silence(self.place(index), idle)),
            _ => self.at(index).silence(idle),
        }
    }

    /// Key of the flow at `index`, packed or not.
    pub fn key(&self, index: usize) -> FlowKey {
        match &self.packed {
            Some(packed) if self.is_packed(index) => packed.unpacked(self.place(index)).key(),
            _ => self.at(index).key(),
        }
    }

    /// Pack flows whose last packet came before this time, unless they are too few.
    pub fn pack(&mut self, before_ns: i64) {
        if self.flows.is_empty() {
            return;
        }
        let (mut silent, mut others) = (FlowSet::default(), 0);
        for index in self.unpacked() {
            let is_silent = self.at(index).may_be_packed(before_ns);
            silent.set(index, is_silent);
            others += usize::from(!is_silent);
        }
        let count = silent.count();
        if count >= LEAST_PACKED || count > others {
            self.arrange(&silent);
        }
    }

    /// Pack these flows, and keep the others that have not left close together.
    pub fn arrange(&mut self, packing: &FlowSet) {
        let mut places = Box::new([NOWHERE; FLOWS]);
        let mut old = self.packed.take();
        let (mut flows, mut packer) = (Vec::new(), Packer::default());
        for index in self.indices() {
            let place = self.place(index);
            let is_packed = self.marks.as_ref().is_some_and(|marks| marks.packed.has(index));
            if let Some(old) = old.as_deref_mut().filter(|_| is_packed) {
                places[index] = packer.take_over(old, place);
            } else if packing.has(index)
                && let Some(last_ns) = self.flows[place].last_ns()
            {
                places[index] = packer.push(&self.flows[place], last_ns);
                let marks = self.marks.get_or_insert_default();
                marks.packed.set(index, true);
                // So that its next packet unpacks it.
                marks.doubtful.set(index, true);
            } else {
                places[index] = flows.len() as u8;
                flows.push(std::mem::replace(&mut self.flows[place], Flow::vacant()));
            }
        }
        flows.shrink_to_fit();
        (self.flows, self.places) = (flows, Some(places));
        self.packed = packer.finish();
    }

    /// Unpack the flow at `index`, which must be packed.
    pub fn unpack(&mut self, index: usize) {
        let (Some(packed), Some(marks), Some(places)) = (&mut self.packed, &mut self.marks, &mut self.places)
        else {
            return;
        };
        let flow = packed.take(places[index].into());
        // Flows stay in the order of their indices.
        let mut at = self.flows.len();
        for later in marks.packed.others_after(index) {
            let place = &mut places[later];
            if usize::from(*place) < self.flows.len() {
                at = at.min((*place).into());
                *place += 1;
            }
        }
        places[index] = at as u8;
        self.flows.insert(at, flow);
        marks.packed.set(index, false);
        if marks.packed.count() == 0 {
            self.packed = None;
        }
    }

    /// Unpack all, and return which these were.
    pub fn unpack_all(&mut self) -> FlowSet {
        let packed = self.marks.as_ref().map(|marks| marks.packed).unwrap_or_default();
        (0..FLOWS).filter(|&index| packed.has(index)).for_each(|index| self.unpack(index));
        packed
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
        if usize::from(self.opened) < FLOWS {
            return false;
        }
        if remaining == 0 {
            *self = Self { opened: self.opened, left: self.left, ..Self::new() };
            return true;
        }
        if !self.flows.is_empty() && remaining - self.packed() <= FEW.min(self.flows.len() / 2) {
            self.arrange(&FlowSet::default());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(source: usize) -> Flow {
        let mut flow = Flow { source: source as u32, ..Flow::vacant() };
        flow.directions[0].count(source as i64, 60, Some(0));
        flow
    }

    proptest! {
        #[test]
        fn test_those_that_stay_keep_their_indices(
            opened in 1..=FLOWS,
            steps in proptest::collection::vec((0..FLOWS, 0..5_u8), 0..600),
        ) {
            let mut flows = Neighbours::new();
            (0..opened).for_each(|index| flows.open(flow(index)));
            let (mut left, mut packed) = (vec![false; opened], vec![false; opened]);
            for (index, step) in steps {
                let index = index % opened;
                match step {
                    0 | 1 if !left[index] => {
                        packed[index] = false;
                        prop_assert_eq!(flows.remove(index).source as usize, index);
                        left[index] = true;
                    }
                    2 => prop_assert_eq!(flows.shrink(), opened == FLOWS && !left.contains(&false)),
                    3 => {
                        let mut packing = FlowSet::default();
                        for index in (index..opened.min(index + 20)).filter(|&index| !left[index]) {
                            packing.set(index, true);
                            packed[index] = true;
                        }
                        flows.arrange(&packing);
                    }
                    4 if std::mem::take(&mut packed[index]) => flows.unpack(index),
                    _ => {}
                }
                let here: Vec<usize> = (0..opened).filter(|&index| !left[index]).collect();
                prop_assert_eq!(flows.indices().collect::<Vec<_>>(), here.clone());
                let idle = IdleTimes::default();
                let last_ns = |index| flows.silence(index, &idle).map(|silence| silence.last_ns);
                prop_assert!(here.iter().all(|&index| last_ns(index) == Some(index as i64)));
                prop_assert!(here.iter().all(|&index| flows.is_packed(index) == packed[index]));
                let unpacked: Vec<usize> = here.into_iter().filter(|&index| !packed[index]).collect();
                prop_assert!(flows.indices().all(|index| flows.at(index).source as usize == index));
                let found: Vec<_> = flows.iter_mut().map(|flow| flow.source as usize).collect();
                prop_assert_eq!(found, unpacked);
                prop_assert!((0..opened).all(|index| flows.has_left(index) == left[index]) && flows.is_sound());
                if flows.have_left() {
                    break;
                }
            }
        }
    }
}
