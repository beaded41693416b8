//! One source from its first byte to decoded packets.
//!
//! Reading and decoding cost about as much as following flows, so a source of more than a few
//! packets is read by a thread of its own that stays a few batches ahead. The order of the packets
//! does not depend on the threads.

pub mod copying;

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::input::bytes::{Input, Progress};
use crate::input::capture::{Capture, Records};
use crate::input::documents::Document;
use crate::input::filter::{Compiler, Program};
use crate::input::sender_clocks::SenderClocks;
use crate::input::source::{InputFormat, Source};
use crate::input::source_summary::SourceSummary;
use crate::input::stretch::{Clipper, OutsideFlows, Stretch};
use crate::input::text::TextTrace;
use crate::packet::batch::Batch;
use crate::packet::event::{Address, Endpoints, Family, Packet, TcpFlags, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::key::address_text;
use crate::packet::link_type::LinkType;
use crate::packet::logged_variables::VariableSample;
use crate::packet::record::Record;
use crate::wire;
use crate::wire::layers::TunnelPorts;
use crate::wire::opening::first_bytes::FirstBytes;

/// Packets decoded in one go: 180 kB where all are plain, which stays in the second-level cache.
/// With fewer, waking the other thread costs more than decoding.
pub const BATCH: usize = 2048;
/// Packets decoded to learn when a source begins.
const PEEK: usize = 16;
/// Fewest decoded batches in the queue.
const WAITING: usize = 4;
/// Snap length given to the filter compiler; it only decides how much an accepting filter keeps.
const FILTER_SNAP_LENGTH: u32 = 262_144;

/// One source while it is being read.
pub struct Reading {
    source: String,
    compression: &'static str,
    opened: Option<Source>,
    filters: Vec<(LinkType, Program)>,
    filtered: u64,
    error: Option<ReadError>,
    number: u64,
    /// Packets of the trace before those of this source.
    numbered_after: u64,
    /// Whether there were samples of variables: a log without packets is not empty.
    has_samples: bool,
    caveats: Vec<String>,
    /// Counts of the packets returned so far. Counted in the reading thread, because the thread
    /// that follows flows has more to do.
    counted: SourceSummary,
    clocks: SenderClocks,
    progress: Arc<Progress>,
    tunnel_ports: TunnelPorts,
    /// Connections whose first bytes name their server.
    first_bytes: FirstBytes,
    /// Leaves out packets by their time, if any are to be.
    clipper: Option<Clipper>,
    /// Whether packets are passed on before their source is waited for.
    is_prompt: bool,
}

impl Reading {
    /// Open `source`. If that fails there are no packets, and [`Reading::finish`] reports why.
    /// `format` is the user's choice; without it the content decides.
    pub fn open(
        source: &OsStr,
        format: Option<InputFormat>,
        max_decompressed_bytes: Option<u64>,
        progress: &Arc<Progress>,
    ) -> Self {
        let name = source.to_string_lossy();
        Self::with_input(&name, Input::open(source, max_decompressed_bytes, progress), format, progress)
    }

    /// Read an input that is already open.
    pub fn with_input(
        source: &str,
        input: Result<Input, ReadError>,
        format: Option<InputFormat>,
        progress: &Arc<Progress>,
    ) -> Self {
        let mut compression = "";
        let opened = input.and_then(|input| {
            compression = input.compression().name();
            Source::open(input, format)
        });
        let (opened, error) = match opened {
            Ok(opened) => (Some(opened), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            source: source.to_owned(),
            compression,
            opened,
            filters: Vec::new(),
            filtered: 0,
            error,
            number: 0,
            numbered_after: 0,
            has_samples: false,
            caveats: Vec::new(),
            counted: SourceSummary::new(source),
            clocks: SenderClocks::default(),
            progress: Arc::clone(progress),
            tunnel_ports: TunnelPorts::default(),
            first_bytes: FirstBytes::default(),
            clipper: None,
            is_prompt: false,
        }
    }

    /// The source as the user named it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Number the packets of a capture from `packets` + 1: it is a later part of a trace. To be called
    /// before the first is read.
    pub fn number_after(&mut self, packets: u64) {
        // Those of a text are its lines.
        self.numbered_after = if self.is_capture() { packets } else { 0 };
    }

    /// Read encapsulations at these ports. To be called before the first is read.
    pub fn find_tunnels_at(&mut self, ports: &TunnelPorts) {
        self.tunnel_ports = ports.clone();
    }

    /// Go on with the first bytes of connections, which another source has left. To be called before the first is read.
    pub fn await_first_bytes(&mut self, first_bytes: FirstBytes) {
        self.first_bytes = first_bytes;
    }

    /// The first bytes of connections that are not complete. To be called after the last packet.
    pub fn take_first_bytes(&mut self) -> FirstBytes {
        std::mem::take(&mut self.first_bytes)
    }

    /// Leave out what is outside of `stretch`. To be called before the first is read.
    pub fn keep_to(&mut self, stretch: Option<Stretch>) {
        self.clipper = stretch.map(Clipper::new);
    }

    /// Pass packets on whenever the source has to be waited for. To be called before the first is read.
    pub fn be_prompt(&mut self) {
        self.is_prompt = true;
    }

    fn outside_packets(&self) -> u64 {
        self.clipper.as_ref().map_or(0, |clipper| clipper.packets)
    }

    /// Flows with packets that were left out by their time.
    pub fn take_outside_flows(&mut self) -> OutsideFlows {
        self.clipper.as_mut().map(|clipper| std::mem::take(&mut clipper.flows)).unwrap_or_default()
    }

    /// Time of the first packet and of the last; only the first is read unless `whole`.
    pub fn time_span(mut self, whole: bool) -> Option<(i64, i64)> {
        if whole {
            // Without a filter there is no error.
            let _ = self.for_each_batch(None, |_| ());
            return (self.counted.packets > 0).then_some((self.counted.start_ns, self.counted.end_ns));
        }
        let mut batch = Batch::new(PEEK);
        let _ = self.fill(&mut batch, None);
        batch.items().next().map(|item| (item.time_ns(), item.time_ns()))
    }

    /// Records read so far, those included that the filter left out.
    pub fn packets(&self) -> u64 {
        self.number
    }

    /// Whether it could be opened and has a known format.
    pub fn is_known(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether it was opened and is a capture.
    pub fn is_capture(&self) -> bool {
        matches!(self.opened, Some(Source::Capture(_)))
    }

    /// Count packets at intermediate nodes of a simulated network, and return only those that were
    /// sent, delivered or dropped. To be called before the first is read.
    pub fn skip_forwarded(&mut self) {
        if let Some(Source::Text(trace)) = &mut self.opened
            && self.clipper.is_none()
        {
            trace.skip_forwarded();
        }
    }

    /// Pass all packets to `work`, in order, a batch at a time.
    pub fn for_each_batch(
        &mut self,
        compiler: Option<&dyn Compiler>,
        mut work: impl FnMut(&Batch),
    ) -> Result<(), String> {
        self.for_some_batches(compiler, 1, |batches| batches.iter().for_each(&mut work))
    }

    /// The same for so many batches at a time; fewer at the end, and where the source has to be waited for.
    pub fn for_some_batches(
        &mut self,
        compiler: Option<&dyn Compiler>,
        together: usize,
        mut work: impl FnMut(&[Batch]),
    ) -> Result<(), String> {
        let mut first = Batch::new(BATCH);
        self.fill(&mut first, compiler)?;
        let (is_last, is_prompt) = (first.is_last(), self.is_prompt);
        work(&[first]);
        if is_last {
            return Ok(());
        }
        thread::scope(|scope| {
            let (sender, filled) = sync_channel::<NextBatch>(together.max(WAITING));
            let (spent, returned) = channel();
            let reader = thread::Builder::new()
                .name("reading".into())
                .spawn_scoped(scope, || self.run_ahead(compiler, sender, returned));
            match reader {
                Ok(_) => consume(&filled, &spent, (together, is_prompt), &mut work),
                Err(error) => Err(format!("cannot start a reader thread: {error}")),
            }
        })
    }

    /// Fill batches until the source ends or the receiver is gone.
    fn run_ahead(
        &mut self,
        compiler: Option<&dyn Compiler>,
        filled: SyncSender<NextBatch>,
        returned: Receiver<Batch>,
    ) {
        loop {
            let mut batch = returned.try_recv().unwrap_or_else(|_| Batch::new(BATCH));
            let outcome = self.fill(&mut batch, compiler);
            let last = outcome.is_err() || batch.is_last();
            if filled.send(outcome.map(|()| batch)).is_err() || last {
                return;
            }
        }
    }

    /// Decode and count packets into `batch`, as many as fit: fewer at the end of the source, or before a wait for it.
    pub fn fill(&mut self, batch: &mut Batch, compiler: Option<&dyn Compiler>) -> Result<(), String> {
        batch.clear();
        let before = self.number;
        // One loop for each format, so that each is small enough for the processor's registers.
        let mut opened = self.opened.take();
        let filled = match &mut opened {
            Some(Source::Capture(Capture::Pcap(reader))) => self.fill_from(reader, batch, compiler),
            Some(Source::Capture(Capture::Pcapng(reader))) => self.fill_from(reader, batch, compiler),
            Some(Source::Capture(Capture::Snoop(reader))) => self.fill_from(reader, batch, compiler),
            Some(Source::Capture(Capture::Erf(reader))) => self.fill_from(reader, batch, compiler),
            Some(Source::Text(trace)) => {
                self.fill_from_text(trace, batch, compiler);
                Ok(())
            }
            Some(Source::Document(..)) | None => Ok(()),
        };
        self.opened = opened;
        self.progress.packets.fetch_add(self.number - before, Ordering::Relaxed);
        let steps_before = self.counted.time_order.back.count;
        let longest_ns = self.counted.count(batch, self.numbered_after);
        if self.counted.time_order.back.count > steps_before {
            batch.note_step_back(self.counted.end_ns);
        }
        self.counted.extend_time(batch);
        if self.is_capture() {
            self.clocks.watch(batch, longest_ns, self.numbered_after);
        }
        filled
    }

    #[inline(never)]
    fn fill_from(
        &mut self,
        reader: &mut impl Records,
        batch: &mut Batch,
        compiler: Option<&dyn Compiler>,
    ) -> Result<(), String> {
        let (is_selective, is_prompt) = (self.clipper.is_some() || compiler.is_some(), self.is_prompt);
        while let Some((segment, extras)) = batch.next_plain() {
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            };
            self.number += 1;
            if is_selective && !self.lets_through(&record, compiler)? {
                continue;
            }
            let number = self.numbered_after + self.number;
            if wire::decode_plain(&record, number, segment, extras) {
                if self.first_bytes.is_idle() {
                    batch.add_plain();
                } else {
                    self.add_plain(batch, record.data);
                }
            } else {
                let (packet, extras) = batch.next_other();
                wire::decode(&record, number, packet, extras, &self.tunnel_ports);
                // Of what is no TCP the flags mean nothing.
                if !self.first_bytes.is_idle() || packet.network.tcp.flags.has(TcpFlags::SYN) {
                    self.find_opening(packet, extras, record.data);
                }
                batch.add_other();
            }
            if is_prompt && !reader.is_at_hand() {
                batch.is_early = !batch.is_full();
                break;
            }
        }
        Ok(())
    }

    /// Whether the stretch of time and the filter let a record through.
    #[inline(never)]
    fn lets_through(&mut self, record: &Record<'_>, compiler: Option<&dyn Compiler>) -> Result<bool, String> {
        if let Some(clipper) = &mut self.clipper
            && clipper.leaves_out(record.time_ns)
        {
            clipper.leave_out_record(record, &self.tunnel_ports);
            return Ok(false);
        }
        let is_accepted = match compiler {
            Some(compiler) => accepts(&mut self.filters, compiler, record)?,
            None => true,
        };
        self.filtered += u64::from(!is_accepted);
        Ok(is_accepted)
    }

    /// Add the segment that was written to `batch`, in general form if it completes what its client opens with.
    #[inline(never)]
    fn add_plain(&mut self, batch: &mut Batch, captured: &[u8]) {
        let Some((segment, _)) = batch.next_plain() else { return };
        let Some(opening) = self.first_bytes.on_plain(segment, captured) else { return batch.add_plain() };
        let whole = segment.to_packet();
        let (packet, extras) = batch.next_other();
        *packet = whole;
        packet.network.opening = extras.add_opening(opening);
        batch.add_other();
    }

    /// Find what the client opens with that sent this packet, if it completes that.
    #[inline(never)]
    fn find_opening(&mut self, packet: &mut Packet, extras: &mut PacketExtras, captured: &[u8]) {
        let network = &mut packet.network;
        if packet.is_ip
            && network.transport == Transport::Tcp
            && let Some(opening) = self.first_bytes.on_segment(network, captured)
        {
            network.opening = extras.add_opening(opening);
        }
    }

    #[inline(never)]
    fn fill_from_text(&mut self, trace: &mut TextTrace, batch: &mut Batch, compiler: Option<&dyn Compiler>) {
        if compiler.is_some() {
            self.error = Some(filter_on_text(trace.format()));
            return;
        }
        let passed_before = trace.passing.packets;
        let left_out_before = self.outside_packets();
        if let Err(error) = trace.fill(batch, self.clipper.as_mut()) {
            self.error = Some(error);
        }
        self.number += batch.len() as u64 + trace.passing.packets - passed_before;
        self.number += self.outside_packets() - left_out_before;
    }

    /// Read the source if it is a document: these hold no packets.
    pub fn document(&mut self) -> Document {
        let mut document = Document::default();
        if let Some(Source::Document(format, input)) = &mut self.opened
            && let Some(input) = input.take()
        {
            if self.clipper.is_some() {
                self.error = Some(stretch_of_document(format.name()));
            } else if let Err(error) = format.read(input, &mut document) {
                self.error = Some(error);
            }
        }
        self.caveats = std::mem::take(&mut document.caveats);
        document
    }

    /// Samples of variables among the packets. To be called after the last packet.
    pub fn take_samples(&mut self) -> Vec<VariableSample> {
        let samples = match &mut self.opened {
            Some(Source::Text(trace)) => trace.reader().take_samples(),
            _ => Vec::new(),
        };
        self.has_samples = !samples.is_empty();
        match &self.clipper {
            Some(clipper) => samples.into_iter().filter(|sample| clipper.contains(sample.time_ns)).collect(),
            None => samples,
        }
    }

    /// Complete `summary`, and add the errors.
    pub fn finish(mut self, summary: &mut SourceSummary) -> Vec<Problem> {
        summary.take_counts(std::mem::take(&mut self.counted));
        summary.clock = self.clocks.finish();
        summary.compression = self.compression.into();
        summary.filtered_packets = self.filtered;
        summary.outside_packets = self.outside_packets();
        let mut errors = Vec::new();
        if let Some(opened) = &mut self.opened {
            summary.format = opened.format().into();
            if let Source::Text(trace) = opened {
                summary.add_forwarded(&trace.passing);
            }
            summary.finish(&opened.interfaces());
            if let Source::Text(trace) = opened {
                errors.extend(finish_text(trace, summary, self.has_samples));
            }
        }
        errors.extend(self.caveats.drain(..).map(imprecise));
        let is_capture = self.is_capture();
        let is_document = matches!(self.opened, Some(Source::Document(..)));
        let may_be_empty = is_document || self.has_samples;
        match self.error {
            Some(error) => errors.push(error),
            None if !may_be_empty && errors.is_empty() => errors.extend(no_packets(summary)),
            None => {}
        }
        let left_out = summary.filtered_packets.saturating_add(summary.outside_packets);
        let place = |error: ReadError| Problem {
            source: self.source.clone(),
            flows: Vec::new(),
            packet: (error.byte.is_some() && is_capture).then_some(self.number + 1),
            packets_before: self.number.saturating_sub(left_out),
            error,
        };
        errors.into_iter().map(place).collect()
    }

    /// Both ends as written in the source, where addresses are no IP addresses.
    pub fn endpoint_names(&self, endpoints: &Endpoints) -> Option<(String, String)> {
        let Some(Source::Text(trace)) = &self.opened else { return None };
        if matches!(endpoints.family, Family::V4 | Family::V6) {
            return None;
        }
        let name = |address| match endpoints.family {
            Family::Name => trace.host(address).unwrap_or_default().to_owned(),
            _ => address_text(address, endpoints.family, trace.notation()),
        };
        Some((name(endpoints.src), name(endpoints.dst)))
    }

    /// Name of an interface or node, if the source has it.
    pub fn interface_name(&self, interface: u32) -> Option<&str> {
        self.opened.as_ref()?.place(interface)
    }
}

/// Decoded packets, or libpcap's error message for the filter.
type NextBatch = Result<Batch, String>;

fn consume(
    filled: &Receiver<NextBatch>,
    spent: &Sender<Batch>,
    (together, is_prompt): (usize, bool),
    work: &mut impl FnMut(&[Batch]),
) -> Result<(), String> {
    let mut batches = Vec::with_capacity(together);
    loop {
        let Ok(first) = filled.recv() else { return Ok(()) };
        batches.push(first?);
        let further = || if is_prompt { filled.try_recv().ok() } else { filled.recv().ok() };
        while batches.len() < together
            && let Some(batch) = further()
        {
            batches.push(batch?);
        }
        work(&batches);
        // After its last batch the reader accepts no buffer.
        batches.drain(..).for_each(|batch| drop(spent.send(batch)));
    }
}

/// Add a text's counts and caveats to the summary.
fn finish_text(trace: &mut TextTrace, summary: &mut SourceSummary, has_samples: bool) -> Vec<ReadError> {
    summary.lines = trace.line_count();
    summary.other_lines = trace.other_lines;
    summary.bad_lines = trace.bad_lines.count();
    summary.hosts = trace.reader().hosts().map(|hosts| hosts.iter().map(str::to_owned).collect());
    summary.has_hierarchical_addresses = trace.reader().has_hierarchical_addresses();
    summary.addresses_behind_gateways =
        trace.reader().addresses_behind_gateways().into_iter().map(Address::from).collect();
    let caveats = trace.reader().caveats();
    let is_empty = summary.packets == 0 && !has_samples;
    let bad_lines = if is_empty { trace.bad_lines.all_left_out() } else { trace.bad_lines.some_left_out() };
    bad_lines.into_iter().chain(caveats.into_iter().map(imprecise)).collect()
}

/// A caveat about a source as a whole.
fn imprecise(words: String) -> ReadError {
    ReadError::whole(ProblemKind::Imprecise, words)
}

/// libpcap's expressions inspect bytes, which a text does not have.
fn filter_on_text(format: &str) -> ReadError {
    let message = format!("filter expressions apply to captures, and this is a text ({format})");
    ReadError::whole(ProblemKind::Unsupported, message).hint(Hint::CaptureFilter)
}

/// Documents hold sums over their whole time.
fn stretch_of_document(format: &str) -> ReadError {
    let message = format!("a stretch of time is of packets, and this is a document without any ({format})");
    ReadError::whole(ProblemKind::Unsupported, message)
}

/// A source that was read without error but held nothing.
fn no_packets(summary: &SourceSummary) -> Option<ReadError> {
    if summary.packets > 0 || summary.outside_packets > 0 {
        return None;
    }
    let message = match summary.filtered_packets {
        0 => "there are no packets in it".to_owned(),
        n => format!("the filter left out all {n} packets"),
    };
    Some(ReadError::whole(ProblemKind::NoPackets, message))
}

/// Whether the filter, compiled for the record's link type, lets it through.
#[inline(always)]
fn accepts(
    filters: &mut Vec<(LinkType, Program)>,
    compiler: &dyn Compiler,
    record: &Record<'_>,
) -> Result<bool, String> {
    let program = match filters.iter().position(|(link_type, _)| *link_type == record.link_type) {
        Some(at) => &filters[at].1,
        None => compile(filters, compiler, record.link_type)?,
    };
    Ok(program.accepts(record.data, record.wire_bytes))
}

#[cold]
fn compile<'a>(
    filters: &'a mut Vec<(LinkType, Program)>,
    compiler: &dyn Compiler,
    link_type: LinkType,
) -> Result<&'a Program, String> {
    let instructions = compiler.compile(link_type.number(), FILTER_SNAP_LENGTH)?;
    let program = Program::new(instructions)?;
    filters.push((link_type, program));
    Ok(&filters[filters.len() - 1].1)
}
