//! The header of a DNS message (RFC 1035 section 4.1.1).

/// Bytes of the fixed part.
const HEADER: usize = 12;
/// Port of servers.
pub const PORT: u16 = 53;

/// What matches an answer with its query, and whether it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsHeader {
    pub id: u16,
    pub is_answer: bool,
    /// Response code.
    pub code: u8,
}

impl DnsHeader {
    /// The name does not exist: an answer, not a failure.
    const NO_SUCH_NAME: u8 = 3;

    /// The header of a standard query or its answer that begins with `bytes`.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER>()?;
        let flags = u16::from_be_bytes([header[2], header[3]]);
        let opcode = flags >> 11 & 0xf;
        let questions = u16::from_be_bytes([header[4], header[5]]);
        let is_answer = flags & 0x8000 != 0;
        // A server may leave the question out of an answer that reports an error.
        let is_standard = opcode == 0 && (questions == 1 || (is_answer && questions == 0));
        is_standard.then(|| Self {
            id: u16::from_be_bytes([header[0], header[1]]),
            is_answer,
            code: (flags & 0xf) as u8,
        })
    }

    /// Whether the server could not answer.
    pub fn is_failure(self) -> bool {
        self.is_answer && !matches!(self.code, 0 | Self::NO_SUCH_NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_queries_and_answers_are_distinguished() {
        let query = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(DnsHeader::of(&query), Some(DnsHeader { id: 0x1234, is_answer: false, code: 0 }));
        let refused = [0x12, 0x34, 0x81, 0x85, 0, 1, 0, 0, 0, 0, 0, 0];
        assert!(DnsHeader::of(&refused).is_some_and(DnsHeader::is_failure));
        let no_such_name = [0x12, 0x34, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
        assert!(DnsHeader::of(&no_such_name).is_some_and(|header| header.is_answer && !header.is_failure()));
        let update = [0x12, 0x34, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!((DnsHeader::of(&update), DnsHeader::of(&query[..11])), (None, None));
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_a_header_or_not(bytes: Vec<u8>) {
            let _ = DnsHeader::of(&bytes);
        }
    }
}
