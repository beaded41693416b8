//! Parses addresses as programs log them.

use std::net::IpAddr;

use crate::packet::event::{Address, Endpoints, Family};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostPort {
    pub family: Family,
    pub address: Address,
    /// The port; 0 if unknown.
    pub port: u16,
}

impl HostPort {
    /// The five-tuple of packets from this end to `peer`; None for different families.
    pub fn sending_to(self, peer: Self, protocol: u8) -> Option<Endpoints> {
        (self.family == peer.family).then_some(Endpoints {
            family: self.family,
            protocol,
            src: self.address,
            dst: peer.address,
            src_port: self.port,
            dst_port: peer.port,
        })
    }
}

/// An address without port: `10.0.0.1`, `fe80::1%eth0`, `[::1]`. An IPv4 address that a socket of
/// both families shows as `::ffff:10.0.0.1` is the IPv4 address that its packets carry.
pub fn end(text: &[u8], port: u16) -> Option<HostPort> {
    let text = std::str::from_utf8(text).ok()?;
    let (text, _scope) = text.split_once('%').unwrap_or((text, ""));
    let bare = text.strip_prefix('[').map_or(text, |text| text.strip_suffix(']').unwrap_or(text));
    Some(match bare.parse::<IpAddr>().ok()?.to_canonical() {
        IpAddr::V4(address) => HostPort { family: Family::V4, address: address.to_bits().into(), port },
        IpAddr::V6(address) => HostPort { family: Family::V6, address: address.to_bits(), port },
    })
}

/// An address with its port after the last colon: `10.0.0.1:80`, `[::1]:22`, `[fe80::1]%eth0:22`.
pub fn end_with_port(text: &[u8]) -> Option<HostPort> {
    let colon = memchr::memrchr(b':', text)?;
    let port = std::str::from_utf8(text.get(colon + 1..)?).ok()?;
    // `parse` alone would also take `+80`.
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    end(text.get(..colon)?, port.parse().ok().filter(|_| is_number)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_addresses_of_every_notation() {
        let v4 = |port| Some(HostPort { family: Family::V4, address: 0x0a00_0001, port });
        assert_eq!(end_with_port(b"10.0.0.1:80"), v4(80));
        assert_eq!(end_with_port(b"10.0.0.1%lo:80"), v4(80));
        assert_eq!(end_with_port(b"[::ffff:10.0.0.1]:80"), v4(80));
        assert_eq!(end(b"10.0.0.1%s0", 5), v4(5));
        let v6 = Some(HostPort { family: Family::V6, address: 0xfe80 << 112 | 1, port: 22 });
        assert_eq!(end_with_port(b"[fe80::1]:22"), v6);
        assert_eq!(end_with_port(b"[fe80::1]%eth0:22"), v6);
        assert_eq!(end_with_port(b"fe80::1%eth0:22"), v6);
    }

    #[test]
    fn test_what_is_no_address_with_a_port() {
        for text in ["", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:*", "10.0.0.1:+1", "10.0.0.1:65536", "*:22"]
        {
            assert_eq!(end_with_port(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn test_what_the_standard_library_prints_is_read(address: u32, port: u16) {
            let text = format!("{}:{port}", std::net::Ipv4Addr::from_bits(address));
            let expected = HostPort { family: Family::V4, address: address.into(), port };
            prop_assert_eq!(end_with_port(text.as_bytes()), Some(expected));
        }

        #[test]
        fn test_any_bytes_are_an_address_or_not(bytes: Vec<u8>) {
            let _ = (end(&bytes, 0), end_with_port(&bytes));
        }
    }
}
