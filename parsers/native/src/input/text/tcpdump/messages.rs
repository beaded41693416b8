//! tcpdump's own messages, where stdout and stderr went to one file.

const BEGIN: [&[u8]; 7] = [
    b"tcpdump: ", b"listening on ", b"reading from file ", b"dropped privs", b"Warning: ", b"Got ",
    b"data link type ",
];
/// Ends of the lines of totals, without a plural's s.
const END: [&[u8]; 5] = [
    b" packet", b" packet captured", b" received by filter", b" dropped by kernel", b" dropped by interface",
];

/// Whether a line is a message.
pub fn is_one(line: &[u8]) -> bool {
    if BEGIN.iter().any(|words| line.starts_with(words)) {
        return true;
    }
    let is_count = line.first().is_some_and(u8::is_ascii_digit);
    is_count
        && (END.iter().any(|words| line.ends_with(words))
            || line.ends_with(b" packets")
            || line.ends_with(b" packets captured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_messages() {
        for line in [
            "tcpdump: verbose output suppressed, use -v[v]... for full protocol decode",
            "listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes",
            "reading from file a.pcap, link-type EN10MB (Ethernet), snapshot length 96",
            "dropped privs to tcpdump",
            "Warning: interface names might be incorrect",
            "0 packets captured",
            "1 packet captured",
            "2 packets received by filter",
            "0 packets dropped by kernel",
            "4 packets",
        ] {
            assert!(is_one(line.as_bytes()), "{line}");
        }
        assert!(!is_one(b"IP 10.0.0.1 > 10.0.0.2: ICMP echo request"));
    }
}
