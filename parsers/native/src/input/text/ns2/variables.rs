//! Variables of agents that ns-2 traces beside packets, in three forms: one line for all of them,
//! one line for each change, and the lines of an agent's own trace.

use super::fields::Fields;
use crate::input::text::{Outcome, number};
use crate::packet::event::{Address, Endpoints, Family, PROTOCOL_TFRC};
use crate::packet::logged_variables::{SampleList, Unit, VariableSample};
use crate::plural::counted;

/// Fields of a queue monitor's line.
const QUEUE_MONITOR_FIELDS: usize = 11;

const ONE_LINE: Outcome =
    Outcome::Wrong("expected `time: T saddr: A sport: P daddr: A dport: P name: value ...`");
const NUMBERS: Outcome = Outcome::Wrong(
    "expected `TIME SRC SPORT DST DPORT NAME VALUE`, a variable of an agent of ns-2, or a queue monitor's 11 \
     numbers",
);
const ATTACHED: Outcome =
    Outcome::Wrong("expected `f -t TIME -s SRC -d DST -n NAME ... -v VALUE`, a variable of an agent of ns-2");

/// Name in the trace, name here, unit, and factor. ns-2 prints times in seconds.
const KNOWN: [(&[u8], &str, Unit, f64); 23] = [
    (b"cwnd_", "cwnd", Unit::Packets, 1.0),
    (b"cwnd:", "cwnd", Unit::Packets, 1.0),
    (b"ssthresh_", "ssthresh", Unit::Packets, 1.0),
    (b"ssthresh:", "ssthresh", Unit::Packets, 1.0),
    (b"rtt_", "rtt", Unit::Ms, 1000.0),
    (b"rtt:", "rtt", Unit::Ms, 1000.0),
    (b"srtt_", "srtt", Unit::Ms, 1000.0),
    (b"srtt:", "srtt", Unit::Ms, 1000.0),
    (b"rttvar_", "rttvar", Unit::Ms, 1000.0),
    (b"rttvar:", "rttvar", Unit::Ms, 1000.0),
    (b"maxseq_", "maxseq", Unit::Packets, 1.0),
    (b"maxseq:", "maxseq", Unit::Packets, 1.0),
    (b"ack_", "ack", Unit::Packets, 1.0),
    (b"hiack:", "ack", Unit::Packets, 1.0),
    (b"t_seqno_", "seqno", Unit::Packets, 1.0),
    (b"seqno:", "seqno", Unit::Packets, 1.0),
    (b"dupacks_", "dupacks", Unit::Packets, 1.0),
    (b"dupacks:", "dupacks", Unit::Packets, 1.0),
    (b"backoff_", "backoff", Unit::One, 1.0),
    (b"bkoff:", "backoff", Unit::One, 1.0),
    (b"ndatapack_", "data_packets", Unit::Packets, 1.0),
    (b"nrexmitpack_", "rexmit_packets", Unit::Packets, 1.0),
    (b"true_loss_rate_", "loss_rate", Unit::One, 1.0),
];

#[derive(Debug, Default)]
pub struct Variables {
    samples: SampleList,
    nameless: u64,
    queue_samples: u64,
}

impl Variables {
    pub fn take(&mut self) -> Vec<VariableSample> {
        self.samples.take()
    }

    /// Caveats about the samples.
    pub fn caveats(&self) -> Vec<String> {
        let nameless = (self.nameless > 0).then(|| {
            format!(
                "{} values of variables name an agent's object and no addresses, so that they belong to no flow",
                self.nameless
            )
        });
        let of_queues = (self.queue_samples > 0).then(|| {
            counted(
                self.queue_samples,
                "line[s] of a queue monitor [was|were] left out: [it names|they name] a link and no flow",
            )
        });
        nameless.into_iter().chain(of_queues).chain(self.samples.caveat()).collect()
    }

    /// `time: 0.1 saddr: 0 sport: 0 daddr: 2 dport: 0 maxseq: 0 ...`: TCP with `trace_all_oneline_`.
    pub fn read_one_line(&mut self, line: &[u8]) -> Outcome {
        let mut fields = Fields::new(line);
        let Some((time_ns, endpoints)) = read_one_line_start(&mut fields) else {
            return ONE_LINE;
        };
        while let Some(name) = fields.field() {
            let Some(value) = fields.field() else {
                return ONE_LINE;
            };
            self.add(time_ns, endpoints, name, value);
        }
        Outcome::Other
    }

    /// A line of numbers: `0.1 4 0 5 0 cwnd_ 1.000` is a variable, eleven numbers are of a queue.
    pub fn read_numbers(&mut self, line: &[u8]) -> Outcome {
        let mut fields = Fields::new(line);
        if let Some((time_ns, endpoints, name, value)) = read_padded(&mut fields) {
            self.add(time_ns, endpoints, name, value);
            return Outcome::Other;
        }
        // The values of an agent before it is connected.
        if is_padded(line) {
            return Outcome::Other;
        }
        if is_queue_sample(line) {
            self.queue_samples += 1;
            return Outcome::Other;
        }
        NUMBERS
    }

    /// What follows `f -t TIME` if it is `-s SRC -d DST -n NAME -a ... -v VALUE`: an agent's trace.
    /// Of the agents with a variable to trace only TFRC's write so; it gives no ports.
    pub fn read_attached(&mut self, time_ns: i64, fields: &mut Fields<'_>) -> Outcome {
        let (mut src, mut dst, mut name, mut value) = (None, None, None, None);
        while let Some((tag, text)) = fields.tag() {
            match tag {
                b"s" => src = node(text),
                b"d" => dst = node(text),
                b"n" => name = Some(text),
                b"v" => value = Some(text),
                _ => {}
            }
        }
        let (Some(src), Some(dst), Some(name), Some(value)) = (src, dst, name, value) else {
            return ATTACHED;
        };
        let family = Family::Node;
        let endpoints = Endpoints { family, protocol: PROTOCOL_TFRC, src, dst, src_port: 0, dst_port: 0 };
        self.add(time_ns, endpoints, name, value);
        Outcome::Other
    }

    /// `f t0.1 a_o72 nNAME vVALUE`: only the simulation's script knows the agent.
    pub fn read_nameless(&mut self) -> Outcome {
        self.nameless += 1;
        Outcome::Other
    }

    fn add(&mut self, time_ns: i64, endpoints: Endpoints, name: &[u8], value: &[u8]) {
        let Some(&(_, name, unit, factor)) = KNOWN.iter().find(|known| known.0 == name) else {
            return;
        };
        let Some(value) = number::real(value) else {
            return;
        };
        self.samples.add(VariableSample { endpoints, time_ns, name, unit, value: value * factor });
    }
}

fn read_one_line_start(fields: &mut Fields<'_>) -> Option<(i64, Endpoints)> {
    fields.skip(b"time:")?;
    let time_ns = fields.time_ns()?;
    let mut ends = [0; 4];
    for (end, name) in ends.iter_mut().zip([&b"saddr:"[..], b"sport:", b"daddr:", b"dport:"]) {
        fields.skip(name)?;
        *end = fields.signed()?;
    }
    Some((time_ns, tcp(ends)?))
}

fn read_padded<'a>(fields: &mut Fields<'a>) -> Option<(i64, Endpoints, &'a [u8], &'a [u8])> {
    let time_ns = fields.time_ns()?;
    let mut ends = [0; 4];
    for end in &mut ends {
        *end = fields.signed()?;
    }
    let name = fields.field().filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic))?;
    let value = fields.field()?;
    fields.is_empty().then_some((time_ns, tcp(ends)?, name, value))
}

/// Whether a line could be one of [`Variables::read_numbers`] with a name; its ends are -1 before the
/// agent is connected.
pub fn is_padded(line: &[u8]) -> bool {
    let mut fields = Fields::new(line);
    let is_name = |name: &[u8]| name.first().is_some_and(u8::is_ascii_alphabetic) && name.ends_with(b"_");
    fields.time_ns().is_some()
        && (0..4).all(|_| fields.signed().is_some_and(|end| end >= -1))
        && fields.field().is_some_and(is_name)
        && fields.field().is_some_and(|value| number::real(value).is_some())
        && fields.is_empty()
}

/// Whether a line has the numbers of a queue monitor: time, both nodes, averages, counts.
pub fn is_queue_sample(line: &[u8]) -> bool {
    let mut fields = Fields::new(line);
    let has_nodes = fields.time_ns().is_some() && fields.small().is_some() && fields.small().is_some();
    let rest = std::iter::from_fn(|| fields.field());
    has_nodes
        && rest.map(number::real).try_fold(3, |count, value| value.map(|_| count + 1))
            == Some(QUEUE_MONITOR_FIELDS)
}

/// The ends of a TCP agent's variable: source, its port, destination, its port.
fn tcp([src, src_port, dst, dst_port]: [i64; 4]) -> Option<Endpoints> {
    Some(Endpoints {
        family: Family::Node,
        protocol: 6,
        src: Address::from(u32::try_from(src).ok()?),
        dst: Address::from(u32::try_from(dst).ok()?),
        src_port: u16::try_from(src_port).ok()?,
        dst_port: u16::try_from(dst_port).ok()?,
    })
}

fn node(text: &[u8]) -> Option<Address> {
    Some(Address::from(u32::try_from(number::decimal(text)?).ok()?))
}
