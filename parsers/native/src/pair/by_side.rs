//! A value for each direction of each flow.

use crate::packet::key::Side;

/// A list by flow and side: flows have consecutive numbers, so a packet finds its entry without a
/// hash. Its length is twice the highest number of a flow with an entry.
#[derive(Debug)]
pub struct BySide<T>(Vec<Option<T>>);

impl<T> Default for BySide<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> BySide<T> {
    #[inline]
    pub fn get(&self, flow: u32, side: Side) -> Option<&T> {
        self.0.get(place(flow, side))?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, flow: u32, side: Side) -> Option<&mut T> {
        self.0.get_mut(place(flow, side))?.as_mut()
    }

    /// The entry, created by `make` if there is none.
    #[inline]
    pub fn get_or_insert_with(&mut self, flow: u32, side: Side, make: impl FnOnce() -> T) -> &mut T {
        let place = place(flow, side);
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].get_or_insert_with(make)
    }
}

#[inline]
fn place(flow: u32, side: Side) -> usize {
    2 * flow as usize + side as usize
}
