//! Decoded packets passed from the reading thread to the one that follows flows.

use crate::packet::event::Packet;
use crate::packet::extras::PacketExtras;
use crate::packet::plain::PlainSegment;

/// A packet of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    Plain(&'a PlainSegment),
    Other(&'a Packet),
}

impl Item<'_> {
    /// When it was seen.
    #[inline(always)]
    pub fn time_ns(self) -> i64 {
        match self {
            Self::Plain(segment) => segment.time_ns,
            Self::Other(packet) => packet.time_ns,
        }
    }

    /// The packet in its general form.
    pub fn to_packet(self) -> Packet {
        match self {
            Self::Plain(segment) => segment.to_packet(),
            Self::Other(packet) => *packet,
        }
    }
}

/// Packets in order, with their extras. The memory is reused.
#[derive(Clone, Debug)]
pub struct Batch {
    /// One for each packet. Of others it holds a [`PLACEHOLDER`].
    segments: Vec<PlainSegment>,
    length: usize,
    /// Whether it was passed on before it was full, as its source had no more for now.
    pub is_early: bool,
    /// The others; used up to `others_length`.
    others: Vec<Packet>,
    others_length: usize,
    extras: PacketExtras,
    latest_before_step_back_ns: Option<i64>,
    /// Places of the first packets after proven steps of the clock.
    clock_steps: Vec<usize>,
}

/// Capacity for general packets that is always kept, 14 kB.
const FEW_OTHERS: usize = 64;

/// The number that no packet has, because they count from 1.
const PLACEHOLDER: u64 = 0;

impl Batch {
    /// A batch with this capacity.
    pub fn new(capacity: usize) -> Self {
        Self {
            segments: vec![PlainSegment::default(); capacity],
            length: 0,
            is_early: false,
            others: Vec::new(),
            others_length: 0,
            extras: PacketExtras::default(),
            latest_before_step_back_ns: None,
            clock_steps: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        if self.others.len() / 4 > self.others_length + FEW_OTHERS {
            // After a burst of them another's need for memory is greater.
            self.others.truncate(self.others_length);
            self.others.shrink_to_fit();
        }
        (self.length, self.others_length) = (0, 0);
        self.is_early = false;
        self.latest_before_step_back_ns = None;
        self.clock_steps.clear();
        self.extras.clear();
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn is_full(&self) -> bool {
        self.length >= self.segments.len()
    }

    /// Whether its source ended.
    pub fn is_last(&self) -> bool {
        !self.is_full() && !self.is_early
    }

    /// Latest time before this batch, if times go back in it; `i64::MIN` at the start of a source.
    #[inline(always)]
    pub fn latest_before_step_back_ns(&self) -> Option<i64> {
        self.latest_before_step_back_ns
    }

    /// Record that times go back in it.
    pub fn note_step_back(&mut self, latest_before_ns: i64) {
        self.latest_before_step_back_ns = Some(latest_before_ns);
    }

    /// Places of the first packets after proven steps of the clock.
    #[inline(always)]
    pub fn clock_steps(&self) -> &[usize] {
        &self.clock_steps
    }

    pub fn note_clock_steps(&mut self, places: Vec<usize>) {
        self.clock_steps = places;
    }

    /// Extras of the packets.
    pub fn extras(&self) -> &PacketExtras {
        &self.extras
    }

    /// Storage for the next packet, which [`Batch::add_plain`] then adds; None if the batch is
    /// full.
    #[inline(always)]
    pub fn next_plain(&mut self) -> Option<(&mut PlainSegment, &mut PacketExtras)> {
        Some((self.segments.get_mut(self.length)?, &mut self.extras))
    }

    /// Add the packet written to [`Batch::next_plain`].
    #[inline(always)]
    pub fn add_plain(&mut self) {
        self.length += 1;
    }

    /// Write the next packet in place, whatever it is; [`Batch::add_other`] then adds it. It holds
    /// anything before.
    #[inline]
    pub fn next_other(&mut self) -> (&mut Packet, &mut PacketExtras) {
        if self.others_length == self.others.len() {
            self.others.push(Packet::default());
        }
        (&mut self.others[self.others_length], &mut self.extras)
    }

    /// Add the packet written to [`Batch::next_other`].
    #[inline]
    pub fn add_other(&mut self) {
        if let Some(segment) = self.segments.get_mut(self.length) {
            segment.number = PLACEHOLDER;
            self.length += 1;
            self.others_length += 1;
        }
    }

    /// The plain segment at `index`.
    #[inline(always)]
    pub fn segment(&self, index: usize) -> &PlainSegment {
        &self.segments[index]
    }

    /// Earliest and latest time; None without packets.
    pub fn times_ns(&self) -> Option<(i64, i64)> {
        if self.latest_before_step_back_ns.is_some() {
            let times = || self.items().map(Item::time_ns);
            return times().min().zip(times().max());
        }
        Some((self.items().next()?.time_ns(), self.last_time_ns()?))
    }

    /// Time of the last packet.
    pub fn last_time_ns(&self) -> Option<i64> {
        let last = self.segments[..self.length].last()?;
        let others = self.others.get(..self.others_length).unwrap_or_default();
        let other = others.last().filter(|_| last.number == PLACEHOLDER);
        Some(other.map_or(last.time_ns, |packet| packet.time_ns))
    }

    /// The packets in their order.
    #[inline]
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> + Clone {
        let mut others = self.others.iter();
        self.segments[..self.length].iter().filter_map(move |segment| match segment.number {
            PLACEHOLDER => others.next().map(Item::Other),
            _ => Some(Item::Plain(segment)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_packets_of_both_kinds_keep_their_order() {
        let mut batch = Batch::new(4);
        for numbers in [[1, 2, 3, 4], [5, 6, 7, 8]] {
            batch.clear();
            for number in numbers {
                assert!(!batch.is_full());
                if number % 3 == 0 {
                    batch.next_plain().unwrap().0.number = number;
                    batch.add_plain();
                } else {
                    batch.next_other().0.number = number;
                    batch.add_other();
                }
            }
            assert!(batch.is_full() && batch.next_plain().is_none());
            let found: Vec<u64> = batch.items().map(|item| item.to_packet().number).collect();
            assert_eq!(found, numbers);
        }
    }
}
