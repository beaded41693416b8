//! The lines before a test, which name the end that prints and the protocol.

use crate::input::text::number;

/// Default ports of servers: iperf 2's and iperf3's.
pub const DEFAULT_PORTS: [u16; 2] = [5001, 5201];

#[derive(Debug, Default)]
pub struct Banner {
    /// Whether they use UDP; false until a line names the protocol.
    pub is_udp: bool,
    listening_port: Option<u16>,
    is_client: bool,
    is_reverse: bool,
}

impl Banner {
    /// Read a line that is no report.
    pub fn on_line(&mut self, line: &[u8]) {
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

    /// Whether this end, at `port`, sends on the connection that `line` announces.
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
