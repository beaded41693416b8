//! Index of the packets in a ring by identity.
//!
//! A simulator numbers its packets consecutively, and those in flight at one time have numbers
//! close together. So the number itself is the index: neighbours are neighbours in memory, which a
//! hash would scatter. A packet whose index is taken goes into a hash table, so collisions are no
//! limit, and nobody can prepare a trace whose packets collide there.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::flow_table::Found;

/// Key of a packet: its flow and direction, and the number that it keeps along its path.
pub type Key = (Found, u64);

const NONE: u32 = u32::MAX;

/// Slots of a ring by the keys of their contents. The keys themselves stay in the ring.
#[derive(Debug, Default)]
pub struct RingIndex {
    /// By identity modulo the length.
    places: Vec<u32>,
    /// Packets whose index was taken.
    others: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl RingIndex {
    /// The slot of `key`; `key_of` returns the key of a slot.
    #[inline]
    pub fn find(&self, key: &Key, key_of: impl Fn(u32) -> Key) -> Option<u32> {
        let at_its_place = self.places.get(self.place(key)).copied().filter(|&slot| slot != NONE);
        if at_its_place.is_some_and(|slot| key_of(slot) == *key) {
            return at_its_place;
        }
        if self.others.is_empty() {
            return None;
        }
        self.others.find(self.hasher.hash_one(key), |&slot| key_of(slot) == *key).copied()
    }

    /// Add `slot` with a new key. The first call allocates for `most` slots.
    #[inline]
    pub fn insert(&mut self, slot: u32, most: usize, key_of: impl Fn(u32) -> Key) {
        if self.places.is_empty() {
            self.places.resize(most, NONE);
        }
        let key = key_of(slot);
        let place = self.place(&key);
        match self.places.get_mut(place) {
            Some(place) if *place == NONE => *place = slot,
            _ => {
                let hash_of = |slot: &u32| self.hasher.hash_one(key_of(*slot));
                self.others.insert_unique(self.hasher.hash_one(key), slot, hash_of);
            }
        }
    }

    /// Remove `slot` with this key.
    #[inline]
    pub fn remove(&mut self, slot: u32, key: &Key) {
        let place = self.place(key);
        match self.places.get_mut(place) {
            Some(place) if *place == slot => *place = NONE,
            _ => {
                if let Ok(entry) = self.others.find_entry(self.hasher.hash_one(key), |&at| at == slot) {
                    entry.remove();
                }
            }
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    #[inline]
    fn place(&self, (_, identity): &Key) -> usize {
        identity.checked_rem(self.places.len() as u64).unwrap_or(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::key::Side;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const MOST: usize = 8;

    fn key(flow: u32, identity: u64) -> Key {
        (Found { flow, side: Side::Low }, identity)
    }

    proptest! {
        #[test]
        fn test_a_ring_is_found_like_in_a_map(keys in proptest::collection::vec((0_u32..3, 0_u64..40), 0..80)) {
            let mut identities = RingIndex::default();
            let mut ring: Vec<Key> = Vec::new();
            let mut map = HashMap::new();
            for (n, (flow, identity)) in keys.into_iter().enumerate() {
                let new = key(flow, identity);
                let known = identities.find(&new, |slot| ring[slot as usize]);
                prop_assert_eq!(known, map.get(&(flow, identity)).copied());
                if known.is_some() {
                    continue;
                }
                let slot = n % MOST;
                if slot < ring.len() {
                    let old = std::mem::replace(&mut ring[slot], new);
                    identities.remove(slot as u32, &old);
                    map.retain(|_, at| *at != slot as u32);
                } else if slot == ring.len() {
                    ring.push(new);
                } else {
                    continue;
                }
                identities.insert(slot as u32, MOST, |slot| ring[slot as usize]);
                map.insert((flow, identity), slot as u32);
            }
            prop_assert!(map.len() <= MOST);
        }
    }
}
