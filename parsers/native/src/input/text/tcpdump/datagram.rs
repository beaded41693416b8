//! The text after the addresses of packets without a TCP header.

use super::scan::{number_after, number_behind, split_at_words, trim_start};

const UDP: u8 = 17;

/// Protocols by the first word that tcpdump prints for them.
const PROTOCOLS: [(&[u8], u8); 22] = [
    (b"ICMP6", 58),
    (b"icmp6", 58),
    (b"ICMP", 1),
    (b"icmp", 1),
    (b"HBH ICMP6", 58),
    (b"[icmp6 sum ok] ICMP6", 58),
    (b"igmp", 2),
    (b"tcp", 6),
    (b"udp", UDP),
    (b"UDP", UDP),
    (b"sctp", 132),
    (b"DCCP", 33),
    (b"dccp", 33),
    (b"GRE", 47),
    (b"gre", 47),
    (b"ESP", 50),
    (b"AH", 51),
    (b"OSPF", 89),
    (b"PIM", 103),
    (b"VRRP", 112),
    (b"RSVP", 46),
    (b"IP ", 4),
];

/// The protocol of `text`. With ports it is UDP unless another is named: tcpdump prints a known
/// application's protocol instead of the transport's.
pub fn protocol(text: &[u8], has_ports: bool) -> u8 {
    let text = trim_start(text);
    if let Some((number, _)) = number_after(text, b"ip-proto-") {
        return u8::try_from(number).unwrap_or(0);
    }
    let known = PROTOCOLS.iter().find(|(word, _)| text.starts_with(word)).map(|(_, protocol)| *protocol);
    match known {
        Some(protocol) if !has_ports || matches!(protocol, 33 | 132) => protocol,
        _ if has_ports => UDP,
        _ => 0,
    }
}

/// Bytes of UDP payload, if printed.
#[inline]
pub fn udp_payload(text: &[u8]) -> Option<u32> {
    if let Some((payload, _)) = number_after(text, b"UDP, length ") {
        return Some(payload);
    }
    other_payload(text)
}

/// `[udp sum ok] UDP, length 5`; versions 3 `udp 5`; DNS `... (33)`; others `NTPv4, Client, length
/// 48`.
#[inline(never)]
fn other_payload(text: &[u8]) -> Option<u32> {
    if let Some((_, after)) = split_at_words(text, b"UDP, length") {
        let number = after.strip_prefix(b":").unwrap_or(after);
        return number_after(number, b" ").map(|(payload, _)| payload);
    }
    if let Some((payload, _)) = number_after(text, b"udp ") {
        return Some(payload);
    }
    let last_bracket = || {
        let inside = text.strip_suffix(b")")?;
        let open = memchr::memrchr(b'(', inside)?;
        match number_after(inside.get(open + 1..)?, b"") {
            Some((payload, b"")) => Some(payload),
            _ => None,
        }
    };
    number_behind(text, b", length ").or_else(|| number_behind(text, b", length: ")).or_else(last_bracket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_payload_of_datagrams() {
        for (text, payload) in [
            ("UDP, length 1200", Some(1200)),
            ("UDP, length: 1200", Some(1200)),
            ("[udp sum ok] UDP, length 1200", Some(1200)),
            ("[bad udp cksum 0x4b5b -> 0x1d2c!] UDP, length 5", Some(5)),
            ("udp 1472 (DF)", Some(1472)),
            ("12345+ A? www.example.com. (33)", Some(33)),
            ("NTPv4, Client, length 48", Some(48)),
            ("BOOTP/DHCP, Request from 00:11:22:33:44:55, length 300", Some(300)),
            (" [|udp]", None),
            ("", None),
        ] {
            assert_eq!(udp_payload(text.as_bytes()), payload, "{text}");
        }
    }

    #[test]
    fn test_protocols() {
        assert_eq!(protocol(b"ICMP echo request, id 1, seq 1, length 64", false), 1);
        assert_eq!(protocol(b"HBH ICMP6, multicast listener report v2", false), 58);
        assert_eq!(protocol(b"ICMP6, neighbor solicitation", false), 58);
        assert_eq!(protocol(b" ip-proto-17", false), UDP);
        assert_eq!(protocol(b"UDP, length 5", true), UDP);
        assert_eq!(protocol(b"12345+ A? www.example.com. (33)", true), UDP);
        assert_eq!(protocol(b"sctp (1) [INIT]", true), 132);
        assert_eq!(protocol(b"something", false), 0);
    }
}
