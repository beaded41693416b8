//! Captures out: packets as they were recorded, in a file of their own.
//!
//! From pcapng to pcapng every block passes as it is. Else records are written anew: their times, lengths and
//! bytes, and what is known of their interfaces.

mod blocks;
mod pcap_file;

use std::collections::BTreeMap;

use crate::input::bytes::compress::Compressor;
use crate::input::capture::pcapng::{Block, SECTION_HEADER};
use crate::input::capture::{Interface, Piece};
use crate::packet::record::Record;
use crate::wire::anonymize::{Addresses, anonymized};
use crate::wire::layers::TunnelPorts;
use blocks::{enhanced_packet, interface_description, interface_statistics, section, with_comment};
use pcap_file::PcapFile;

named_enum! {
    /// The form of a capture that is written.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CaptureForm {
        Pcap = "pcap",
        Pcapng = "pcapng",
    }
}

/// Writes packets of one source after the other.
pub struct CaptureWriter {
    form: CaptureForm,
    /// What replaces addresses, if they are replaced.
    addresses: Option<Box<dyn Addresses>>,
    tunnel_ports: TunnelPorts,
    /// What the first section says of the whole.
    section_comment: Option<String>,
    file: Compressor,
    pcap: Option<PcapFile>,
    /// Interfaces of the source, as they were declared.
    interfaces: Vec<Interface>,
    /// Whether blocks of the source pass as they are.
    is_verbatim: bool,
    /// Time of the last packet.
    latest_ns: i64,
    pub counts: Counts,
}

/// What was written, and what could not be.
#[derive(Debug, Default)]
pub struct Counts {
    pub written: u64,
    /// Packets whose headers could not be rewritten, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets in blocks without a place for a comment.
    pub without_comment: u64,
    /// Blocks of unknown kinds that were too long.
    pub skipped_blocks: u64,
}

impl CaptureWriter {
    pub fn new(
        form: CaptureForm,
        file: Compressor,
        addresses: Option<Box<dyn Addresses>>,
        section_comment: Option<String>,
    ) -> Self {
        Self {
            form,
            addresses,
            tunnel_ports: TunnelPorts::default(),
            section_comment,
            file,
            pcap: None,
            interfaces: Vec::new(),
            is_verbatim: false,
            latest_ns: 0,
            counts: Counts::default(),
        }
    }

    /// Begin a source of `format`, whose packets may be tunnelled at these ports.
    pub fn begin(&mut self, format: &str, tunnel_ports: &TunnelPorts) -> Result<(), String> {
        self.tunnel_ports = tunnel_ports.clone();
        self.interfaces.clear();
        self.is_verbatim = self.form == CaptureForm::Pcapng && format == "pcapng" && self.addresses.is_none();
        if self.form == CaptureForm::Pcapng && !self.is_verbatim {
            let comment = self.section_comment.take();
            self.file.write(&section(comment.as_deref()))?;
        }
        Ok(())
    }

    /// Take what is known of the source's interfaces.
    pub fn declare(&mut self, interfaces: &[Interface]) -> Result<(), String> {
        for interface in interfaces.iter().skip(self.interfaces.len()) {
            if self.form == CaptureForm::Pcapng && !self.is_verbatim {
                let name = interface.name.as_deref().filter(|_| self.addresses.is_none());
                self.file.write(&interface_description(interface, name))?;
            }
            self.interfaces.push(interface.clone());
        }
        Ok(())
    }

    /// Write a block without a packet.
    pub fn other_block(&mut self, block: &Block<'_>) -> Result<(), String> {
        if !self.is_verbatim {
            return Ok(());
        }
        if block.kind != SECTION_HEADER {
            return self.file.write(block.bytes);
        }
        // Without some of its packets a section is not as long as it says.
        const LENGTH: std::ops::Range<usize> = 16..24;
        let mut bytes = block.bytes.to_vec();
        bytes[LENGTH].fill(0xff);
        let comment = self.section_comment.take();
        let commented =
            comment.and_then(|comment| with_comment(&bytes, LENGTH.end, block.big_endian, &comment));
        self.file.write(&commented.unwrap_or(bytes))
    }

    /// Write a packet, as a record or in its block, with a comment if pcapng is written.
    pub fn packet(
        &mut self,
        piece: &Piece<'_>,
        record: Record<'_>,
        comment: Option<&str>,
    ) -> Result<(), String> {
        self.latest_ns = record.time_ns;
        let rewritten = match &mut self.addresses {
            None => None,
            Some(addresses) => match anonymized(&record, &self.tunnel_ports, addresses.as_mut()) {
                Ok(bytes) => Some(bytes),
                Err(reason) => {
                    *self.counts.dropped.entry(reason.words()).or_default() += 1;
                    return Ok(());
                }
            },
        };
        self.counts.written += 1;
        let record = Record { data: rewritten.as_deref().unwrap_or(record.data), ..record };
        match (self.form, piece) {
            (CaptureForm::Pcapng, Piece::Block(block)) if self.is_verbatim => self.verbatim(block, comment),
            (CaptureForm::Pcapng, _) => {
                let ticks = match self.interfaces.get(record.interface) {
                    Some(interface) if interface.has_microseconds() => record.time_ns.div_euclid(1_000),
                    _ => record.time_ns,
                };
                self.file.write(&enhanced_packet(&record, ticks, comment))
            }
            (CaptureForm::Pcap, _) => {
                let pcap = match &self.pcap {
                    Some(pcap) => *pcap,
                    None => self.begin_pcap()?,
                };
                let has_fine_times = self
                    .interfaces
                    .get(record.interface)
                    .is_some_and(|interface| !interface.has_microseconds());
                self.file.write(&pcap.record(&record, has_fine_times)?)
            }
        }
    }

    fn verbatim(&mut self, block: &Block<'_>, comment: Option<&str>) -> Result<(), String> {
        let Some(comment) = comment else { return self.file.write(block.bytes) };
        let commented =
            block.options_at.and_then(|at| with_comment(block.bytes, at, block.big_endian, comment));
        self.counts.without_comment += u64::from(commented.is_none());
        self.file.write(commented.as_deref().unwrap_or(block.bytes))
    }

    /// Write the header of a pcap file for the interfaces that are known.
    fn begin_pcap(&mut self) -> Result<PcapFile, String> {
        let pcap = PcapFile::of(&self.interfaces);
        self.file.write(&pcap.header())?;
        self.pcap = Some(pcap);
        Ok(pcap)
    }

    /// End a source: what its interfaces lost, with which it has ended, follows its packets.
    pub fn end(&mut self, interfaces: &[Interface]) -> Result<(), String> {
        if self.form == CaptureForm::Pcap && self.pcap.is_none() {
            self.begin_pcap()?;
        }
        if self.form == CaptureForm::Pcapng && !self.is_verbatim {
            for (number, interface) in interfaces.iter().enumerate().take(self.interfaces.len()) {
                if let Some(dropped) = interface.counters.dropped {
                    let ticks =
                        if interface.has_microseconds() { self.latest_ns / 1_000 } else { self.latest_ns };
                    self.file.write(&interface_statistics(number as u32, ticks, dropped))?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that wait to be taken.
    pub fn waiting(&mut self) -> usize {
        self.file.waiting()
    }

    /// What was written since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        self.file.take()
    }

    /// End the file, and return its last bytes.
    pub fn finish(&mut self) -> Result<Vec<u8>, String> {
        self.file.finish()
    }
}
