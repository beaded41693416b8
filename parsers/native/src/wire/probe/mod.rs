//! Number and time that traffic generators, probes and media write at the beginning of a datagram's payload.
//! All fields are big-endian, but for those of IRTT.

mod irtt;
mod srt;
mod twamp;

use serde::{Deserialize, Serialize};

use super::u32_at;
use crate::packet::extras::PayloadHead;

const DAY_NS: u64 = 86_400_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeLayout {
    /// iperf 2: i32 number, u32 seconds and u32 microseconds of the wall clock. The last datagram of
    /// a test has the negative of its number.
    Iperf2,
    /// iperf3: u32 seconds and u32 microseconds of a clock with any origin, u32 number.
    Iperf3,
    /// iperf3 with `--udp-counters-64bit`: the same fields with a u64 number.
    Iperf3Wide,
    /// ns-3's `SeqTsHeader`: u32 number, u64 nanoseconds of simulated time.
    Ns3,
    /// Test packets of OWAMP, TWAMP and STAMP.
    Twamp,
    Irtt,
    Srt,
    /// A layout defined by the user.
    Own(OwnLayout),
}

/// An unsigned number in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    offset: u8,
    bytes: u8,
    is_little_endian: bool,
}

impl Field {
    /// `bytes` bytes from `offset` on; None if that is more than eight or beyond the kept part of a
    /// payload.
    pub fn new(offset: usize, bytes: usize, is_little_endian: bool) -> Option<Self> {
        let fits = (1..=8).contains(&bytes) && offset.checked_add(bytes)? <= PayloadHead::MOST;
        fits.then_some(Self { offset: offset as u8, bytes: bytes as u8, is_little_endian })
    }

    pub fn bits(self) -> u32 {
        8 * u32::from(self.bytes)
    }

    /// The field's value; None if `bytes` is too short.
    pub fn read(self, bytes: &[u8]) -> Option<u64> {
        let start = usize::from(self.offset);
        let field = bytes.get(start..start + usize::from(self.bytes))?;
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(match self.is_little_endian {
            true => field.iter().rev().fold(0, add),
            false => field.iter().fold(0, add),
        })
    }
}

/// The fields of a user's own protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnLayout {
    pub number: Field,
    /// The time of sending, and nanoseconds per tick of its clock.
    pub time: Option<(Field, u32)>,
}

impl OwnLayout {
    /// Read a payload's beginning; None if it is too short, or its time overflows.
    pub fn read(self, bytes: &[u8]) -> Option<Stamp> {
        let number = self.number.read(bytes)?;
        let sent_ns = match self.time {
            Some((field, ns_per_tick)) => {
                i64::try_from(field.read(bytes)?.checked_mul(u64::from(ns_per_tick))?).ok()?
            }
            None => 0,
        };
        Some(Stamp { number, sent_ns, clock: SenderClock::Unstated })
    }
}

/// What a sender states of its clock, the least certain last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SenderClock {
    #[default]
    Unstated,
    /// Synchronised to UTC within the largest error.
    Within { error_ns: u64 },
    /// Not synchronised.
    Free,
}

/// Which probe a datagram is, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeEcho {
    pub is_reply: bool,
    /// The number of the probe.
    pub number: u32,
    /// What an answer repeats of the probe besides; None if it was not captured.
    pub repeated: Option<u64>,
}

/// Number and time of a datagram as its sender wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The number; the lower bits of a 32-bit counter.
    pub number: u64,
    /// Time of sending by the sender's clock.
    pub sent_ns: i64,
    pub clock: SenderClock,
}

impl ProbeLayout {
    /// The layouts that are recognised.
    pub const ALL: [Self; 7] =
        [Self::Iperf2, Self::Iperf3, Self::Iperf3Wide, Self::Ns3, Self::Twamp, Self::Irtt, Self::Srt];

    /// The name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iperf2 => "iperf2",
            Self::Iperf3 => "iperf3",
            Self::Iperf3Wide => "iperf3-64",
            Self::Ns3 => "ns3",
            Self::Twamp => "twamp",
            Self::Irtt => "irtt",
            Self::Srt => "srt",
            Self::Own(_) => "own",
        }
    }

    /// The layout with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Nanoseconds after which its clock wraps; None if that overflows, or if a tick has none.
    pub fn clock_period_ns(self) -> Option<i64> {
        let (bits, ns_per_tick) = match self {
            Self::Srt => (32, 1_000),
            Self::Own(OwnLayout { time: Some((field, ns_per_tick)), .. }) => (field.bits(), ns_per_tick),
            _ => return None,
        };
        let ticks = 1_i64.checked_shl(bits).filter(|ticks| *ticks > 0)?;
        ticks.checked_mul(i64::from(ns_per_tick)).filter(|period_ns| *period_ns > 0)
    }

    /// Whether its clock may be the capture's, so that differences are delays.
    pub fn has_wall_clock(self) -> bool {
        matches!(self, Self::Iperf2 | Self::Ns3 | Self::Twamp | Self::Own(_))
    }

    pub fn has_clock(self) -> bool {
        !matches!(self, Self::Irtt | Self::Own(OwnLayout { time: None, .. }))
    }

    pub fn number_bits(self) -> u32 {
        match self {
            Self::Iperf3Wide => 64,
            Self::Srt => 31,
            Self::Own(layout) => layout.number.bits(),
            _ => 32,
        }
    }

    /// Read a payload's beginning; None if too few bytes were captured, or they do not fit this
    /// layout.
    pub fn read(self, head: &PayloadHead) -> Option<Stamp> {
        let bytes = head.bytes();
        match self {
            Self::Own(layout) => return layout.read(bytes),
            Self::Twamp => return twamp::read(bytes),
            Self::Irtt => return irtt::read(bytes),
            Self::Srt => return srt::read(bytes),
            Self::Iperf2 | Self::Iperf3 | Self::Iperf3Wide | Self::Ns3 => {}
        }
        let twelve = bytes.first_chunk::<12>()?;
        let word = |at| u32_at(twelve, at);
        let (number, sent_ns) = match self {
            Self::Iperf2 => (u64::from(word(0)), time_ns(word(4), word(8))?),
            Self::Iperf3 => (u64::from(word(8)), time_ns(word(0), word(4))?),
            Self::Iperf3Wide => {
                let number = bytes.get(8..)?.first_chunk::<8>()?;
                (u64::from_be_bytes(*number), time_ns(word(0), word(4))?)
            }
            _ => {
                let time = u64::from(word(4)) << 32 | u64::from(word(8));
                (u64::from(word(0)), i64::try_from(time).ok()?)
            }
        };
        Some(Stamp { number, sent_ns, clock: SenderClock::Unstated })
    }

    /// The probe that a datagram is, or answers, where a reflector answers them.
    pub fn echo(self, head: &PayloadHead) -> Option<ProbeEcho> {
        match self {
            Self::Twamp => twamp::echo(head.bytes()),
            Self::Irtt => irtt::echo(head.bytes()),
            _ => None,
        }
    }

    /// Whether a datagram opens, controls or closes a connection of IRTT or SRT.
    pub fn is_control(head: &PayloadHead) -> bool {
        irtt::is_control(head.bytes()) || srt::is_control(head.bytes())
    }

    /// Whether a datagram among the numbered ones counts for nothing: one of control, or sent again.
    pub fn is_beside(self, head: &PayloadHead) -> bool {
        let bytes = head.bytes();
        match self {
            Self::Irtt => irtt::is_control(bytes),
            Self::Srt => srt::is_control(bytes) || srt::is_retransmission(bytes),
            _ => false,
        }
    }

    /// Whether what was sent at `sent_ns` by its clock may have been captured at `time_ns`: TWAMP's clock is of
    /// the day, or its packets are something else.
    pub fn may_arrive(self, sent_ns: i64, time_ns: i64) -> bool {
        self != Self::Twamp || sent_ns.abs_diff(time_ns) < DAY_NS
    }
}

/// Seconds and microseconds; None if the microseconds are a second or more.
fn time_ns(seconds: u32, microseconds: u32) -> Option<i64> {
    let ns = i64::from(seconds) * 1_000_000_000 + i64::from(microseconds) * 1_000;
    (microseconds < 1_000_000).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(words: &[u32]) -> PayloadHead {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        PayloadHead::new(&bytes)
    }

    #[test]
    fn test_each_layout() {
        let stamp = |number, sent_ns| Some(Stamp { number, sent_ns, clock: SenderClock::Unstated });
        assert_eq!(ProbeLayout::Iperf2.read(&head(&[7, 2, 3])), stamp(7, 2_000_003_000));
        assert_eq!(ProbeLayout::Iperf3.read(&head(&[2, 3, 7])), stamp(7, 2_000_003_000));
        assert_eq!(ProbeLayout::Iperf3Wide.read(&head(&[2, 3, 1, 7])), stamp(1 << 32 | 7, 2_000_003_000));
        assert_eq!(ProbeLayout::Ns3.read(&head(&[7, 1, 2])), stamp(7, (1 << 32) + 2));
    }

    #[test]
    fn test_a_layout_of_ones_own() {
        let number = Field::new(1, 2, false).unwrap();
        let time = Field::new(3, 4, true).unwrap();
        let head = PayloadHead::new(&[9, 1, 2, 4, 3, 2, 1]);
        let stamp = |sent_ns| Some(Stamp { number: 258, sent_ns, clock: SenderClock::Unstated });
        let own = |time| ProbeLayout::Own(OwnLayout { number, time }).read(&head);
        assert_eq!(own(Some((time, 1_000))), stamp(0x0102_0304 * 1_000));
        assert_eq!(own(None), stamp(0));
        assert_eq!((Field::new(30, 4, false), Field::new(0, 9, false)), (None, None));
    }

    #[test]
    fn test_what_was_not_captured_is_not_read() {
        assert_eq!(ProbeLayout::Iperf3Wide.read(&head(&[2, 3, 1])), None);
        assert_eq!(ProbeLayout::Iperf2.read(&PayloadHead::new(&[0; 11])), None);
    }

    #[test]
    fn test_a_second_has_a_million_microseconds() {
        assert_eq!(ProbeLayout::Iperf2.read(&head(&[7, 2, 1_000_000])), None);
    }

    #[test]
    fn test_every_layout_has_its_name() {
        for layout in ProbeLayout::ALL {
            assert_eq!(ProbeLayout::by_name(layout.name()), Some(layout));
        }
    }

    proptest! {
        #[test]
        fn test_no_payload_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for layout in ProbeLayout::ALL {
                let head = PayloadHead::new(&bytes);
                layout.read(&head);
                layout.echo(&head);
                layout.is_beside(&head);
            }
        }
    }
}
