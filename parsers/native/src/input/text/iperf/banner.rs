//! The lines before a test, which say which end prints and what is tested.

use crate::input::text::number;

/// Ports that servers listen on if nobody says another: iperf 2's and iperf3's.
pub const DEFAULT_PORTS: [u16; 2] = [5001, 5201];

/// What is known of the tests that follow.
#[derive(Debug, Default)]
pub struct Banner {
    /// Whether they use UDP, as far as this is said.
    pub is_udp: bool,
    listening_port: Option<u16>,
    is_client: bool,
    is_reverse: bool,
}

impl Banner {
    /// Look at a line that is no report.
    pub fn take(&mut self, line: &[u8]) {
        let has = |words: &[u8]| memchr::memmem::find(line, words).is_some();
        let (listens, connects) = (has(b"Server listening on"), has(b"lient connecting to"));
        if listens || connects {
            self.is_udp = has(b"UDP port");
        }
        if listens {
            self.listening_port = last_port(line);
        }
        // iperf3: `Connecting to host 10.0.0.2, port 5201`
        if connects || line.starts_with(b"Connecting to host") {
            self.is_client = true;
            self.is_reverse = false;
        }
        self.is_reverse |= line.starts_with(b"Reverse mode");
    }

    /// Whether the end at `port` that says it is connected in `line` will send.
    pub fn is_sender(&self, port: u16, line: &[u8]) -> Option<bool> {
        let is_reverse = self.is_reverse || memchr::memmem::find(line, b"(reverse)").is_some();
        if self.listening_port == Some(port) {
            return Some(is_reverse);
        }
        self.is_client.then_some(!is_reverse)
    }
}

/// The port in `Server listening on UDP port 5202 with pid 9`, or in iperf3's
/// `Server listening on 5201 (test #1)`.
fn last_port(line: &[u8]) -> Option<u16> {
    let is_end = |byte: &u8| !byte.is_ascii_digit();
    let at = memchr::memmem::find(line, b"listening on")?;
    let rest = line.get(at..)?;
    let start = rest.iter().position(u8::is_ascii_digit)?;
    let digits = rest.get(start..)?;
    let digits = digits.get(..digits.iter().position(is_end).unwrap_or(digits.len()))?;
    u16::try_from(number::decimal(digits)?).ok()
}
