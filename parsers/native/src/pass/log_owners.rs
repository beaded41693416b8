//! Logs of variables that do not say whose they are: a user names the connection, and the name of a
//! file such as `tcp_7_1130000000.txt` (libnetmeas: connection and Unix time) says when it begins.

use crate::packet::event::{Endpoints, Family};
use crate::packet::logged_variables::VariableSample;

/// Unix times are later than this, times since the start of a log earlier (1973).
const UNIX_TIMES_FROM_NS: i64 = 100_000_000 * NS;
const NS: i64 = 1_000_000_000;

/// The connection of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOwner {
    /// The log as the user named it, or the end of its path.
    pub source: String,
    pub endpoints: Endpoints,
}

impl LogOwner {
    fn owns(&self, source: &str) -> bool {
        source.strip_suffix(self.source.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    }
}

/// What is known of the samples of one source beside their content.
pub struct LogFacts {
    endpoints: Option<Endpoints>,
    begin_ns: i64,
}

impl LogFacts {
    pub fn of(source: &str, owners: &[LogOwner]) -> Self {
        let owner = owners.iter().find(|owner| owner.owns(source));
        Self { endpoints: owner.map(|owner| owner.endpoints), begin_ns: begin_ns(source).unwrap_or(0) }
    }

    /// The sample, with the connection and the time that its log does not have.
    pub fn complete(&self, mut sample: VariableSample) -> VariableSample {
        if sample.endpoints.family == Family::Name {
            if let Some(endpoints) = self.endpoints {
                sample.endpoints = Endpoints { protocol: sample.endpoints.protocol, ..endpoints };
            }
            if (0..UNIX_TIMES_FROM_NS).contains(&sample.time_ns) {
                sample.time_ns = sample.time_ns.saturating_add(self.begin_ns);
            }
        }
        sample
    }
}

/// The time in the name of a file `tcp_<connection>_<seconds>.txt`, compressed or not.
fn begin_ns(source: &str) -> Option<i64> {
    let name = source.rsplit('/').next()?.strip_prefix("tcp_")?;
    let (connection, rest) = name.split_once('_')?;
    let (seconds, _) = rest.split_once(".txt")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(connection) || !is_number(seconds) {
        return None;
    }
    seconds.parse::<i64>().ok()?.checked_mul(NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::logged_variables::Unit;

    #[test]
    fn test_the_name_of_a_log_says_when_it_begins() {
        assert_eq!(begin_ns("logs/tcp_7_1130000000.txt"), Some(1_130_000_000 * NS));
        assert_eq!(begin_ns("tcp_7_1130000000.txt.gz"), Some(1_130_000_000 * NS));
        for other in [
            "tcp_7.txt",
            "tcp_a_1130000000.txt",
            "tcp_7_.txt",
            "udp_7_1.txt",
            "tcp_7_99999999999999999999.txt",
        ] {
            assert_eq!(begin_ns(other), None, "{other}");
        }
    }

    #[test]
    fn test_a_log_that_names_its_connection_keeps_it() {
        let named = |family| Endpoints { family, protocol: 6, src: 1, dst: 2, src_port: 0, dst_port: 0 };
        let owner = Endpoints { src_port: 5000, dst_port: 80, ..named(Family::V4) };
        let owners = [LogOwner { source: "tcp_7_1130000000.txt".into(), endpoints: owner }];
        let sample = |family, time_ns| VariableSample {
            endpoints: named(family),
            time_ns,
            name: "cwnd",
            unit: Unit::Bytes,
            value: 1.0,
        };
        let facts = LogFacts::of("logs/tcp_7_1130000000.txt", &owners);
        let completed = facts.complete(sample(Family::Name, 5));
        assert_eq!((completed.endpoints, completed.time_ns), (owner, 1_130_000_000 * NS + 5));
        let unix = 1_130_000_001 * NS;
        assert_eq!(facts.complete(sample(Family::Name, unix)).time_ns, unix);
        assert_eq!(facts.complete(sample(Family::V4, 5)), sample(Family::V4, 5));
        let latest = LogFacts::of("tcp_7_9223372036.txt", &[]).complete(sample(Family::Name, NS));
        assert_eq!(latest.time_ns, i64::MAX);
        let other = LogFacts::of("logs/mytcp_7_1130000000.txt", &owners);
        assert_eq!(other.complete(sample(Family::Name, 5)), sample(Family::Name, 5));
    }
}
