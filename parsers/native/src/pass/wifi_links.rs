//! Links between 802.11 stations: frames, signal, rates, and retransmissions.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use serde::{Deserialize, Serialize};

use crate::packet::event::Packet;
use crate::packet::frame::{Frame, FrameKind, FrameNumber, Station};

/// Limit of links. Addresses cost a hostile sender nothing.
const MAX_LINKS: usize = 1 << 14;

/// Frames before the newest remembered as seen: the largest block that can be acknowledged at once
/// (IEEE 802.11ax-2021), so an older frame is no longer retransmitted.
const REMEMBERED: u16 = 256;

/// One frame of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkSample {
    /// When it was seen.
    pub time_ns: i64,
    /// Its number in the source.
    pub packet: u64,
    pub frame: Frame,
    /// Whether the capture had shown it before.
    pub is_repeat: bool,
}

/// Range and mean of a radio's measurements.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SignalLevel {
    sum: i64,
    count: u64,
    range: Option<(i32, i32)>,
}

impl SignalLevel {
    fn add(&mut self, value: Option<i32>) {
        let Some(value) = value else { return };
        let (min, max) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), max.max(value)));
        self.sum += i64::from(value);
        self.count += 1;
    }

    /// Mean; None without a measurement.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    pub fn min(&self) -> Option<i32> {
        self.range.map(|range| range.0)
    }

    pub fn max(&self) -> Option<i32> {
        self.range.map(|range| range.1)
    }
}

/// Everything that one station sent to another over the air.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    /// Which of two captures shows it; 0 unless a pair is read.
    pub capture: u8,
    /// The transmitter; None for frames without it, such as acknowledgements.
    pub transmitter: Option<Station>,
    pub receiver: Station,
    /// The network, from the first frame that names it.
    pub bssid: Option<Station>,
    pub frames: u64,
    /// Those that carry packets.
    pub data_frames: u64,
    /// Frames with the retry bit.
    pub retries: u64,
    /// Those that the capture had shown before.
    pub repeats: u64,
    /// Bytes of all frames on the air.
    pub bytes: u64,
    pub start_ns: i64,
    pub end_ns: i64,
    /// Strength of the signal in dBm.
    pub signal_dbm: SignalLevel,
    /// Strength of the noise in dBm.
    pub noise_dbm: SignalLevel,
    /// Rate in kbit/s, of each frame alike.
    pub rate_kbps: SignalLevel,
    /// The channel of the last frame with one.
    pub channel_mhz: Option<u16>,
    /// One for each traffic identifier.
    numberings: Vec<(u8, Numbering)>,
}

impl Link {
    fn ends(&self) -> (u8, Option<Station>, Station) {
        (self.capture, self.transmitter, self.receiver)
    }

    fn new(capture: u8, frame: &Frame) -> Self {
        Self {
            capture,
            transmitter: frame.transmitter,
            receiver: frame.receiver,
            start_ns: i64::MAX,
            end_ns: i64::MIN,
            ..Self::default()
        }
    }

    /// Count a frame; returns whether it was seen before.
    fn on_frame(&mut self, time_ns: i64, frame: &Frame) -> bool {
        let radio = &frame.radio;
        self.bssid = self.bssid.or(frame.bssid);
        self.frames += 1;
        self.data_frames += u64::from(frame.kind == FrameKind::Data);
        self.retries += u64::from(frame.is_retry);
        self.bytes += u64::from(frame.bytes);
        self.start_ns = self.start_ns.min(time_ns);
        self.end_ns = self.end_ns.max(time_ns);
        self.signal_dbm.add(radio.signal_dbm.map(i32::from));
        self.noise_dbm.add(radio.noise_dbm.map(i32::from));
        self.rate_kbps.add(radio.rate_kbps.and_then(|rate| i32::try_from(rate.get()).ok()));
        self.channel_mhz = radio.channel_mhz.map(Into::into).or(self.channel_mhz);
        let is_repeat = frame.place.is_some_and(|place| self.was_seen(place, frame.is_retry));
        self.repeats += u64::from(is_repeat);
        is_repeat
    }

    fn was_seen(&mut self, place: FrameNumber, is_retry: bool) -> bool {
        match self.numberings.iter_mut().find(|(traffic, _)| *traffic == place.traffic) {
            Some((_, numbering)) => numbering.on_number(place.sequence, is_retry),
            None => {
                self.numberings.push((place.traffic, Numbering::starting_at(place.sequence)));
                false
            }
        }
    }
}

/// Recent sequence numbers, as a receiver remembers them to drop frames whose acknowledgement was
/// lost (IEEE 802.11-2020 section 10.3.2.14).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Numbering {
    newest: u16,
    /// Bit n of these: the number n before the newest was seen.
    seen: [u64; REMEMBERED as usize / 64],
}

impl Numbering {
    /// Sequence numbers have 12 bits.
    const MASK: u16 = 0x0fff;

    fn starting_at(sequence: u16) -> Self {
        let mut seen = [0; REMEMBERED as usize / 64];
        seen[0] = 1;
        Self { newest: sequence, seen }
    }

    /// Record a number; returns whether its frame was seen before.
    fn on_number(&mut self, sequence: u16, is_retry: bool) -> bool {
        let ahead = sequence.wrapping_sub(self.newest) & Self::MASK;
        let behind = self.newest.wrapping_sub(sequence) & Self::MASK;
        if behind < REMEMBERED {
            let (word, bit) = (&mut self.seen[usize::from(behind / 64)], 1 << (behind % 64));
            let was_seen = *word & bit != 0;
            *word |= bit;
            if was_seen && !is_retry {
                // A new frame with an old number: the transmitter restarted its numbering.
                *self = Self::starting_at(sequence);
            }
            return was_seen && is_retry;
        }
        if ahead < REMEMBERED {
            self.advance(ahead);
            self.newest = sequence;
        } else {
            *self = Self::starting_at(sequence);
        }
        false
    }

    /// Shift the window for a newest number `by` further.
    fn advance(&mut self, by: u16) {
        let (words, bits) = (usize::from(by / 64), by % 64);
        let old = self.seen;
        let at = |index: Option<usize>| index.map_or(0, |index| old[index]);
        for (index, word) in self.seen.iter_mut().enumerate() {
            let low = at(index.checked_sub(words)) << bits;
            let captured = at(index.checked_sub(words + 1)).checked_shr(u32::from(64 - bits)).unwrap_or(0);
            *word = low | captured;
        }
        self.seen[0] |= 1;
    }
}

#[derive(Default, Serialize, Deserialize)]
pub struct WifiLinks {
    /// The capture that the next frame is of: each capture has its own memory of frames.
    pub capture: u8,
    /// In order of their first frame.
    pub all: Vec<Link>,
    /// Frames of further links.
    pub untracked: u64,
    #[serde(skip)] // made again of the links
    index: HashTable<u32>,
    #[serde(skip)]
    hasher: DefaultHashBuilder,
}

impl WifiLinks {
    pub const MOST: usize = MAX_LINKS;

    /// Count the frame of `packet`; returns whether it retransmits a captured one.
    pub fn on_frame(&mut self, packet: &Packet, frame: &Frame) -> bool {
        match self.find_or_open(frame) {
            Some(link) => link.on_frame(packet.time_ns, frame),
            None => {
                self.untracked += 1;
                false
            }
        }
    }

    /// Index the links, which were read back from a checkpoint.
    pub(super) fn restore(&mut self) {
        let Self { all, index, hasher, .. } = self;
        let hash_of = |number: &u32| all.get(*number as usize).map_or(0, |link| hasher.hash_one(link.ends()));
        index.clear();
        (0..all.len() as u32).for_each(|number| {
            index.insert_unique(hash_of(&number), number, hash_of);
        });
    }

    fn find_or_open(&mut self, frame: &Frame) -> Option<&mut Link> {
        let Self { all, index, hasher, capture, .. } = self;
        let ends = (*capture, frame.transmitter, frame.receiver);
        let hash = hasher.hash_one(ends);
        let found =
            index.find(hash, |&number| all.get(number as usize).map(Link::ends) == Some(ends)).copied();
        let number = match found {
            Some(number) => number,
            None if all.len() < MAX_LINKS => {
                let number = all.len() as u32;
                all.push(Link::new(*capture, frame));
                let hash_of =
                    |&number: &u32| all.get(number as usize).map_or(0, |link| hasher.hash_one(link.ends()));
                index.insert_unique(hash, number, hash_of);
                number
            }
            None => return None,
        };
        all.get_mut(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::frame::Radio;
    use proptest::prelude::*;

    fn frame(transmitter: u32, sequence: u16, is_retry: bool) -> Frame {
        let [a, b, c, d] = transmitter.to_be_bytes();
        Frame {
            kind: FrameKind::Data,
            is_retry,
            transmitter: Some([2, 0, a, b, c, d]),
            receiver: [2; 6],
            bssid: None,
            place: Some(FrameNumber { traffic: 0, sequence }),
            bytes: 100,
            radio: Radio { signal_dbm: Some(-60), ..Radio::default() },
        }
    }

    fn repeats(frames: &[(u16, bool)]) -> Vec<bool> {
        let mut links = WifiLinks::default();
        let packet = Packet::default();
        frames
            .iter()
            .map(|&(sequence, is_retry)| links.on_frame(&packet, &frame(1, sequence, is_retry)))
            .collect()
    }

    #[test]
    fn test_a_retry_is_a_repeat_only_if_its_frame_was_seen() {
        let seen = repeats(&[(5, false), (5, true), (6, true), (8, false), (6, true), (7, true), (7, true)]);
        assert_eq!(seen, [false, true, false, false, true, false, true]);
    }

    #[test]
    fn test_numbers_wrap_and_may_begin_anew() {
        assert_eq!(
            repeats(&[(4095, false), (0, false), (4095, true), (0, true)]),
            [false, false, true, true]
        );
        // The second frame 3 is new, so the retry of 2 that follows is of a new frame, too.
        assert_eq!(repeats(&[(2, false), (3, false), (3, false), (2, true)]), [false; 4]);
    }

    #[test]
    fn test_each_of_two_captures_shows_a_frame_once() {
        let mut links = WifiLinks::default();
        let packet = Packet::default();
        let mut is_repeat = |capture, is_retry| {
            links.capture = capture;
            links.on_frame(&packet, &frame(1, 7, is_retry))
        };
        assert!(!is_repeat(0, true) && !is_repeat(1, true));
        assert!(is_repeat(0, true) && is_repeat(1, true));
        assert_eq!(links.all.len(), 2);
    }

    #[test]
    fn test_links_are_bounded_and_no_frame_is_lost() {
        let mut links = WifiLinks::default();
        for transmitter in 0..MAX_LINKS as u32 + 10 {
            links.on_frame(&Packet::default(), &frame(transmitter, 1, false));
        }
        assert_eq!((links.all.len(), links.untracked), (MAX_LINKS, 10));
    }

    #[test]
    fn test_levels() {
        let mut level = SignalLevel::default();
        level.add(None);
        assert_eq!((level.mean(), level.min(), level.max()), (None, None, None));
        [-40, -60, -53].into_iter().for_each(|value| level.add(Some(value)));
        assert_eq!((level.mean(), level.min(), level.max()), (Some(-51.0), Some(-60), Some(-40)));
    }

    proptest! {
        #[test]
        fn test_the_bits_are_the_numbers_seen(steps in proptest::collection::vec(1_u16..100, 1..60)) {
            let mut sequence = 4000;
            let mut numbering = Numbering::starting_at(sequence);
            let mut seen = vec![sequence];
            for step in steps {
                sequence = (sequence + step) & Numbering::MASK;
                prop_assert!(!numbering.on_number(sequence, true));
                seen.push(sequence);
            }
            for behind in 0..REMEMBERED {
                let number = sequence.wrapping_sub(behind) & Numbering::MASK;
                prop_assert_eq!(numbering.clone().on_number(number, true), seen.contains(&number));
            }
        }
    }
}
