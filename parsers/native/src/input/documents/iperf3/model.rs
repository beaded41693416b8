//! The parts of iperf3's JSON that are used, with bounds applied while reading.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::packet::address;
use crate::packet::address::HostPort;

/// The most streams of one test; iperf3 itself allows 128 in each direction.
const MAX_STREAMS: usize = 1024;

/// What is known before the first interval.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Start {
    #[serde(deserialize_with = "first_streams")]
    pub connected: Vec<ConnectedStream>,
    pub timestamp: Timestamp,
    pub test_start: TestStart,
    /// Written by clients only.
    pub connecting_to: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConnectedStream {
    /// Its number in the intervals.
    pub socket: i64,
    local_host: Host,
    local_port: u16,
    remote_host: Host,
    remote_port: u16,
}

impl ConnectedStream {
    /// The local and the remote end; None if they are not addresses.
    pub fn ends(&self) -> Option<(HostPort, HostPort)> {
        let (local, remote) = (self.local_host.0?, self.remote_host.0?);
        Some((HostPort { port: self.local_port, ..local }, HostPort { port: self.remote_port, ..remote }))
    }
}

#[derive(Debug, Default)]
struct Host(Option<HostPort>);

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HostVisitor;

        impl Visitor<'_> for HostVisitor {
            type Value = Host;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address")
            }

            fn visit_str<E>(self, text: &str) -> Result<Host, E> {
                Ok(Host(address::end(text.as_bytes(), 0)))
            }
        }

        deserializer.deserialize_str(HostVisitor)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Timestamp {
    pub timesecs: i64,
    /// The start in ms, in newer releases.
    pub timemillisecs: Option<i64>,
}

/// The options of the test.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TestStart {
    #[serde(deserialize_with = "protocol")]
    pub protocol: Protocol,
    /// Seconds at the beginning that iperf3 does not count; its clock restarts after them.
    pub omit: f64,
    /// 1 if the server sends.
    pub reverse: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, also if the log names no protocol.
    #[default]
    Tcp,
    Udp,
    /// SCTP, which is not supported.
    Other,
}

fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    struct ProtocolVisitor;

    impl Visitor<'_> for ProtocolVisitor {
        type Value = Protocol;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`TCP` or `UDP`")
        }

        fn visit_str<E>(self, text: &str) -> Result<Protocol, E> {
            Ok(match text {
                "TCP" => Protocol::Tcp,
                "UDP" => Protocol::Udp,
                _ => Protocol::Other,
            })
        }
    }

    deserializer.deserialize_str(ProtocolVisitor)
}

/// One stream's figures for one interval.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamInterval {
    pub socket: i64,
    /// End of the interval in seconds.
    pub end: f64,
    /// Application bytes written or read.
    pub bits_per_second: Option<f64>,
    /// Segments retransmitted in the interval.
    pub retransmits: Option<f64>,
    /// Congestion window in bytes.
    pub snd_cwnd: Option<f64>,
    /// The receiver's window in bytes.
    pub snd_wnd: Option<f64>,
    /// Smoothed, in microseconds.
    pub rtt: Option<f64>,
    /// In microseconds.
    pub rttvar: Option<f64>,
    /// Of RFC 3550.
    pub jitter_ms: Option<f64>,
    pub lost_packets: Option<f64>,
    /// Datagrams sent, as far as this end knows.
    pub packets: Option<f64>,
    /// Whether it lies in the time that iperf3 does not count.
    pub omitted: bool,
    /// Whether the end that writes the log sends; releases before 3.7 omit it.
    pub sender: Option<bool>,
}

/// The streams, up to a bound.
fn first_streams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ConnectedStream>, D::Error> {
    struct ListVisitor;

    impl<'de> Visitor<'de> for ListVisitor {
        type Value = Vec<ConnectedStream>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of streams")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut kept = Vec::new();
            while kept.len() < MAX_STREAMS {
                match list.next_element()? {
                    Some(element) => kept.push(element),
                    None => return Ok(kept),
                }
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(kept)
        }
    }

    deserializer.deserialize_seq(ListVisitor)
}
