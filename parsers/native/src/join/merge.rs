//! Reads files that overlap as one: in the order of time, each packet once.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::order::{Group, Open};
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::packet::batch::{Batch, Item};
use crate::packet::event::{Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::pair::packet_identity::{error_identity, identity, payload_head};

/// Packets decoded in one go.
const BATCH: usize = 1024;

/// Packets that are remembered while copies of them may come.
const REMEMBERED: usize = 1 << 18;

/// A file of the group that was opened.
pub struct OpenFile {
    pub reading: Reading,
    /// Packets that are in another file, too, and were dropped here.
    pub copies: u64,
    batch: Batch,
    packets: Vec<Packet>,
    next: usize,
    is_at_end: bool,
    ahead_ns: i64,
}

impl OpenFile {
    fn of(reading: Reading, ahead_ns: i64) -> Self {
        let (batch, packets) = (Batch::new(BATCH), Vec::new());
        Self { reading, copies: 0, batch, packets, next: 0, is_at_end: false, ahead_ns }
    }

    fn peek(&mut self, compiler: Option<&dyn Compiler>) -> Result<Option<&Packet>, String> {
        if self.next >= self.packets.len() && !self.is_at_end {
            self.reading.fill(&mut self.batch, compiler)?;
            self.is_at_end = !self.batch.is_full();
            self.packets.clear();
            self.packets.extend(self.batch.items().map(Item::to_packet));
            self.next = 0;
        }
        Ok(self.packets.get(self.next))
    }
}

/// Packets that were passed on lately, with the files that have shown them.
#[derive(Default)]
struct Shown {
    /// The oldest first: when, and its identity.
    order: VecDeque<(i64, u64)>,
    /// By identity, of each packet the files that have it.
    packets: HashMap<u64, VecDeque<Vec<usize>>>,
}

impl Shown {
    /// Whether another file has shown this packet. Packets that look the same are matched in order.
    fn is_copy(&mut self, identity: u64, file: usize, time_ns: i64, tolerance_ns: i64) -> bool {
        while let Some(&(oldest_ns, oldest)) = self.order.front()
            && (time_ns.saturating_sub(oldest_ns) > tolerance_ns || self.order.len() >= REMEMBERED)
        {
            self.order.pop_front();
            if let Some(alike) = self.packets.get_mut(&oldest) {
                alike.pop_front();
                if alike.is_empty() {
                    self.packets.remove(&oldest);
                }
            }
        }
        let alike = self.packets.entry(identity).or_default();
        if let Some(files) = alike.iter_mut().find(|files| !files.contains(&file)) {
            files.push(file);
            return true;
        }
        alike.push_back(vec![file]);
        self.order.push_back((time_ns, identity));
        false
    }
}

/// Packets of a file that is read alone.
pub struct PacketsOfOne<'a, I> {
    pub reading: &'a Reading,
    pub extras: &'a PacketExtras,
    pub items: I,
}

/// The packets of a group of files.
pub struct MergedFiles {
    group: Group,
    /// In the order of the group; a file is opened when its time has come.
    pub files: Vec<OpenFile>,
    /// Those that are not at their end.
    active: Vec<usize>,
    /// Packets of all groups before.
    packets_before: u64,
    /// Packets given so far, if they come from several files.
    given: u64,
    shown: Shown,
}

impl MergedFiles {
    /// The files of `group`, whose packets are numbered after `packets_before`.
    pub fn new(group: Group, packets_before: u64) -> Self {
        let (files, active) = (Vec::new(), Vec::new());
        Self { group, files, active, packets_before, given: 0, shown: Shown::default() }
    }

    /// Whether there is only one file.
    pub fn is_alone(&self) -> bool {
        self.group.members.len() == 1
    }

    /// Packets read so far, in this group and before it.
    pub fn packets(&self) -> u64 {
        let read = match self.is_alone() {
            true => self.files.iter().map(|file| file.reading.packets()).sum(),
            false => self.given,
        };
        self.packets_before + read
    }

    /// Go to the next packet and return its file; None at the end. An error is one of the filter, in
    /// libpcap's words.
    pub fn next(&mut self, open: Open<'_>, compiler: Option<&dyn Compiler>) -> Result<Option<usize>, String> {
        loop {
            let earliest = self.earliest(compiler)?;
            if self.open_next(earliest.map(|(_, time_ns)| time_ns), open) {
                continue;
            }
            let Some((at, time_ns)) = earliest else { return Ok(None) };
            let is_copy = self.is_copy(at, time_ns);
            let (file, before) = (&mut self.files[at], self.packets_before);
            file.next += 1;
            if is_copy {
                file.copies += 1;
                continue;
            }
            if self.group.members.len() > 1 {
                self.given += 1;
                file.packets[file.next - 1].number = before + self.given;
            }
            return Ok(Some(at));
        }
    }

    /// Go to the next packets of the only file, at most so many, and return them with their extras; None at
    /// the end, or if there are more files. An error is one of the filter.
    pub fn next_of_one(
        &mut self,
        open: Open<'_>,
        compiler: Option<&dyn Compiler>,
        most: usize,
    ) -> Result<Option<PacketsOfOne<'_, impl Iterator<Item = Item<'_>>>>, String> {
        if self.is_alone() && self.files.is_empty() {
            self.open_next(None, open);
        }
        let [file] = &mut self.files[..] else { return Ok(None) };
        if file.next >= file.batch.len() && !file.is_at_end {
            file.reading.fill(&mut file.batch, compiler)?;
            file.is_at_end = !file.batch.is_full();
            file.next = 0;
        }
        let start = file.next;
        file.next = file.batch.len().min(start.saturating_add(most));
        let items = file.batch.items().skip(start).take(file.next - start);
        let of_one = PacketsOfOne { reading: &file.reading, extras: file.batch.extras(), items };
        Ok((start < file.next).then_some(of_one))
    }

    /// The packet that [`MergedFiles::next`] went to, with its extras.
    pub fn packet(&self, at: usize) -> Option<(&Packet, &PacketExtras)> {
        let file = self.files.get(at)?;
        Some((file.packets.get(file.next.checked_sub(1)?)?, file.batch.extras()))
    }

    /// Open the next file if it begins not later than `time_ns`, or if there is nothing else.
    fn open_next(&mut self, time_ns: Option<i64>, open: Open<'_>) -> bool {
        let Some(member) = self.group.members.get(self.files.len()) else { return false };
        let begins_ns = member.start_ns.unwrap_or(i64::MIN).saturating_sub(member.ahead_ns);
        let is_due = time_ns.is_none_or(|time_ns| begins_ns <= time_ns);
        if is_due {
            let mut reading = open(member.file);
            if self.is_alone() {
                reading.number_after(self.packets_before);
            }
            self.active.push(self.files.len());
            self.files.push(OpenFile::of(reading, member.ahead_ns));
        }
        is_due
    }

    fn earliest(&mut self, compiler: Option<&dyn Compiler>) -> Result<Option<(usize, i64)>, String> {
        let mut earliest = None;
        let mut at_end = None;
        for &at in &self.active {
            let file = &mut self.files[at];
            let ahead_ns = file.ahead_ns;
            let Some(packet) = file.peek(compiler)? else {
                at_end = Some(at);
                continue;
            };
            let time_ns = packet.time_ns.saturating_sub(ahead_ns);
            if earliest.is_none_or(|(_, earliest_ns)| time_ns < earliest_ns) {
                earliest = Some((at, time_ns));
            }
        }
        self.active.retain(|&at| Some(at) != at_end);
        Ok(earliest)
    }

    fn is_copy(&mut self, at: usize, time_ns: i64) -> bool {
        let file = &self.files[at];
        let Some(packet) = file.packets.get(file.next).filter(|_| !self.is_alone()) else { return false };
        let (network, extras) = (&packet.network, file.batch.extras());
        let head = payload_head(network, extras);
        let identity = match network.transport {
            Transport::IcmpError if packet.is_ip => Some(error_identity(network, head)),
            _ => identity(network, head).filter(|_| packet.is_ip),
        };
        // What has no identity is the same packet only at the same time.
        let identity = identity.unwrap_or(time_ns as u64 ^ u64::from(packet.wire_bytes).rotate_right(8));
        self.shown.is_copy(identity, at, time_ns, self.group.tolerance_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_packets_that_look_the_same_count_once_for_each_in_a_file() {
        let mut shown = Shown::default();
        let seen = [(0, 10), (0, 11), (1, 11), (1, 12), (1, 13), (2, 13)];
        let copies = seen.map(|(file, time_ns)| shown.is_copy(7, file, time_ns, 5));
        assert_eq!(copies, [false, false, true, true, false, true]);
        assert!(!shown.is_copy(7, 2, 100, 5));
        assert_eq!((shown.order.len(), shown.packets.len()), (1, 1));
    }
}
