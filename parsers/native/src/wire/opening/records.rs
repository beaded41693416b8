//! The ClientHello in the first records of TLS over TCP (RFC 8446 section 5.1): it may fill several.

use super::Reading;
use super::client_hello::{client_hello, length};
use super::first_bytes::MOST_BYTES;
use crate::packet::opening::ClientHello;

/// The content type of records with messages of the handshake.
pub const HANDSHAKE: u8 = 22;
/// All versions have it, from SSL 3.0 on.
const MAJOR: u8 = 3;
/// That of TLS 1.3; its records say an older one.
const LAST_MINOR: u8 = 4;
const RECORD_HEADER: usize = 5;
/// Most bytes of a record's plaintext.
const MOST_FRAGMENT: usize = 1 << 14;

/// The message that begins `stream`.
pub fn first_message(stream: &[u8]) -> Reading<ClientHello> {
    let mut message = Vec::new();
    let mut rest = stream;
    loop {
        if !is_header(rest) {
            return if message.is_empty() { Reading::OtherProtocol } else { Reading::Damaged };
        }
        let Some((&[_, _, _, high, low], after)) = rest.split_first_chunk::<RECORD_HEADER>() else {
            return Reading::Part { is_certain: !message.is_empty() };
        };
        let fragment = usize::from(u16::from_be_bytes([high, low]));
        if fragment == 0 || fragment > MOST_FRAGMENT {
            return if message.is_empty() { Reading::OtherProtocol } else { Reading::Damaged };
        }
        let known = after.get(..fragment).unwrap_or(after);
        message.extend_from_slice(known);
        match length(&message) {
            Err(_) => return Reading::OtherProtocol,
            Ok(Some(length)) if length > MOST_BYTES => return Reading::Damaged,
            Ok(Some(length)) => {
                if let Some(whole) = message.get(..length) {
                    return client_hello(whole).map_or(Reading::Damaged, Reading::Whole);
                }
            }
            Ok(None) => {}
        }
        if known.len() < fragment {
            return Reading::Part { is_certain: !message.is_empty() };
        }
        rest = &after[fragment..];
    }
}

/// Whether a record of the handshake may begin with these bytes.
fn is_header(bytes: &[u8]) -> bool {
    let (kind, major, minor) = (bytes.first(), bytes.get(1), bytes.get(2));
    kind.is_none_or(|kind| *kind == HANDSHAKE)
        && major.is_none_or(|major| *major == MAJOR)
        && minor.is_none_or(|minor| *minor <= LAST_MINOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::opening::tests::{hello, in_records};
    use proptest::prelude::*;

    #[test]
    fn test_a_message_is_read_from_records_of_any_size() {
        let whole = Reading::Whole(client_hello(&hello()).unwrap());
        for size in 1..=hello().len() {
            assert_eq!(first_message(&in_records(&hello(), size)), whole);
        }
    }

    #[test]
    fn test_what_is_cut_damaged_or_of_another_protocol_is_told_apart() {
        let stream = in_records(&hello(), 40);
        for length in 1..stream.len() {
            assert_eq!(
                first_message(&stream[..length]),
                Reading::Part { is_certain: length > RECORD_HEADER }
            );
        }
        // A server's message, application data, an empty record, and one longer than any.
        for other in
            [&[22, 3, 3, 0, 4, 2, 0, 0, 0][..], &[23, 3, 3, 0, 1, 0], &[22, 3, 1, 0, 0], &[22, 3, 1, 64, 1]]
        {
            assert_eq!(first_message(other), Reading::OtherProtocol);
        }
        let alert = [&stream[..RECORD_HEADER + 40], &[21, 3, 3, 0, 2, 2, 40]].concat();
        assert_eq!(first_message(&alert), Reading::Damaged);
        assert_eq!(first_message(&[22, 3, 1, 1, 0, 1, 1, 0, 0]), Reading::Damaged);
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            first_message(&[&[22, 3, 1][..], &bytes].concat());
        }
    }
}
