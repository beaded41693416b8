//! Classic pcap files (draft-ietf-opsawg-pcap), little-endian.

use crate::input::capture::{Interface, MAX_RECORD};
use crate::packet::link_type::LinkType;
use crate::packet::record::Record;

/// What the header of a file says of all its packets.
#[derive(Clone, Copy, Debug)]
pub struct PcapFile {
    link_type: LinkType,
    snap_length: u32,
    has_microseconds: bool,
}

impl PcapFile {
    /// A file for packets of these interfaces.
    pub fn of(interfaces: &[Interface]) -> Self {
        let longest = interfaces.iter().map(|interface| interface.snap_length).max();
        Self {
            link_type: interfaces.first().map_or(LinkType::Ethernet, |interface| interface.link_type),
            snap_length: longest
                .filter(|_| interfaces.iter().all(|one| one.snap_length > 0))
                .unwrap_or(MAX_RECORD),
            has_microseconds: interfaces.iter().all(Interface::has_microseconds),
        }
    }

    pub fn header(&self) -> Vec<u8> {
        let magic: u32 = if self.has_microseconds { 0xa1b2_c3d4 } else { 0xa1b2_3c4d };
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(self.snap_length.to_le_bytes());
        bytes.extend(self.link_type.number().to_le_bytes());
        bytes
    }

    /// A packet; the error says why the file cannot have it.
    pub fn record(&self, record: &Record<'_>, has_fine_times: bool) -> Result<Vec<u8>, String> {
        if record.link_type != self.link_type {
            let (first, other) = (self.link_type.name(), record.link_type.name());
            return Err(format!("a pcap file has one link type, and packets are of {first} and of {other}"));
        }
        if self.has_microseconds && has_fine_times {
            return Err("a pcap file has one unit of time, and packets are of interfaces with several".into());
        }
        let Ok(seconds) = u32::try_from(record.time_ns.div_euclid(1_000_000_000)) else {
            return Err("a pcap file has times from 1970 to 2106, and a packet has another".into());
        };
        let fraction_ns = record.time_ns.rem_euclid(1_000_000_000) as u32;
        let fraction = if self.has_microseconds { fraction_ns / 1_000 } else { fraction_ns };
        let fields = [seconds, fraction, record.data.len() as u32, record.wire_bytes];
        let mut bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        bytes.extend(record.data);
        Ok(bytes)
    }
}
