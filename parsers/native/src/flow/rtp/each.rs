//! Reports that name each packet: what was sent, and at which rate it came.

use super::source::Seen;

/// Packets whose size is remembered: 64 KiB, only where there are such reports.
const REMEMBERED: usize = 4096;

/// What a packet was, for reports that name it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    number: u16,
    /// Payload of its datagram; 0 if there was none with this number lately.
    payload_bytes: u32,
    /// When it was captured.
    pub time_ns: i64,
}

/// The latest packets by number.
#[derive(Clone, Debug)]
pub struct SentPackets(Vec<Sent>);

impl Default for SentPackets {
    fn default() -> Self {
        Self(vec![Sent::default(); REMEMBERED])
    }
}

impl SentPackets {
    /// Remember a packet, and forget the one that many numbers ago.
    pub fn add(&mut self, number: u16, seen: &Seen) {
        if let Some(place) = self.0.get_mut(usize::from(number) % REMEMBERED) {
            *place = Sent { number, payload_bytes: seen.payload_bytes, time_ns: seen.time_ns };
        }
    }

    /// The packet with this number.
    pub fn get(&self, number: u16) -> Option<Sent> {
        let sent = self.0.get(usize::from(number) % REMEMBERED)?;
        (sent.number == number && sent.payload_bytes > 0).then_some(*sent)
    }
}

/// How far the reports are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    highest: Option<u16>,
    /// By the receiver's clock, seconds.
    last_arrival: Option<f64>,
}

impl Progress {
    /// Bytes per second that came since the report before: of the packets with higher numbers that
    /// this one says arrived, and when. None for the first one, and if any of them was not captured.
    pub fn x_recv(&mut self, sent: &SentPackets, arrivals: impl Iterator<Item = (u16, f64)>) -> Option<f64> {
        let (mut bytes, mut are_all_known) = (0.0, true);
        let before = self.last_arrival;
        for (number, time) in arrivals {
            // Reports may overlap.
            let is_new = self.highest.is_none_or(|highest| number.wrapping_sub(highest) as i16 > 0);
            if !is_new {
                continue;
            }
            self.highest = Some(number);
            self.last_arrival = Some(self.last_arrival.map_or(time, |last| last.max(time)));
            match sent.get(number) {
                Some(sent) => bytes += f64::from(sent.payload_bytes),
                None => are_all_known = false,
            }
        }
        let elapsed = self.last_arrival? - before?;
        (are_all_known && elapsed > 0.0).then(|| bytes / elapsed)
    }
}
