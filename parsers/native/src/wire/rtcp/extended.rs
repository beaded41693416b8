//! Extended reports (RFC 3611): blocks of their own types and lengths.

use super::super::{u16_at, u32_at};

/// A block, with the fields that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// Which packets of a source arrived (section 4.1).
    Losses(RunLengths<'a>),
    /// A receiver's wall clock (section 4.4), for receivers that send nothing and so have no sender
    /// reports.
    ReceiverTime(u64),
    /// Echo of such a time to a receiver (section 4.5).
    Echo {
        ssrc: u32,
        /// The middle of its time.
        last_time: u32,
        /// How long ago that arrived, in 65536ths of a second.
        delay: u32,
    },
    /// Counts and jitter of a range of packets (section 4.6).
    Summary(Summary),
    /// What telephony measures (section 4.7).
    Voip(VoipMetrics),
    /// Its length is invalid for its type.
    Malformed,
}

/// A statistics summary. Jitter is in ticks of the media's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub ssrc: u32,
    pub lost: Option<u32>,
    pub duplicates: Option<u32>,
    /// Mean difference of transit times.
    pub mean_jitter: Option<u32>,
}

/// Metrics of voice over IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoipMetrics {
    pub ssrc: u32,
    /// Share of its packets lost since the beginning, in 256ths.
    pub loss_rate: u8,
    /// Round-trip time in milliseconds; 0 if not known.
    pub round_trip_ms: u16,
}

/// Which packets of a range arrived, in runs and bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLengths<'a> {
    pub ssrc: u32,
    pub first: u16,
    /// One above the last packet of the range.
    pub end: u16,
    /// Only every 2^n-th packet is reported.
    pub thinning: u8,
    chunks: &'a [u8],
}

impl RunLengths<'_> {
    /// Missing packets, of those reported.
    pub fn lost(&self) -> u32 {
        let mut left = u32::from(self.end.wrapping_sub(self.first)) >> self.thinning;
        let mut lost = 0;
        for chunk in self.chunks.chunks_exact(2).filter_map(<[u8]>::first_chunk::<2>) {
            let chunk = u16::from_be_bytes(*chunk);
            let (count, came) = match chunk {
                // A bit for each packet, the first one highest.
                0x8000.. => {
                    let count = left.min(15);
                    (count, (chunk << 1 & 0xfffe << (15 - count)).count_ones())
                }
                0x4000.. => (left.min(u32::from(chunk & 0x3fff)), u32::from(chunk & 0x3fff)),
                _ => (left.min(u32::from(chunk)), 0),
            };
            lost += count.saturating_sub(came);
            left -= count;
        }
        lost
    }
}

/// The blocks of a packet. A block with several echoes is returned once for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks<'a> {
    rest: &'a [u8],
    /// Echoes that are not returned yet.
    echoes: &'a [u8],
}

impl<'a> Blocks<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, echoes: &[] }
    }

    fn next_echo(&mut self) -> Option<Block<'a>> {
        let (echo, rest) = self.echoes.split_first_chunk::<12>()?;
        self.echoes = rest;
        Some(Block::Echo { ssrc: u32_at(echo, 0), last_time: u32_at(echo, 4), delay: u32_at(echo, 8) })
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        loop {
            if let Some(echo) = self.next_echo() {
                return Some(echo);
            }
            if self.rest.is_empty() {
                return None;
            }
            let block = self.rest.split_first_chunk::<4>();
            let split = block.and_then(|(head, after)| {
                let (body, rest) = after.split_at_checked(4 * usize::from(u16_at(head, 2)))?;
                Some((head, body, rest))
            });
            let Some((&[kind, specific, ..], body, rest)) = split else {
                self.rest = &[];
                return Some(Block::Malformed);
            };
            self.rest = rest;
            match kind {
                5 if body.len().is_multiple_of(12) => self.echoes = body,
                1 | 4..=7 => return Some(read(kind, specific, body).unwrap_or(Block::Malformed)),
                _ => {}
            }
        }
    }
}

fn read(kind: u8, specific: u8, body: &[u8]) -> Option<Block<'_>> {
    let fixed = body.first_chunk::<8>()?;
    match kind {
        1 => Some(Block::Losses(RunLengths {
            ssrc: u32_at(fixed, 0),
            first: u16_at(fixed, 4),
            end: u16_at(fixed, 6),
            thinning: specific & 0x0f,
            chunks: body.get(8..)?,
        })),
        4 => Some(Block::ReceiverTime(u64::from_be_bytes(*fixed))),
        6 => {
            let body = body.first_chunk::<36>()?;
            let flagged = |bit: u8, at| (specific & bit != 0).then(|| u32_at(body, at));
            Some(Block::Summary(Summary {
                ssrc: u32_at(body, 0),
                lost: flagged(0x80, 8),
                duplicates: flagged(0x40, 12),
                mean_jitter: flagged(0x20, 24),
            }))
        }
        7 => {
            let body = body.first_chunk::<32>()?;
            Some(Block::Voip(VoipMetrics {
                ssrc: u32_at(body, 0),
                loss_rate: body[4],
                round_trip_ms: u16_at(body, 12),
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn test_runs_and_bits_of_losses() {
        // 40 packets: 20 arrived, 5 did not, of the last 15 all but two.
        let bytes = words(&[0x0100_0004, 9, 0x0000_0028, 0x4014_0005, 0xfffa_0000]);
        let Some(Block::Losses(losses)) = Blocks::new(&bytes).next() else { panic!() };
        assert_eq!((losses.ssrc, losses.first, losses.end, losses.lost()), (9, 0, 40, 7));
    }

    #[test]
    fn test_echoes_times_and_summaries() {
        let mut bytes = words(&[0x0400_0002, 0xe000_0001, 0x8000_0000]);
        bytes.extend(words(&[0x0500_0006, 1, 2, 3, 4, 5, 6]));
        bytes.extend(words(&[0x06a0_0009, 9, 0x0001_0029, 7, 0, 1, 2, 3, 4, 0]));
        bytes.extend(words(&[0x0700_0008, 9, 0x4000_0000, 0, 0x0064_0000, 0, 0, 0, 0]));
        let found: Vec<_> = Blocks::new(&bytes).collect();
        let summary = Summary { ssrc: 9, lost: Some(7), duplicates: None, mean_jitter: Some(3) };
        assert_eq!(
            found,
            [
                Block::ReceiverTime(0xe000_0001_8000_0000),
                Block::Echo { ssrc: 1, last_time: 2, delay: 3 },
                Block::Echo { ssrc: 4, last_time: 5, delay: 6 },
                Block::Summary(summary),
                Block::Voip(VoipMetrics { ssrc: 9, loss_rate: 64, round_trip_ms: 100 }),
            ]
        );
    }

    #[test]
    fn test_lengths_that_lie_are_malformed() {
        for bytes in
            [words(&[0x0400_0009, 1]), words(&[0x0600_0001, 1]), words(&[0x0500_0002, 1, 2]), vec![1]]
        {
            assert_eq!(Blocks::new(&bytes).collect::<Vec<_>>(), [Block::Malformed], "{bytes:?}");
        }
    }
}
