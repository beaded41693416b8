//! The addresses of radios. All nearby radios receive a frame, but it is meant for one of them.

use hashbrown::HashMap;

use super::headers::{Frame, Mac, is_group};
use super::prefix::LinePlace;
use crate::packet::event::Event;

const MAX_STATIONS: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct Stations {
    by_mac: HashMap<Mac, LinePlace>,
    by_place: HashMap<LinePlace, Mac>,
}

impl Stations {
    /// Learn from a frame that is sent, and return whether a received one is meant for this place.
    /// A cable has a single receiver.
    #[inline]
    pub fn is_meant(&mut self, event: Event, place: LinePlace, frame: Frame) -> bool {
        match event {
            Event::Sent => {
                if let Some(mac) = frame.transmitter {
                    self.learn(mac, place);
                }
                true
            }
            _ => frame.receiver.is_none_or(|mac| is_group(mac) || self.may_be(mac, place)),
        }
    }

    fn learn(&mut self, mac: Mac, place: LinePlace) {
        if self.by_mac.len() < MAX_STATIONS && self.by_mac.insert(mac, place).is_none() {
            self.by_place.insert(place, mac);
        }
    }

    /// Whether the station at `place` may have this address.
    fn may_be(&self, mac: Mac, place: LinePlace) -> bool {
        match (self.by_mac.get(&mac), self.by_place.get(&place)) {
            (Some(home), _) => *home == place,
            (None, Some(_)) => false,
            (None, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_frame_is_meant_for_one_station() {
        let place = |node| LinePlace { node, device: 1, is_ip: false };
        let frame = |from, to| Frame { transmitter: Some(from), receiver: Some(to), ..Frame::default() };
        let mut stations = Stations::default();
        assert!(stations.is_meant(Event::Received, place(2), frame(1, 2)));
        stations.is_meant(Event::Sent, place(1), frame(1, 2));
        assert!(!stations.is_meant(Event::Received, place(1), frame(3, 2)), "it is known to be 1");
        stations.is_meant(Event::Sent, place(2), frame(2, 1));
        assert!(stations.is_meant(Event::Received, place(2), frame(1, 2)));
        assert!(!stations.is_meant(Event::Received, place(3), frame(1, 2)), "2 is elsewhere");
        assert!(stations.is_meant(Event::Received, place(3), frame(1, 0xffff_ffff_ffff)));
    }
}
