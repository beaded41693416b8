//! Logs of a connection's variables in columns: CSV, tabs or spaces, with the columns' names in the
//! first line. `time` and one variable are enough; the connection is in columns (`src`, `sport`,
//! `dst`, `dport`, or `flow`) or in a comment (`# 10.0.0.1:5000 > 10.0.0.2:80`).
//!
//! Without names, as in files of ns-3's tracers, the columns are time and value, or flow, time and
//! value; the file does not name the variable.

mod columns;

use super::{LineFormat, NameTable, Outcome, number};
use crate::packet::address;
use crate::packet::address::HostPort;
use crate::packet::event::{Address, Endpoints, Family, Packet};
use crate::packet::logged_variables::{SampleList, VariableSample};
use columns::{Column, Separator};

const EXPECTED_NAMES: &str =
    "expected a line with the columns' names, such as `time,cwnd,ssthresh`, before numbers";
const EXPECTED_TIME: &str = "expected a time in seconds in its column";
const EXPECTED_COLUMNS: &str = "expected as many columns as have names";
const UNKNOWN: &str = "unknown";
/// Flows that are found without formatting their names again.
const MAX_FLOWS: usize = 64;

/// Whether a line looks like the column names of such a log.
pub fn recognises(line: &[u8]) -> bool {
    columns::named(line).is_some()
}

/// Reader of the log.
#[derive(Default)]
pub struct TcpVars {
    columns: Vec<Column>,
    separator: Separator,
    /// The connection of the last comment.
    connection: Option<Endpoints>,
    /// Connections by number or name of the flow.
    flows: Vec<(Vec<u8>, Endpoints)>,
    is_nameless: bool,
    samples: SampleList,
    hosts: NameTable,
    places: NameTable,
}

impl LineFormat for TcpVars {
    fn read(&mut self, _number: u64, line: &[u8], _packet: &mut Packet) -> Outcome {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return Outcome::Other;
        }
        if let Some((columns, separator)) = columns::named(line) {
            (self.columns, self.separator) = (columns, separator);
            return Outcome::Other;
        }
        if let Some(comment) = line.strip_prefix(b"#") {
            self.connection = connection(comment).or(self.connection);
            return Outcome::Other;
        }
        if self.columns.is_empty() && !self.take_nameless(line) {
            return Outcome::Wrong(EXPECTED_NAMES);
        }
        self.take_row(line)
    }

    fn places(&self) -> &NameTable {
        &self.places
    }

    fn hosts(&self) -> Option<&NameTable> {
        Some(&self.hosts)
    }

    fn take_samples(&mut self) -> Vec<VariableSample> {
        self.samples.take()
    }

    fn caveats(&self) -> Vec<String> {
        let nameless =
            self.is_nameless.then(|| "its columns have no names: what the values are is not known".into());
        let units = self.columns.iter().any(|column| matches!(column, Column::Variable(v) if v.is_guess));
        let units = units.then(|| {
            "not all columns name their unit: windows are taken for packets, times for ms".to_owned()
        });
        nameless.into_iter().chain(units).chain(self.samples.caveat()).collect()
    }
}

impl TcpVars {
    /// Read the line as columns of ns-3's tracers; false if it does not fit.
    fn take_nameless(&mut self, line: &[u8]) -> bool {
        let columns = columns::nameless(line);
        self.is_nameless = columns.is_some();
        self.columns = columns.unwrap_or_default();
        self.is_nameless
    }

    fn take_row(&mut self, line: &[u8]) -> Outcome {
        let mut row = Row::default();
        let mut count = 0;
        for (column, text) in self.columns.iter().zip(self.separator.split(line)) {
            count += 1;
            match column {
                Column::Time => match number::time_ns(text) {
                    Some(time_ns) => row.time_ns = Some(time_ns),
                    None => return Outcome::Wrong(EXPECTED_TIME),
                },
                Column::Flow => row.flow = Some(text),
                Column::Src => row.src = Some(text),
                Column::Dst => row.dst = Some(text),
                Column::SrcPort => row.ports.0 = port(text),
                Column::DstPort => row.ports.1 = port(text),
                Column::Variable(_) | Column::Other => {}
            }
        }
        let Some(time_ns) = row.time_ns else { return Outcome::Wrong(EXPECTED_TIME) };
        if count < self.columns.len() {
            return Outcome::Wrong(EXPECTED_COLUMNS);
        }
        let endpoints = self.endpoints(&row);
        for (column, text) in self.columns.iter().zip(self.separator.split(line)) {
            if let Column::Variable(variable) = column
                && let Some(value) = number::real(text).and_then(|value| variable.value(value))
            {
                let (name, unit) = (variable.name, variable.unit);
                self.samples.add(VariableSample { endpoints, time_ns, name, unit, value });
            }
        }
        Outcome::Other
    }

    /// The connection of a row's variables.
    fn endpoints(&mut self, row: &Row<'_>) -> Endpoints {
        if let (Some(src), Some(dst)) = (row.src, row.dst) {
            let end = |text, port| address::end_with_port(text).or_else(|| address::end(text, port));
            let ends = end(src, row.ports.0).zip(end(dst, row.ports.1));
            let endpoints = ends.and_then(|(src, dst)| src.sending_to(dst, 6));
            return endpoints.unwrap_or_else(|| {
                let (src, dst) = (self.host(src), self.host(dst));
                Endpoints { src_port: row.ports.0, dst_port: row.ports.1, ..named(src, dst) }
            });
        }
        if let Some(connection) = self.connection {
            return connection;
        }
        let flow = row.flow.unwrap_or_default();
        let known = self.flows.iter().find(|(known, _)| known == flow);
        known.map(|(_, endpoints)| *endpoints).unwrap_or_else(|| self.open_flow(flow))
    }

    /// A connection identified by a number at most.
    #[cold]
    fn open_flow(&mut self, flow: &[u8]) -> Endpoints {
        let name = match flow {
            b"" => UNKNOWN.to_owned(),
            _ => format!("flow {}", String::from_utf8_lossy(flow)),
        };
        let endpoints = named(self.hosts.index(&name), self.hosts.index(UNKNOWN));
        if self.flows.len() < MAX_FLOWS {
            self.flows.push((flow.to_vec(), endpoints));
        }
        endpoints
    }

    fn host(&mut self, name: &[u8]) -> u32 {
        self.hosts.index(&String::from_utf8_lossy(name))
    }
}

/// The fields of a line other than its variables.
#[derive(Default)]
struct Row<'a> {
    time_ns: Option<i64>,
    flow: Option<&'a [u8]>,
    src: Option<&'a [u8]>,
    dst: Option<&'a [u8]>,
    ports: (u16, u16),
}

fn named(src: u32, dst: u32) -> Endpoints {
    let (src, dst) = (Address::from(src), Address::from(dst));
    Endpoints { family: Family::Name, protocol: 6, src, dst, src_port: 0, dst_port: 0 }
}

fn port(text: &[u8]) -> u16 {
    number::decimal(text).and_then(|port| port.try_into().ok()).unwrap_or(0)
}

/// The two ends in a comment such as `10.0.0.1:5000 > 10.0.0.2:80`.
fn connection(comment: &[u8]) -> Option<Endpoints> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'>' | b'=' | b';');
    let mut ends = comment.split(is_between).filter_map(|word| {
        // `10.0.0.1:5000->10.0.0.2:80`
        address::end_with_port(word.strip_suffix(b"-").unwrap_or(word))
    });
    let (src, dst): (HostPort, HostPort) = (ends.next()?, ends.next()?);
    src.sending_to(dst, 6)
}

#[cfg(test)]
mod tests;
