//! Events of Linux's kernel: `tcp_probe` as ftrace and `trace-cmd report` print it, and the retransmissions that bcc's
//! `tcpretrans` prints.

mod tcp_probe;
mod tcpretrans;

use hashbrown::HashMap;

use super::{LineFormat, NameTable, Outcome};
use crate::packet::event::Packet;
use crate::packet::key::{FlowKey, Side};
use crate::packet::logged_variables::{SampleList, Unit, VariableSample};

const EXPECTED: &str = "expected an event of `tcp_probe`, or a line of `tcpretrans`";
/// Connections whose retransmissions are counted.
const MOST_CONNECTIONS: usize = 1 << 16;
/// Times of less are not dates (1973).
const DATES_FROM_NS: i64 = 100_000_000_000_000_000;

/// Whether a line looks like one of them.
pub fn recognises(line: &[u8]) -> bool {
    tcp_probe::event(line).is_some() || tcpretrans::event(line).is_some() || tcpretrans::is_header(line)
}

/// Reader of the log.
#[derive(Default)]
pub struct KernelEvents {
    samples: SampleList,
    /// Retransmissions and tail loss probes of each connection.
    sums: HashMap<(FlowKey, Side), [u64; 2]>,
    has_times_since_boot: bool,
    has_times_of_day: bool,
    uncounted: u64,
    places: NameTable,
}

impl LineFormat for KernelEvents {
    fn read(&mut self, _number: u64, line: &[u8], _packet: &mut Packet) -> Outcome {
        if let Some((time_ns, endpoints, fields)) = tcp_probe::event(line) {
            self.has_times_since_boot |= time_ns < DATES_FROM_NS;
            tcp_probe::for_each_variable(fields, |name, unit, value| {
                self.samples.add(VariableSample { endpoints, time_ns, name, unit, value });
            });
            return Outcome::Other;
        }
        if let Some(event) = tcpretrans::event(line) {
            self.has_times_of_day = true;
            self.count(event);
            return Outcome::Other;
        }
        let is_other = line.trim_ascii().is_empty()
            || line.starts_with(b"#")
            || tcp_probe::is_other_event(line)
            || tcpretrans::is_header(line);
        if is_other { Outcome::Other } else { Outcome::Wrong(EXPECTED) }
    }

    fn places(&self) -> &NameTable {
        &self.places
    }

    fn take_samples(&mut self) -> Vec<VariableSample> {
        self.samples.take()
    }

    fn caveats(&self) -> Vec<String> {
        let since_boot = "its times are since the start of the machine: `echo tai > trace_clock` gives dates";
        let of_day = "its times have no date: they are since midnight";
        let uncounted = format!("{} of further connections were not counted", self.uncounted);
        [
            (self.has_times_since_boot, since_boot.to_owned()),
            (self.has_times_of_day, of_day.to_owned()),
            (self.uncounted > 0, uncounted),
        ]
        .into_iter()
        .filter_map(|(applies, words)| applies.then_some(words))
        .chain(self.samples.caveat())
        .collect()
    }
}

impl KernelEvents {
    fn count(&mut self, event: tcpretrans::Retransmission) {
        let tcpretrans::Retransmission { time_ns, endpoints, is_probe } = event;
        let direction = FlowKey::of(&endpoints);
        if self.sums.len() >= MOST_CONNECTIONS && !self.sums.contains_key(&direction) {
            self.uncounted += 1;
            return;
        }
        let sums = self.sums.entry(direction).or_default();
        sums[usize::from(is_probe)] += 1;
        let (name, sum) = if is_probe { ("tail_loss_probes", sums[1]) } else { ("retransmits", sums[0]) };
        self.samples.add(VariableSample { endpoints, time_ns, name, unit: Unit::Packets, value: sum as f64 });
    }
}

#[cfg(test)]
mod tests;
