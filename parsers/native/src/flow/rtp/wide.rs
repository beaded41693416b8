//! Transport-wide numbers: the packets of all sources of a direction together, counted by an element
//! of the header's extension whose identifier only the signalling names.

use super::each::{Progress, SentPackets};
use super::source::Seen;

/// Packets in a row whose element counts on before it is taken for the number.
const AGREEING: u32 = 4;
/// Elements of two bytes that are watched.
const WATCHED: usize = 4;

/// An element that may be the number.
#[derive(Clone, Copy, Debug)]
struct Watched {
    id: u8,
    last: u16,
    in_a_row: u32,
}

/// The numbers of one direction.
#[derive(Debug, Default)]
pub struct Wide {
    watched: Vec<Watched>,
    /// The identifier of the element, with the latest packets.
    numbered: Option<(u8, Box<SentPackets>)>,
    progress: Progress,
    /// Number of the latest report.
    report: Option<u8>,
}

impl Wide {
    /// Take in a packet.
    pub fn take(&mut self, seen: &Seen) {
        for (id, number) in seen.pairs.into_iter().flatten() {
            match &mut self.numbered {
                Some((of, sent)) if *of == id => sent.add(number, seen),
                Some(_) => {}
                None => self.watch(id, number, seen),
            }
        }
    }

    fn watch(&mut self, id: u8, number: u16, seen: &Seen) {
        let Some(watched) = self.watched.iter_mut().find(|watched| watched.id == id) else {
            if self.watched.len() < WATCHED {
                self.watched.push(Watched { id, last: number, in_a_row: 0 });
            }
            return;
        };
        let counts_on = number.wrapping_sub(watched.last) == 1;
        watched.in_a_row = if counts_on { watched.in_a_row + 1 } else { 0 };
        watched.last = number;
        if watched.in_a_row == AGREEING {
            let mut sent = Box::<SentPackets>::default();
            sent.add(number, seen);
            self.numbered = Some((id, sent));
            self.watched = Vec::new();
        }
    }

    /// What a report says of the receive rate, see [`Progress::x_recv`].
    pub fn x_recv(&mut self, arrivals: impl Iterator<Item = (u16, f64)>) -> Option<f64> {
        let (_, sent) = self.numbered.as_ref()?;
        self.progress.x_recv(sent, arrivals)
    }

    /// Reports that are missing before this one, by its number.
    pub fn missing_before(&mut self, report: u8) -> u64 {
        let last = self.report.replace(report);
        let ahead = last.map_or(1, |last| report.wrapping_sub(last));
        // One that was overtaken, or the same again, hides none.
        if (1..128).contains(&ahead) { u64::from(ahead) - 1 } else { 0 }
    }
}
