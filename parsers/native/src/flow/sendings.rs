//! What waits for an acknowledgement or an echo, of all flows together.
//!
//! A hundred thousand flows with a window each are millions of small entries. In buffers of their
//! own they took three times the memory, because buffers that grow side by side leave their
//! smaller predecessors behind; and a bound on each says nothing of the sum. So all entries are in
//! one pool, and each direction has a list through it.

use crate::seq::SeqNumber;

/// Entries of all lists together: 48 MiB. Those beyond are not watched.
const MAX_ENTRIES: usize = 3 << 20;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    time_ns: i64,
    number: u32,
    /// The next of the list, or of the free entries.
    next: u32,
}

/// The entries of all lists.
#[derive(Debug)]
pub struct Pool {
    entries: Vec<Entry>,
    free: u32,
}

impl Default for Pool {
    fn default() -> Self {
        // Address space only: memory is taken page by page as entries are. Growing would copy, and
        // leave the smaller buffer behind.
        Self { entries: Vec::with_capacity(MAX_ENTRIES), free: NONE }
    }
}

impl Pool {
    /// Entries in use or free.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.entries.len()
    }

    #[inline(always)]
    fn take(&mut self, number: u32, time_ns: i64) -> Option<u32> {
        let entry = Entry { time_ns, number, next: NONE };
        if let Some(slot) = self.entries.get_mut(self.free as usize) {
            let index = self.free;
            self.free = slot.next;
            *slot = entry;
            return Some(index);
        }
        if self.entries.len() == MAX_ENTRIES {
            return None;
        }
        self.entries.push(entry);
        Some(self.entries.len() as u32 - 1)
    }
}

/// When numbers were sent, in order. Numbers wrap, and those waiting are less than 2^31 apart.
///
/// Invariants: `first` is NONE exactly if `count` is 0; the entries from `first` on belong to no
/// other list.
#[derive(Debug)]
pub struct Sendings {
    first: u32,
    last: u32,
    count: u32,
}

impl Default for Sendings {
    fn default() -> Self {
        Self { first: NONE, last: NONE, count: 0 }
    }
}

impl Sendings {
    /// How many wait.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Remember when `number` was sent; false if the pool is full.
    #[inline(always)]
    pub fn push(&mut self, number: u32, time_ns: i64, pool: &mut Pool) -> bool {
        let Some(index) = pool.take(number, time_ns) else {
            return false;
        };
        match pool.entries.get_mut(self.last as usize) {
            Some(last) if self.count > 0 => last.next = index,
            _ => self.first = index,
        }
        self.last = index;
        self.count += 1;
        true
    }

    /// Forget the one sent first.
    #[inline(always)]
    pub fn drop_oldest(&mut self, pool: &mut Pool) {
        if let Some(first) = pool.entries.get_mut(self.first as usize) {
            let next = first.next;
            first.next = pool.free;
            pool.free = self.first;
            self.first = next;
            self.count -= 1;
        }
    }

    /// Forget numbers up to `number`; when exactly that one was sent.
    #[inline(always)]
    pub fn pop_through(&mut self, number: u32, pool: &mut Pool) -> Option<i64> {
        let mut last = None;
        while let Some(&Entry { time_ns, number: sent, .. }) = pool.entries.get(self.first as usize) {
            let behind = SeqNumber(number).since(SeqNumber(sent));
            if behind < 0 {
                break;
            }
            last = (behind == 0).then_some(time_ns);
            self.drop_oldest(pool);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Two lists through one pool, each against a queue of its own.
        #[test]
        fn test_lists_of_one_pool_do_not_disturb_each_other(
            steps in proptest::collection::vec((any::<bool>(), 0_u32..4, 0_u32..5), 1..300),
        ) {
            let mut pool = Pool::default();
            let mut lists = [Sendings::default(), Sendings::default()];
            let mut queues = [VecDeque::new(), VecDeque::new()];
            let mut next = u32::MAX - 20;
            for (which, action, back) in steps {
                let (list, queue) = (&mut lists[usize::from(which)], &mut queues[usize::from(which)]);
                if action > 0 {
                    next = next.wrapping_add(1);
                    prop_assert!(list.push(next, i64::from(next), &mut pool));
                    queue.push_back(next);
                    continue;
                }
                let number = next.wrapping_sub(back);
                let mut expected = None;
                while let Some(&front) = queue.front() && number.wrapping_sub(front) as i32 >= 0 {
                    expected = (front == number).then_some(i64::from(front));
                    queue.pop_front();
                }
                prop_assert_eq!(list.pop_through(number, &mut pool), expected);
                prop_assert_eq!(list.count(), queue.len());
            }
            prop_assert!(pool.size() <= 300);
        }
    }
}
