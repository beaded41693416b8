//! Text traces: lines to packets, one file or folder per format.
//!
//! [`TextTrace`] owns what the formats share: it finds lines in the input's window, counts those
//! without packets and those that are wrong, and stops at the end. A format is a [`LineFormat`]: it
//! gets one line after the other and never the file.

mod bad_lines;
pub mod date;
mod forwarded;
pub mod iperf;
mod kernel_events;
mod lines;
mod name_table;
pub mod ns2;
pub mod ns3;
mod number;
mod packets_csv;
mod sack_blocks;
pub mod ss;
mod tcp_info;
pub mod tcpdump;
pub mod tcpvars;
#[cfg(test)]
mod tests;

use crate::error::{Hint, ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::input::capture::Interface;
use crate::input::stretch::Clipper;
use crate::packet::batch::Batch;
use crate::packet::event::{Address, Packet, Sack};
use crate::packet::extras::SackBlocks;
use crate::packet::key::Notation;
use crate::packet::link_type::LinkType;
use crate::packet::logged_variables::VariableSample;
pub use bad_lines::BadLines;
pub use forwarded::{ForwardedCounts, ForwardedPacket};
use lines::{Line, Lines};
pub use name_table::NameTable;
use sack_blocks::has_blocks;

/// Bytes that are inspected to recognise a format.
const DETECT_BYTES: usize = 64 * 1024;
const DETECT_LINES: usize = 200;
/// A line of column names must be among the first lines that are not comments.
const HEADER_LINES: usize = 4;
/// One line in this many must look like a format: packets may be printed with all their bytes. Indented
/// lines of no format are details of the lines before.
const LINES_FOR_ONE: usize = 20;

/// The result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet was filled. It need not be this line's: a format may hold packets back.
    Packet,
    /// A packet at an intermediate node, which counts for the source and not for its flow. Nothing
    /// was filled. Only after [`LineFormat::skip_forwarded`].
    Forwarded(ForwardedPacket),
    /// A packet was read and is held back.
    Held,
    /// Understood, without a packet: a comment, an event, the first half of a packet.
    Other,
    /// Not understood. The text describes what was expected, lower case, without full stop.
    Wrong(&'static str),
}

/// Lines of the usual form that were read in one go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastLines {
    pub lines: u64,
    /// Their bytes, with their ends.
    pub bytes: usize,
}

/// A format of text traces.
pub trait LineFormat: Send {
    /// Read the line with this number, without its end. A packet's `number` is that of its line
    /// (the first of two); `packet` is overwritten whole.
    fn read(&mut self, number: u64, line: &[u8], packet: &mut Packet) -> Outcome;

    /// Read lines of the usual form from the beginning of `window` into `batch`, as long as there
    /// is room; `first` is the number of the first line. What a format does not read here it must
    /// leave unchanged for [`LineFormat::read`], and both must give the same result.
    fn read_usual(
        &mut self,
        first: u64,
        window: &[u8],
        batch: &mut Batch,
        passing: &mut ForwardedCounts,
    ) -> FastLines {
        let _ = (first, window, batch, passing);
        FastLines::default()
    }

    /// Packets at intermediate nodes are not needed: they may be returned as
    /// [`Outcome::Forwarded`].
    fn skip_forwarded(&mut self) {}

    /// Return a packet that was held back, after the last line; to be called until it returns
    /// false.
    fn finish(&mut self, packet: &mut Packet) -> bool {
        let _ = packet;
        false
    }

    /// The names after a packet's `interface`: nodes, or interfaces.
    fn places(&self) -> &NameTable;

    /// Names after addresses of [`Family::Name`](crate::packet::event::Family::Name).
    fn hosts(&self) -> Option<&NameTable> {
        None
    }

    /// Whether node numbers are made of domain, cluster and node, and are written so.
    fn has_hierarchical_addresses(&self) -> bool {
        false
    }

    /// Addresses whose packets the trace shows only after the node to which a radio brings them.
    fn addresses_behind_gateways(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Take the samples of variables that were among the packets.
    fn take_samples(&mut self) -> Vec<VariableSample> {
        Vec::new()
    }

    /// The SACK blocks of the returned packet, if it is marked to have some.
    fn take_sack(&mut self) -> Option<SackBlocks> {
        None
    }

    /// Caveats about the trace as a whole, such as times too coarse for delays.
    fn caveats(&self) -> Vec<String> {
        Vec::new()
    }
}

named_enum! {
    /// The text formats, in the order in which they are tried.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TextFormat {
        /// ns-3's ASCII traces of any release.
        Ns3 = "ns3",
        /// ns-2's traces, all forms, also mixed.
        Ns2 = "ns2",
        /// tcpdump's output, with any options.
        Tcpdump = "tcpdump",
        /// The table of packets as CSV.
        Packets = "packets",
        Iperf = "iperf",
        /// Samples of `ss -ti`.
        Ss = "ss",
        /// Events of Linux's kernel.
        KernelEvents = "kernel_events",
        /// Records of M-Lab's `tcp-info`.
        TcpInfo = "tcp_info",
        /// Variables of connections in columns.
        TcpVars = "tcpvars",
    }
}

impl TextFormat {
    /// Formats recognised by a first line with the names of columns, and by no other line.
    const WITH_COLUMN_NAMES: [Self; 2] = [Self::Packets, Self::TcpVars];

    /// Whether a line looks like this format.
    fn recognises(self, line: &[u8]) -> bool {
        match self {
            Self::Ns3 => ns3::recognises(line),
            Self::Ns2 => ns2::recognises(line),
            Self::Tcpdump => tcpdump::recognises(line),
            Self::Packets => packets_csv::recognises(line),
            Self::Iperf => iperf::recognises(line),
            Self::Ss => ss::recognises(line),
            Self::KernelEvents => kernel_events::recognises(line),
            Self::TcpInfo => tcp_info::recognises(line),
            Self::TcpVars => tcpvars::recognises(line),
        }
    }

    fn reader(self) -> Box<dyn LineFormat> {
        match self {
            Self::Ns3 => Box::new(ns3::Ns3::default()),
            Self::Ns2 => Box::new(ns2::Ns2::default()),
            Self::Tcpdump => Box::new(tcpdump::Tcpdump::default()),
            Self::Packets => Box::new(packets_csv::PacketsCsv::default()),
            Self::Iperf => Box::new(iperf::Iperf::default()),
            Self::Ss => Box::new(ss::Ss::default()),
            Self::KernelEvents => Box::new(kernel_events::KernelEvents::default()),
            Self::TcpInfo => Box::new(tcp_info::TcpInfo::default()),
            Self::TcpVars => Box::new(tcpvars::TcpVars::default()),
        }
    }
}

/// The format whose columns the first lines name, else the one that enough lines look like.
pub fn detect(start: &[u8]) -> Option<TextFormat> {
    let lines = || start.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let has_columns_of = |format: &TextFormat| lines().take(HEADER_LINES).any(|line| format.recognises(line));
    if let Some(format) = TextFormat::WITH_COLUMN_NAMES.into_iter().find(has_columns_of) {
        return Some(format);
    }
    let mut votes = [0_usize; TextFormat::ALL.len()];
    let mut counted = 0;
    for line in lines().take(DETECT_LINES).filter(|line| !line.trim_ascii().is_empty()) {
        let format = TextFormat::ALL.iter().position(|format| format.recognises(line));
        let is_detail = format.is_none() && line.first().is_some_and(u8::is_ascii_whitespace);
        counted += usize::from(!is_detail);
        if let Some(at) = format {
            votes[at] += 1;
        }
    }
    let (at, &most) = votes.iter().enumerate().max_by_key(|(at, votes)| (**votes, usize::MAX - at))?;
    let format = TextFormat::ALL[at];
    let is_enough = most > 0 && most * LINES_FOR_ONE >= counted;
    (is_enough && !TextFormat::WITH_COLUMN_NAMES.contains(&format)).then_some(format)
}

pub struct TextTrace {
    format: TextFormat,
    lines: Lines,
    reader: Box<dyn LineFormat>,
    /// Lines that are understood but hold no packet.
    pub other_lines: u64,
    pub bad_lines: BadLines,
    /// Packets at intermediate nodes that were only counted.
    pub passing: ForwardedCounts,
    ended: bool,
}

impl TextTrace {
    /// Recognise the format of the text `input`; None if no format is recognised.
    pub fn open(mut input: Input) -> Result<Result<Self, Input>, ReadError> {
        let detected = detect(input.peek(DETECT_BYTES)?);
        Ok(match detected {
            Some(format) => Ok(Self::of(format, input)),
            None => Err(input),
        })
    }

    /// Read `input` as `format`, without recognition.
    pub fn of(format: TextFormat, input: Input) -> Self {
        Self {
            format,
            lines: Lines::new(input),
            reader: format.reader(),
            other_lines: 0,
            bad_lines: BadLines::default(),
            passing: ForwardedCounts::default(),
            ended: false,
        }
    }

    pub fn format(&self) -> &'static str {
        self.format.name()
    }

    /// Lines read so far.
    pub fn line_count(&self) -> u64 {
        self.lines.number()
    }

    /// Count packets at intermediate nodes instead of returning them, where the format can
    /// distinguish them.
    pub fn skip_forwarded(&mut self) {
        self.reader.skip_forwarded();
    }

    /// The reader of the format.
    pub fn reader(&mut self) -> &mut dyn LineFormat {
        &mut *self.reader
    }

    /// Name of a node or interface.
    pub fn place(&self, interface: u32) -> Option<&str> {
        self.reader.places().get(interface)
    }

    /// Name after an address that is an index.
    pub fn host(&self, address: Address) -> Option<&str> {
        self.reader.hosts()?.get(u32::try_from(address).ok()?)
    }

    /// How node numbers are written.
    pub fn notation(&self) -> Notation<'static> {
        Notation { hosts: &[], is_hierarchical: self.reader.has_hierarchical_addresses() }
    }

    /// The places as interfaces of the summary.
    pub fn interfaces(&self) -> Vec<Interface> {
        self.reader.places().iter().map(|name| Interface::named(name, LinkType::None)).collect()
    }

    /// Read packets into `batch` until it is full; fewer only at the end.
    pub fn fill(&mut self, batch: &mut Batch, mut clipper: Option<&mut Clipper>) -> Result<(), ReadError> {
        while !batch.is_full() && !self.ended {
            let first = self.lines.number() + 1;
            if clipper.is_none() {
                let usual = self.reader.read_usual(first, self.lines.window(), batch, &mut self.passing);
                self.lines.pass(usual.lines, usual.bytes);
            }
            if !batch.is_full() {
                self.read_line(batch, clipper.as_deref_mut())?;
            }
        }
        while self.ended && !batch.is_full() && self.reader.finish(batch.next_other().0) {
            self.give(batch, clipper.as_deref_mut());
        }
        Ok(())
    }

    /// Read the next line.
    fn read_line(&mut self, batch: &mut Batch, clipper: Option<&mut Clipper>) -> Result<(), ReadError> {
        let number = self.lines.number() + 1;
        let outcome = match self.lines.next()? {
            Line::Text(line) => self.reader.read(number, line, batch.next_other().0),
            Line::TooLong => Outcome::Wrong(lines::TOO_LONG),
            Line::End => {
                self.ended = true;
                return Ok(());
            }
        };
        match outcome {
            Outcome::Packet => self.give(batch, clipper),
            Outcome::Forwarded(passing) => self.passing.count(number, passing),
            Outcome::Held => {}
            Outcome::Other => self.other_lines += 1,
            Outcome::Wrong(expected) => self.bad_lines.add(number, expected),
        }
        Ok(())
    }

    /// Add the packet that the format has filled, with its SACK blocks, unless it is left out.
    fn give(&mut self, batch: &mut Batch, clipper: Option<&mut Clipper>) {
        let (packet, extras) = batch.next_other();
        if let Some(clipper) = clipper
            && clipper.leaves_out(packet.time_ns)
        {
            self.reader.take_sack();
            return clipper.leave_out(packet);
        }
        self.passing.on_given(packet.number, packet.time_ns);
        if has_blocks(packet) {
            let sack = self.reader.take_sack().and_then(|blocks| extras.add_sack(blocks));
            packet.network.tcp.options.sack = sack.and_then(Sack::with_blocks).unwrap_or_default();
        }
        batch.add_other();
    }
}

/// An error for a text that no format recognises.
pub fn not_recognised() -> ReadError {
    let known: Vec<&str> = TextFormat::ALL.iter().map(|format| format.name()).collect();
    ReadError::at(
        ProblemKind::NotACapture,
        0,
        format!("this is text of no known form, expected a capture or one of: {}", known.join(", ")),
    )
    .hint(Hint::NameFormat)
}
