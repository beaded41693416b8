//! Records of M-Lab's `tcp-info`: a JSON object in each line, with a time and what the kernel's `sock_diag` answered
//! of a socket in base64.

use std::borrow::Cow;

use serde::Deserialize;

use super::{LineFormat, NameTable, Outcome, date};
use crate::packet::address::HostPort;
use crate::packet::event::{Endpoints, Family, Packet};
use crate::packet::key::TCP;
use crate::packet::logged_variables::{SampleList, Unit, VariableSample};

const EXPECTED: &str = "expected a record of `tcp-info`";
/// Which attribute is `struct tcp_info`: INET_DIAG_INFO.
const INFO: usize = 2;
/// A threshold that no loss has set yet.
const NO_THRESHOLD: f64 = 2_147_483_647.0;

/// Place in `struct tcp_info` (include/uapi/linux/tcp.h), bytes, name here, unit, and factor.
const VARIABLES: [(usize, usize, &str, Unit, f64); 16] = [
    (8, 4, "rto", Unit::Ms, 1e-3),
    (16, 4, "mss", Unit::Bytes, 1.0),
    (24, 4, "unacked", Unit::Packets, 1.0),
    (68, 4, "srtt", Unit::Ms, 1e-3),
    (72, 4, "rttvar", Unit::Ms, 1e-3),
    (76, 4, "ssthresh", Unit::Packets, 1.0),
    (80, 4, "cwnd", Unit::Packets, 1.0),
    (100, 4, "retransmits", Unit::Packets, 1.0),
    (104, 8, "pacing_rate", Unit::Bps, 8.0),
    (120, 8, "bytes_acked", Unit::Bytes, 1.0),
    (144, 4, "notsent", Unit::Bytes, 1.0),
    (148, 4, "minrtt", Unit::Ms, 1e-3),
    (160, 8, "delivery_rate", Unit::Bps, 8.0),
    (200, 8, "bytes_sent", Unit::Bytes, 1.0),
    (208, 8, "bytes_retrans", Unit::Bytes, 1.0),
    (228, 4, "snd_wnd", Unit::Bytes, 1.0),
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default, rename = "RawIDM")]
    socket: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    attributes: Vec<Option<Cow<'a, str>>>,
}

/// Whether a line looks like a record.
pub fn recognises(line: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    line.starts_with(b"{\"Timestamp\":") && (has(b"\"RawIDM\":") || has(b"\"Metadata\":"))
}

/// Reader of the log.
#[derive(Default)]
pub struct TcpInfo {
    samples: SampleList,
    places: NameTable,
}

impl LineFormat for TcpInfo {
    fn read(&mut self, _number: u64, line: &[u8], _packet: &mut Packet) -> Outcome {
        let Ok(record) = serde_json::from_slice::<Record<'_>>(line) else { return Outcome::Wrong(EXPECTED) };
        // The first record only names the connection.
        let Some(socket) = &record.socket else { return Outcome::Other };
        let ends = decoded(socket).and_then(|socket| ends_of(&socket));
        let Some((endpoints, time_ns)) = ends.zip(date::iso_ns(record.timestamp.as_bytes())) else {
            return Outcome::Wrong(EXPECTED);
        };
        let Some(Some(info)) = record.attributes.get(INFO) else { return Outcome::Other };
        let Some(info) = decoded(info) else { return Outcome::Wrong(EXPECTED) };
        for (at, bytes, name, unit, factor) in VARIABLES {
            if let Some(value) = number(&info, at, bytes)
                && !(name == "ssthresh" && value >= NO_THRESHOLD)
            {
                self.samples.add(VariableSample { endpoints, time_ns, name, unit, value: value * factor });
            }
        }
        Outcome::Other
    }

    fn places(&self) -> &NameTable {
        &self.places
    }

    fn take_samples(&mut self) -> Vec<VariableSample> {
        self.samples.take()
    }

    fn caveats(&self) -> Vec<String> {
        self.samples.caveat().into_iter().collect()
    }
}

/// The direction in which a socket sends, of `struct inet_diag_msg`.
fn ends_of(message: &[u8]) -> Option<Endpoints> {
    /// A socket of IPv6.
    const AF_INET6: u8 = 10;
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..)?.first_chunk().copied()?));
    let end = |at: usize, port: u16| {
        let bytes: [u8; 16] = message.get(at..)?.first_chunk().copied()?;
        let address = std::net::Ipv6Addr::from(bytes);
        let v4 = match message.first() {
            Some(&AF_INET6) => address.to_ipv4_mapped().map(std::net::Ipv4Addr::to_bits),
            _ => bytes.first_chunk().copied().map(u32::from_be_bytes),
        };
        Some(match v4 {
            Some(address) => HostPort { family: Family::V4, address: address.into(), port },
            None => HostPort { family: Family::V6, address: address.to_bits(), port },
        })
    };
    end(8, port(4)?)?.sending_to(end(24, port(6)?)?, TCP)
}

/// An integer in the order of bytes of the machines that write such records; None if it has all bits set, as what is
/// unknown or without limit has, or after the end, in an older kernel.
fn number(info: &[u8], at: usize, bytes: usize) -> Option<f64> {
    let bytes = info.get(at..at + bytes)?;
    let is_unknown = bytes.iter().all(|byte| *byte == u8::MAX);
    let value = bytes.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    (!is_unknown).then_some(value as f64)
}

/// Bytes of base64 (RFC 4648 section 4).
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_base64_of_the_rfc() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")]
        {
            assert_eq!(decoded(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decoded("Zm9v!"), None);
    }

    #[test]
    fn test_records_that_lie_are_wrong_or_without_samples() {
        let mut log = TcpInfo::default();
        let mut read = |line: &str| log.read(1, line.as_bytes(), &mut Packet::default());
        let time = r#"{"Timestamp":"2026-11-23T15:00:00.125Z""#;
        assert_eq!(read(&format!(r#"{time},"Metadata":{{"UUID":"x"}}}}"#)), Outcome::Other);
        for rest in
            [r#""RawIDM":"AgEA""#, r#""RawIDM":7"#, r#""RawIDM":"?""#, r#""RawIDM":"","Attributes":["" ]"#]
        {
            assert_eq!(read(&format!("{time},{rest}}}")), Outcome::Wrong(EXPECTED), "{rest}");
        }
        assert!(log.take_samples().is_empty());
    }
}
