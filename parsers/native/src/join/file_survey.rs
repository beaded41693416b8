//! What one file of several shows of its flows, for the comparison with its neighbours.

use hashbrown::HashMap;

use serde::{Deserialize, Serialize};

use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::packet::event::{Packet, Tcp, TcpFlags, Transport};
use crate::packet::key::{FlowKey, Side};
use crate::packet::sender_stamp::Stamp;
use crate::packet::seq::{SeqNumber, Unwrapper};

/// The range of a number that grows: its first value is position 0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NumberRange {
    unwrapper: Unwrapper,
    low: i64,
    high: i64,
}

impl NumberRange {
    fn starting_at(number: u32) -> Self {
        Self { unwrapper: Unwrapper::new(SeqNumber(number)), low: 0, high: 0 }
    }

    fn cover(&mut self, number: u32, length: u32) {
        let start = self.unwrapper.position(SeqNumber(number), self.high);
        self.low = self.low.min(start);
        self.high = self.high.max(start.saturating_add(i64::from(length)));
    }

    fn length(&self) -> i64 {
        self.high.saturating_sub(self.low)
    }

    /// The end alone, as a range without a length.
    fn end(&self) -> Self {
        Self::starting_at(self.unwrapper.number(self.high).0)
    }

    /// How far the start of `self` lies beyond the end of `before`; negative if they overlap.
    pub fn ahead_of(&self, before: &Self) -> i64 {
        let lowest = self.unwrapper.number(self.low);
        i64::from(lowest.since(before.unwrapper.number(before.high)))
    }

    /// How far the end of `self` lies beyond the end of `before`.
    pub fn end_ahead_of(&self, before: &Self) -> i64 {
        let highest = self.unwrapper.number(self.high);
        i64::from(highest.since(before.unwrapper.number(before.high)))
    }

    /// Whether `self` goes on where `before` ended: what is sent again belongs to both.
    fn continues(&self, before: &Self) -> bool {
        self.ahead_of(before) >= -(before.length() / 2)
    }
}

/// What a file shows of one direction of a flow.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Sequence numbers of payload.
    pub data: Option<NumberRange>,
    pub acknowledgements: Option<NumberRange>,
    /// First and last timestamp.
    pub stamps: Option<(Stamp, Stamp)>,
    /// Whether the file shows its SYN.
    begins: bool,
    /// Whether another connection took over its ports.
    is_reused: bool,
}

/// How a direction in one file relates to the same in the file before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// It goes on.
    After,
    /// The file before goes on where this one ends.
    Before,
    /// Both cover the same numbers.
    Among,
    /// It has no numbers.
    Unknown,
}

impl Direction {
    fn on_segment(&mut self, time_ns: i64, tcp: &Tcp, payload: u32) {
        if tcp.flags.has(TcpFlags::SYN) {
            let is_first = self.data.is_none() && self.acknowledgements.is_none();
            self.begins |= is_first;
            self.is_reused |= !is_first;
        }
        if tcp.flags.has(TcpFlags::SYN | TcpFlags::RST) {
            return;
        }
        if payload > 0 {
            self.data.get_or_insert_with(|| NumberRange::starting_at(tcp.seq)).cover(tcp.seq, payload);
        }
        if tcp.flags.has(TcpFlags::ACK) {
            self.acknowledgements.get_or_insert_with(|| NumberRange::starting_at(tcp.ack)).cover(tcp.ack, 0);
        }
        if let Some((value, _)) = tcp.options.timestamp {
            let stamp = Stamp { time_ns, value };
            self.stamps.get_or_insert((stamp, stamp)).1 = stamp;
        }
    }

    /// Reach as far as the same direction did in the files before: later ones may only repeat.
    fn reach(&mut self, before: &Self) {
        let Some(before) = before.data else { return };
        let data = self.data.get_or_insert_with(|| before.end());
        data.high = data.high.max(data.high.saturating_sub(data.end_ahead_of(&before)));
    }

    /// Whether it is another connection than that of the same ports in the file before.
    pub fn is_new_since(&self, before: &Self) -> bool {
        before.is_reused || self.begins && before.begins
    }

    /// Whether its first bytes may be those that follow the last ones of the file before.
    pub fn may_follow(&self, before: &Self) -> bool {
        !self.begins && !before.is_reused
    }

    pub fn relation_to(&self, before: &Self) -> Succession {
        let ranges = [self.data.zip(before.data), self.acknowledgements.zip(before.acknowledgements)];
        let longest =
            ranges.into_iter().flatten().max_by_key(|(mine, other)| mine.length().max(other.length()));
        let Some((mine, other)) = longest else { return Succession::Unknown };
        if mine.length() == 0 && other.length() == 0 && mine.ahead_of(&other) == 0 {
            return Succession::Unknown;
        }
        match (mine.continues(&other), other.continues(&mine)) {
            (true, false) => Succession::After,
            (false, true) => Succession::Before,
            (true, true) if mine.ahead_of(&other) >= other.ahead_of(&mine) => Succession::After,
            (true, true) => Succession::Before,
            (false, false) => Succession::Among,
        }
    }
}

/// What one file shows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FileSurvey {
    /// Earliest and latest time; None without packets.
    pub span_ns: Option<(i64, i64)>,
    /// The longest time between two packets.
    pub longest_silence_ns: i64,
    pub directions: HashMap<(FlowKey, Side), Direction>,
}

impl FileSurvey {
    /// Read a file to its end; at most `max_flows` flows are compared. An error is one of the filter,
    /// in libpcap's words.
    pub fn read(
        reading: &mut Reading,
        compiler: Option<&dyn Compiler>,
        max_flows: u32,
    ) -> Result<Self, String> {
        let mut survey = Self::default();
        let most = 2 * max_flows as usize;
        reading.for_each_batch(compiler, |batch| {
            batch.items().for_each(|item| survey.on_packet(&item.to_packet(), most));
        })?;
        Ok(survey)
    }

    /// Add how far the data of flows in `before`, which was read earlier, have come.
    pub fn go_on_from(&mut self, before: &Self) {
        for (key, direction) in &mut self.directions {
            before.directions.get(key).into_iter().for_each(|before| direction.reach(before));
        }
    }

    fn on_packet(&mut self, packet: &Packet, most: usize) {
        let time_ns = packet.time_ns;
        let (start_ns, end_ns) = self.span_ns.unwrap_or((time_ns, time_ns));
        self.longest_silence_ns = self.longest_silence_ns.max(time_ns.saturating_sub(end_ns));
        self.span_ns = Some((start_ns.min(time_ns), end_ns.max(time_ns)));
        let network = &packet.network;
        let is_of_flow = matches!(network.transport, Transport::Tcp | Transport::Udp | Transport::Dccp);
        if !packet.is_ip || !network.has_ports || !is_of_flow {
            return;
        }
        let key = FlowKey::of(&network.endpoints);
        if self.directions.len() >= most && !self.directions.contains_key(&key) {
            return;
        }
        let direction = self.directions.entry(key).or_default();
        if network.transport == Transport::Tcp {
            direction.on_segment(time_ns, &network.tcp, network.payload_bytes.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(starts: &[u32]) -> Direction {
        let mut direction = Direction::default();
        for &seq in starts {
            direction.on_segment(0, &Tcp { seq, ..Tcp::default() }, 100);
        }
        direction
    }

    #[test]
    fn test_numbers_show_which_part_comes_first() {
        let near_wrap = u32::MAX - 150;
        let first = data(&[near_wrap, near_wrap + 100, near_wrap.wrapping_add(200)]);
        let second = data(&[near_wrap.wrapping_add(200), near_wrap.wrapping_add(300)]);
        assert_eq!(second.relation_to(&first), Succession::After);
        assert_eq!(first.relation_to(&second), Succession::Before);
        assert_eq!(first.relation_to(&first), Succession::Among);
        assert_eq!(first.relation_to(&Direction::default()), Succession::Unknown);
    }

    #[test]
    fn test_bytes_that_neither_part_has_lie_between_them() {
        let (first, second) = (data(&[0, 100]), data(&[500, 350, 600]));
        assert_eq!(second.data.unwrap().ahead_of(&first.data.unwrap()), 150);
        let mut repeats = data(&[0]);
        repeats.reach(&first);
        assert_eq!(second.data.unwrap().ahead_of(&repeats.data.unwrap()), 150);
    }
}
