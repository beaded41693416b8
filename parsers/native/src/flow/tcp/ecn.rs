//! Explicit congestion notification (RFC 3168): marks, their echoes, and what both SYNs negotiate
//! (RFC 9768 section 3.1).

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::Segment;
use crate::packet::event::TcpFlags;

/// Codepoints of the IP header.
pub const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
/// "Congestion experienced".
pub const CE: u8 = 3;

/// Congestion marks in one side's packets.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Ecn {
    pub ect0_packets: u32,
    pub ect1_packets: u32,
    /// Packets marked on the path.
    pub ce_packets: u32,
    /// Packets that echo a mark.
    pub ece_packets: u32,
    /// Packets that report a reduced window.
    pub cwr_packets: u32,
    /// Whether a packet other than a SYN has AE, so that the three flags are a counter.
    pub has_ae: bool,
}

impl Ecn {
    /// Whether a packet carries any ECN information.
    #[inline(always)]
    pub fn concerns(segment: &Segment<'_>) -> bool {
        segment.ip.ecn != 0 || ace(segment.tcp.flags) != 0
    }

    /// Count a packet. On SYN the flags only negotiate (RFC 3168 section 6.1.1).
    pub fn note(&mut self, segment: &Segment<'_>) {
        let flags = segment.tcp.flags;
        let is_open = !flags.has(TcpFlags::SYN);
        self.note_codepoint(segment.ip.ecn);
        for (count, is_one) in [
            (&mut self.ece_packets, is_open && flags.has(TcpFlags::ECE)),
            (&mut self.cwr_packets, is_open && flags.has(TcpFlags::CWR)),
        ] {
            *count = count.saturating_add(u32::from(is_one));
        }
        self.has_ae |= is_open && flags.has(TcpFlags::AE);
    }

    /// Count the codepoint of a packet.
    pub fn note_codepoint(&mut self, codepoint: u8) {
        let count = match codepoint {
            ECT_0 => &mut self.ect0_packets,
            ECT_1 => &mut self.ect1_packets,
            CE => &mut self.ce_packets,
            _ => return,
        };
        *count = count.saturating_add(1);
    }

    /// Count the mark of a packet that was counted where it left without one.
    pub fn note_mark_on_way(&mut self) {
        let sent = if self.ect0_packets > 0 { &mut self.ect0_packets } else { &mut self.ect1_packets };
        *sent = sent.saturating_sub(1);
        self.note_codepoint(CE);
    }

    /// Packets of an ECN-capable transport, including marked ones.
    pub fn ect_packets(&self) -> u64 {
        [self.ect0_packets, self.ect1_packets, self.ce_packets].map(u64::from).iter().sum()
    }
}

/// Congestion marks in a round of one side's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundMarks {
    /// Its packets of an ECN-capable transport, including marked ones.
    pub ect_packets: u32,
    pub ect1_packets: u32,
    pub ce_packets: u32,
    /// Packets of the other side with ECE.
    pub ece_packets: u32,
    /// Marked packets that the other side reported in it; None without accurate ECN.
    pub reported_ce_packets: Option<u32>,
}

impl RoundMarks {
    /// What was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let reported_before = before.reported_ce_packets.unwrap_or(0);
        // Later byte counters may settle on fewer packets than were likely before.
        let since = |reported: u32| reported.saturating_sub(reported_before);
        Self {
            ect_packets: self.ect_packets - before.ect_packets,
            ect1_packets: self.ect1_packets.saturating_sub(before.ect1_packets),
            ce_packets: self.ce_packets - before.ce_packets,
            ece_packets: self.ece_packets.saturating_sub(before.ece_packets),
            reported_ce_packets: self.reported_ce_packets.map(since),
        }
    }

    /// Count up to `all`, and return what was counted since the last time.
    pub fn advance(&mut self, all: Self) -> Self {
        let marks = all.since(self);
        // Where a count was not known for some time, the next known one is of all that time.
        let reported_ce_packets = all.reported_ce_packets.or(self.reported_ce_packets);
        *self = Self { reported_ce_packets, ..all };
        marks
    }
}

impl AddAssign for RoundMarks {
    fn add_assign(&mut self, more: Self) {
        self.ect_packets += more.ect_packets;
        self.ect1_packets += more.ect1_packets;
        self.ce_packets += more.ce_packets;
        self.ece_packets += more.ece_packets;
        if let Some(reported) = more.reported_ce_packets {
            *self.reported_ce_packets.get_or_insert_default() += reported;
        }
    }
}

/// AE, CWR and ECE as one number (RFC 9768 section 3.2.2).
#[inline(always)]
pub fn ace(flags: TcpFlags) -> u8 {
    ((flags.0 / TcpFlags::ECE) & 0b111) as u8
}

/// How congestion marks are fed back on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// One side does not support ECN.
    Off,
    /// By the flags ECE and CWR.
    Rfc3168,
    /// By counters (RFC 9768).
    Accurate,
}

impl EcnMode {
    pub const ALL: [Self; 3] = [Self::Off, Self::Rfc3168, Self::Accurate];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "none",
            Self::Rfc3168 => "rfc3168",
            Self::Accurate => "accurate",
        }
    }
}

/// Bit beside AE, CWR and ECE: the SYN was seen.
const SEEN: u8 = 0b1000;
/// Flags of a SYN/ACK with the nonce of RFC 3540, reserved in RFC 9768.
const NONCE: u8 = 0b101;

/// AE, CWR and ECE of both SYNs, in three bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct EcnNegotiation {
    /// Of SYNs without ACK, which fall back to 0 when the server does not answer.
    syn: u8,
    /// Of the first SYN/ACK.
    syn_ack: u8,
    /// Whether SYN/ACKs announce different modes, so that the capture does not show which one arrived, or a server's
    /// segments another mode than its SYN/ACK.
    is_contradictory: bool,
    /// Whether a segment of the server followed its SYN/ACK.
    is_confirmed: bool,
}

impl EcnNegotiation {
    pub fn on_syn(&mut self, flags: TcpFlags) {
        let ace = ace(flags);
        if !flags.has(TcpFlags::ACK) {
            self.syn |= SEEN | ace;
            return;
        }
        if self.syn_ack == 0 {
            self.syn_ack = SEEN | ace;
        }
        self.is_contradictory |= mode_of_syn_ack(self.syn_ack & !SEEN) != mode_of_syn_ack(ace);
    }

    /// Whether the flags of a server's first segment after SYN and SYN/ACK show that it does not count, although
    /// it answered with the reserved bits that enable accurate ECN (section 3.1.3): a counter begins at 5 (section
    /// 3.2.1), while a server with the nonce of RFC 3540, which answers so, sets AE alone or nothing.
    pub fn is_refuted_by(&mut self, ace: u8) -> bool {
        let is_first = !std::mem::replace(&mut self.is_confirmed, true);
        let is_refuted = is_first && self.syn_ack == SEEN | NONCE && ace & 0b011 == 0;
        self.is_contradictory |= is_refuted;
        is_refuted
    }

    /// The mode of both sides (RFC 9768 table 2); None if a SYN that decides was not seen.
    pub fn mode(&self) -> Option<EcnMode> {
        let seen = |flags: u8| (flags & SEEN != 0).then_some(flags & !SEEN);
        let syn = seen(self.syn);
        if syn == Some(0) {
            return Some(EcnMode::Off);
        }
        let answer = seen(self.syn_ack).filter(|_| !self.is_contradictory)?;
        match (syn, mode_of_syn_ack(answer)) {
            (Some(0b111), mode) => Some(mode),
            // The nonce is no part of this negotiation (RFC 3168 section 6.1.1).
            (Some(0b011), _) if answer == NONCE => Some(EcnMode::Rfc3168),
            // Some servers return the flags of the SYN, which do not support ECN.
            (Some(0b011), mode) => Some(if mode == EcnMode::Rfc3168 { mode } else { EcnMode::Off }),
            (_, EcnMode::Off) => Some(EcnMode::Off),
            // Without the SYN: 3 may be a returned one of RFC 3168, 5 a nonce (RFC 3540).
            (None, mode) => Some(mode).filter(|_| !matches!(answer, 0b011 | NONCE)),
            (Some(_), _) => None,
        }
    }
}

/// The mode that a SYN/ACK announces in answer to a SYN that asks for accurate ECN.
fn mode_of_syn_ack(ace: u8) -> EcnMode {
    match ace {
        0b000 | 0b111 => EcnMode::Off,
        0b001 => EcnMode::Rfc3168,
        _ => EcnMode::Accurate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(syn: Option<u16>, syn_acks: &[u16]) -> Option<EcnMode> {
        let mut negotiation = EcnNegotiation::default();
        let flags = |ace: u16, others: u16| TcpFlags((ace * TcpFlags::ECE) | others);
        if let Some(syn) = syn {
            negotiation.on_syn(flags(syn, TcpFlags::SYN));
        }
        for &syn_ack in syn_acks {
            negotiation.on_syn(flags(syn_ack, TcpFlags::SYN | TcpFlags::ACK));
        }
        negotiation.mode()
    }

    #[test]
    fn test_the_mode_is_that_of_rfc_9768_table_2() {
        use EcnMode::{Accurate, Off, Rfc3168};
        for (syn, syn_ack, expected) in [
            (7, 0b010, Accurate),
            (7, 0b011, Accurate),
            (7, 0b100, Accurate),
            (7, 0b110, Accurate),
            // Section 3.1.3: reserved, and enables it.
            (7, 0b101, Accurate),
            (7, 0b001, Rfc3168),
            (7, 0b000, Off),
            (7, 0b111, Off),
            (3, 0b001, Rfc3168),
            (3, 0b000, Off),
            (3, 0b011, Off),
            (3, 0b101, Rfc3168),
            (0, 0b000, Off),
        ] {
            assert_eq!(mode(Some(syn), &[syn_ack]), Some(expected), "{syn:03b} {syn_ack:03b}");
        }
    }

    #[test]
    fn test_a_server_with_the_nonce_does_not_count() {
        for (first_answer, expected) in [(0b000, None), (0b100, None), (0b101, Some(EcnMode::Accurate))] {
            let mut negotiation = EcnNegotiation::default();
            negotiation.on_syn(TcpFlags((7 * TcpFlags::ECE) | TcpFlags::SYN));
            negotiation.on_syn(TcpFlags((5 * TcpFlags::ECE) | TcpFlags::SYN | TcpFlags::ACK));
            assert_eq!(negotiation.is_refuted_by(first_answer), expected.is_none());
            // A counter may come to these values later.
            assert!(!negotiation.is_refuted_by(0));
            assert_eq!(negotiation.mode(), expected);
        }
    }

    #[test]
    fn test_without_a_syn_the_other_side_shows_ecn() {
        for (syn_ack, expected) in [
            (0b000, Some(EcnMode::Off)),
            (0b001, Some(EcnMode::Rfc3168)),
            (0b010, Some(EcnMode::Accurate)),
            (0b011, None),
            (0b101, None),
        ] {
            assert_eq!(mode(None, &[syn_ack]), expected, "{syn_ack:03b}");
        }
        assert_eq!(mode(Some(0), &[]), Some(EcnMode::Off));
        assert_eq!((mode(Some(3), &[]), mode(Some(7), &[]), mode(None, &[])), (None, None, None));
    }

    #[test]
    fn test_syn_acks_may_differ_in_the_mark_but_not_in_the_mode() {
        assert_eq!(mode(Some(7), &[0b010, 0b110]), Some(EcnMode::Accurate));
        assert_eq!(mode(Some(7), &[0b010, 0b000]), None);
    }
}
