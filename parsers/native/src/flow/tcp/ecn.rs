//! Explicit congestion notification (RFC 3168).

use super::Segment;
use crate::packet::event::TcpFlags;

/// "Congestion experienced" in the IP header.
const CE: u8 = 3;

/// Congestion marks in one side's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecn {
    /// Packets of an ECN-capable transport, including marked ones.
    pub ect_packets: u32,
    /// Packets marked on the path.
    pub ce_packets: u32,
    /// Packets that echo a mark.
    pub ece_packets: u32,
    /// Packets that report a reduced window.
    pub cwr_packets: u32,
}

impl Ecn {
    /// Whether a packet carries any ECN information.
    #[inline(always)]
    pub fn concerns(segment: &Segment<'_>) -> bool {
        segment.ip.ecn != 0 || segment.tcp.flags.has(TcpFlags::ECE | TcpFlags::CWR)
    }

    /// Count a packet. On SYN the flags only negotiate (section 6.1.1).
    pub fn note(&mut self, segment: &Segment<'_>) {
        let flags = segment.tcp.flags;
        let is_open = !flags.has(TcpFlags::SYN);
        for (count, is_one) in [
            (&mut self.ect_packets, segment.ip.ecn != 0),
            (&mut self.ce_packets, segment.ip.ecn == CE),
            (&mut self.ece_packets, is_open && flags.has(TcpFlags::ECE)),
            (&mut self.cwr_packets, is_open && flags.has(TcpFlags::CWR)),
        ] {
            *count = count.saturating_add(u32::from(is_one));
        }
    }
}
