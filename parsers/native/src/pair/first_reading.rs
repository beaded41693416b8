//! The first reading of one capture: collects what matching with the other needs.

use hashbrown::HashMap;

use super::hash_sampling::{HashSample, KEPT, SampledPacket};
use super::packet_identity::{identity, payload_head};
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::packet::event::{Network, Packet, TcpFlags, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::ip_fields::IpFields;
use crate::packet::key::{FlowKey, Side};

/// The longest payload on Ethernet without offload: a longer segment may be several packets.
const LONGEST_USUAL: u32 = 1_460;

/// Packets kept of each capture, however many there are.
const LEAST_KEPT: usize = 1 << 12;

/// Lengths of the segments of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    /// Longest payload captured.
    longest: u32,
    /// Maximum segment size announced by this side, if its SYN was captured.
    mss: Option<u16>,
}

/// Result of reading one capture.
pub struct FirstReading {
    /// Packets that can be found in the other capture.
    pub sample: HashSample,
    /// Packets that had an identity.
    pub packets: u64,
    /// Time of the first and last record.
    pub span_ns: Option<(i64, i64)>,
    lengths: HashMap<FlowKey, [Lengths; 2]>,
    max_flows: usize,
}

impl FirstReading {
    /// Read one of so many `captures` to its end, which share the memory for samples. The error is the filter's, worded by libpcap.
    pub fn read(
        reading: &mut Reading,
        compiler: Option<&dyn Compiler>,
        max_flows: u32,
        captures: usize,
    ) -> Result<Self, String> {
        let mut survey = Self {
            sample: HashSample::new((2 * KEPT / captures.max(2)).max(LEAST_KEPT)),
            packets: 0,
            span_ns: None,
            lengths: HashMap::new(),
            max_flows: max_flows as usize,
        };
        reading.for_each_batch(compiler, |batch| {
            batch.items().for_each(|item| survey.on_packet(&item.to_packet(), batch.extras()));
        })?;
        Ok(survey)
    }

    /// Drop the packets, which are not needed after the clocks are compared.
    pub fn forget_sample(&mut self) {
        self.sample = HashSample::new(0);
    }

    fn on_packet(&mut self, packet: &Packet, extras: &PacketExtras) {
        let (start_ns, end_ns) = self.span_ns.unwrap_or((packet.time_ns, packet.time_ns));
        self.span_ns = Some((start_ns.min(packet.time_ns), end_ns.max(packet.time_ns)));
        if !packet.is_ip {
            return;
        }
        let network = &packet.network;
        let Some(identity) = identity(network, payload_head(network, extras)) else { return };
        self.packets += 1;
        let seen = SampledPacket {
            time_ns: packet.time_ns,
            endpoints: network.endpoints,
            ttl: network.ttl,
            place: IpFields::capture_point(packet),
            is_ambiguous: false,
        };
        self.sample.add(identity, seen);
        if network.transport == Transport::Tcp {
            self.measure(network);
        }
    }

    fn measure(&mut self, network: &Network) {
        let payload = network.payload_bytes.unwrap_or(0);
        let is_syn = network.tcp.flags.has(TcpFlags::SYN);
        if payload == 0 && !is_syn {
            return;
        }
        let (key, side) = FlowKey::of(&network.endpoints);
        if self.lengths.len() >= self.max_flows && !self.lengths.contains_key(&key) {
            return;
        }
        let lengths = &mut self.lengths.entry(key).or_default()[side as usize];
        lengths.longest = lengths.longest.max(payload);
        if is_syn {
            lengths.mss = network.tcp.options.mss.or(lengths.mss);
        }
    }

    fn lengths(&self, key: &FlowKey, side: Side) -> Lengths {
        self.lengths.get(key).map_or(Lengths::default(), |sides| sides[side as usize])
    }
}

/// Payload of the packets of a long segment on the wire, if it was more than one.
///
/// No packet carries more than the other side accepts, less its TCP options (RFC 9293 section
/// 3.7.1); without a SYN, no more than the capture with the shorter segments has.
pub fn wire_payload(surveys: &[FirstReading], network: &Network) -> Option<u32> {
    const TCP_HEADER: u8 = 20;
    let payload = network.payload_bytes.filter(|&payload| payload > LONGEST_USUAL)?;
    let (key, side) = FlowKey::of(&network.endpoints);
    let announced = surveys.iter().find_map(|survey| survey.lengths(&key, side.other()).mss);
    let options = u32::from(network.header_bytes.saturating_sub(TCP_HEADER));
    let longest = match announced {
        Some(mss) => u32::from(mss).saturating_sub(options),
        None => surveys.iter().map(|survey| survey.lengths(&key, side).longest).min()?,
    };
    (longest > 0 && payload > longest).then_some(longest)
}
