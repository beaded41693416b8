//! From a link header to the innermost packet, header by header.
//!
//! Each header says what comes next ([`Next`]), and one loop follows them; no pair of encapsulations is a
//! case of its own. [`ether`] and [`ip_protocol`] and [`udp_port`] are the tables of what follows what.

mod ether;
mod frame_shape;
mod gre;
mod gtp;
pub(super) mod headers_only;
mod ip_protocol;
mod ipsec;
mod l2tp;
mod mpls;
mod nsh;
mod overlay;
mod ppp;
mod teredo;
pub mod udp_port;

pub(super) use ether::llc;
pub use ppp::PPP_ADDRESS;
pub use udp_port::TunnelPorts;

use super::ether_type::{IPV4, IPV6};
use super::{Bytes, dccp, icmp, ip, tcp, udp};
use crate::packet::encapsulation::{Encapsulation, Lane};
use crate::packet::event::{Endpoints, Family, Layer, Network, Reason, Stop, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::tunnel::{OuterFragment, Tunnel};

/// The most headers before a transport's.
const MOST_HEADERS: usize = 32;

/// What the bytes after a header are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// What an EtherType names; below 0x600 it is a length, and LLC follows.
    EtherType(u16),
    Ethernet,
    Ppp,
    /// IPv4 or IPv6, by its version.
    Ip,
    /// What an IP protocol names.
    Protocol(u8),
}

/// What follows a header, and its bytes.
type Step<'a> = Result<(Next, Bytes<'a>), Stop>;

/// Decode the innermost packet of `bytes` into `network`. False if there is no IP header.
#[inline]
pub(super) fn decode(
    next: Next,
    bytes: Bytes<'_>,
    network: &mut Network,
    extras: &mut PacketExtras,
    ports: &TunnelPorts,
) -> (bool, Option<Stop>) {
    let mut is_ip = false;
    let (mut next, mut bytes) = (next, bytes);
    if let Next::EtherType(ether_type @ (IPV4 | IPV6)) = next {
        // Most packets are TCP or UDP in no tunnel.
        let headers = ip::headers(ether_type, bytes, network);
        let (header, payload) = match headers {
            Ok(headers) => headers,
            // Addresses are set once the fixed header is read; the failure may be after it.
            Err(stop) => return (network.endpoints.src != 0 || network.endpoints.dst != 0, Some(stop)),
        };
        bytes = Bytes { on_wire: payload, ..bytes.after(header) };
        match network.endpoints.protocol {
            _ if network.fragment.is_some() => {}
            ip::TCP => return (true, tcp::decode(bytes, network, extras)),
            ip::UDP if ports.of_datagram(bytes).is_none() => {
                return (true, udp::decode(bytes, network, extras));
            }
            _ => {}
        }
        (is_ip, next) = (true, Next::Protocol(network.endpoints.protocol));
    }
    let mut layers = Layers { network, extras, ports, is_ip, tunnel: None, datagram: None };
    let stop = layers.follow(next, bytes);
    (layers.is_ip, stop)
}

struct Layers<'a> {
    network: &'a mut Network,
    extras: &'a mut PacketExtras,
    ports: &'a TunnelPorts,
    /// Whether `network` has an IP header.
    is_ip: bool,
    /// What was around the last IP header, or transport header, if anything.
    tunnel: Option<Tunnel>,
    /// The UDP header whose payload is being read, not in `network` unless nothing is inside.
    datagram: Option<Bytes<'a>>,
}

/// What an IP packet holds.
enum Inside<'a> {
    /// A transport, read or not.
    End(Option<Stop>),
    Packet(Next, Bytes<'a>),
}

impl<'a> Layers<'a> {
    #[inline(never)]
    fn follow(&mut self, mut next: Next, mut bytes: Bytes<'a>) -> Option<Stop> {
        // An encapsulation without an IP packet inside leaves `self.tunnel` as it was.
        let mut tunnel = None;
        // Captured bytes from the last IP header's payload on.
        let mut ip_payload = bytes.captured.len();
        for _ in 0..MOST_HEADERS {
            let step = match next {
                Next::EtherType(IPV4 | IPV6) => {
                    let step = self.ip(next, bytes, &mut tunnel, ip_payload);
                    if let Ok((_, after)) = step {
                        ip_payload = after.captured.len();
                    }
                    step
                }
                Next::EtherType(ether_type) => {
                    ether::header(ether_type, bytes, tunnel.get_or_insert_default(), self.layer())
                }
                Next::Ethernet => ether::ethernet(bytes),
                Next::Ppp => ppp::header(bytes, self.layer()),
                Next::Ip => ether::ip(bytes, self.layer()),
                Next::Protocol(protocol) => match self.transport(protocol, bytes, &mut tunnel) {
                    Inside::Packet(next, after) => Ok((next, after)),
                    Inside::End(stop) => {
                        self.keep(ip_payload - bytes.captured.len().min(ip_payload));
                        return stop;
                    }
                },
            };
            match step {
                Ok(after) => (next, bytes) = after,
                Err(stop) => return self.leave(stop),
            }
        }
        self.leave(Stop { layer: self.layer(), reason: Reason::TooDeep })
    }

    /// Read an IP header, the first or one inside of another, which remains if this one is damaged.
    #[inline(always)]
    fn ip<'b>(
        &mut self,
        next: Next,
        bytes: Bytes<'b>,
        tunnel: &mut Option<Tunnel>,
        outer_payload: usize,
    ) -> Step<'b> {
        let Next::EtherType(ether_type) = next else { return Ok((next, bytes)) };
        if self.is_ip {
            self.inner_ip(ether_type, bytes, tunnel.get_or_insert_default(), outer_payload)?;
        }
        let headers = ip::headers(ether_type, bytes, self.network);
        if let Some(tunnel) = tunnel {
            if let (Some(outer), Ok((header, _))) = (&mut tunnel.outer_fragment, headers) {
                outer.before += header as u32;
                outer.inner_payload =
                    ip::length(bytes).map_or(0, |length| length.saturating_sub(header)) as u32;
            }
            self.tunnel = Some(*tunnel);
        }
        // Addresses are set once the fixed header is read; the failure may be after it.
        self.is_ip |= self.network.endpoints.src != 0 || self.network.endpoints.dst != 0 || headers.is_ok();
        let (header, payload) = headers?;
        let after = Bytes { on_wire: payload, ..bytes.after(header) };
        Ok((Next::Protocol(self.network.endpoints.protocol), after))
    }

    /// Note the packet around an IP header, and forget it unless the header is damaged.
    #[inline(never)]
    fn inner_ip(
        &mut self,
        ether_type: u16,
        bytes: Bytes<'_>,
        tunnel: &mut Tunnel,
        outer_payload: usize,
    ) -> Result<(), Stop> {
        ip::check(ether_type, bytes)?;
        let outer = self.network.endpoints;
        let around = self.tunnel.as_ref().map_or(Lane::OUTSIDE, |tunnel| tunnel.lane);
        if tunnel.lane.network == around.network && !tunnel.is_mirror() {
            tunnel.lane.enter_path(Encapsulation::Ipip, pair_of(&outer));
        }
        if let Some(fragment) = self.network.fragment
            && tunnel.outer_fragment.is_none()
        {
            let endpoints = Endpoints { src_port: 0, dst_port: 0, ..outer };
            tunnel.outer_fragment =
                Some(OuterFragment { endpoints, fragment, lane: around, before: 0, inner_payload: 0 });
        }
        if let Some(outer) = &mut tunnel.outer_fragment {
            outer.before += (outer_payload - bytes.captured.len().min(outer_payload)) as u32;
        }
        tunnel.outer = Some(outer);
        self.datagram = None;
        self.network.clear();
        Ok(())
    }

    #[inline(always)]
    fn transport(&mut self, protocol: u8, bytes: Bytes<'a>, tunnel: &mut Option<Tunnel>) -> Inside<'a> {
        let Self { network, extras, .. } = self;
        if network.fragment.is_some_and(|fragment| fragment.offset > 0) {
            network.transport = Transport::LaterFragment;
            network.payload_bytes = Some(bytes.on_wire);
            return Inside::End(None);
        }
        Inside::End(match protocol {
            ip::TCP => tcp::decode(bytes, network, extras),
            ip::UDP => return self.datagram(bytes, tunnel),
            ip::DCCP => dccp::decode(bytes, network, extras),
            ip::ICMP | ip::ICMPV6 => icmp::decode(bytes, network, extras),
            _ => return self.other_protocol(protocol, bytes, tunnel.get_or_insert_default()),
        })
    }

    fn datagram(&mut self, bytes: Bytes<'a>, tunnel: &mut Option<Tunnel>) -> Inside<'a> {
        let Some(carried) = self.ports.of_datagram(bytes) else {
            return Inside::End(udp::decode(bytes, self.network, self.extras));
        };
        self.datagram = Some(bytes);
        match carried.header(udp::payload(bytes), self.network, tunnel.get_or_insert_default()) {
            Ok((next, after)) => self.protected(next, after, *tunnel),
            Err(stop) => Inside::End(self.leave(stop)),
        }
    }

    /// Stop inside of an encapsulation: of a datagram without a packet inside, UDP's header is decoded.
    #[cold]
    fn leave(&mut self, stop: Stop) -> Option<Stop> {
        self.keep(0);
        let Some(datagram) = self.datagram.take() else { return Some(stop) };
        let unread = udp::decode(datagram, self.network, self.extras);
        // Another application at this port, or a message without a packet.
        let is_other = stop.layer == Layer::Tunnel && stop.reason == Reason::Malformed;
        unread.or(Some(stop).filter(|_| !is_other))
    }

    /// What an encapsulation holds: a transport that IPsec protects is of the same IP header.
    fn protected(&mut self, next: Next, after: Bytes<'a>, tunnel: Option<Tunnel>) -> Inside<'a> {
        if let Next::Protocol(protocol) = next {
            self.network.endpoints.protocol = protocol;
            self.tunnel = tunnel;
            self.datagram = None;
        }
        Inside::Packet(next, after)
    }

    #[inline(never)]
    fn other_protocol(&mut self, protocol: u8, bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Inside<'a> {
        match ip_protocol::header(protocol, bytes, self.network, tunnel) {
            Some(Ok((next, after))) => self.protected(next, after, Some(*tunnel)),
            Some(Err(stop)) => Inside::End(Some(stop)),
            None => {
                let layer = match self.network.endpoints.family {
                    Family::V4 => Layer::Ipv4,
                    _ => Layer::Ipv6,
                };
                Inside::End(Some(Stop { layer, reason: Reason::Unknown(protocol.into()) }))
            }
        }
    }

    /// Where decoding stops if no further header is known.
    fn layer(&self) -> Layer {
        if self.is_ip { Layer::Tunnel } else { Layer::Link }
    }

    /// Store what carried the packet, whose transport header begins `into` bytes after its IP header.
    #[inline(always)]
    fn keep(&mut self, into: usize) {
        if let Some(tunnel) = self.tunnel.filter(|tunnel| self.is_ip && !tunnel.is_none()) {
            self.keep_tunnel(tunnel, into);
        }
    }

    #[inline(never)]
    fn keep_tunnel(&mut self, mut tunnel: Tunnel, into: usize) {
        let network = &mut *self.network;
        if let Some(outer) = &mut tunnel.outer_fragment {
            outer.before += into as u32;
            network.fragment = Some(outer.fragment);
        }
        network.lane = tunnel.lane;
        network.tunnel = self.extras.add_tunnel(tunnel);
    }
}

/// Stands for the two ends of a tunnel, the same in both directions.
fn pair_of(ends: &Endpoints) -> u64 {
    let fold = |address: u128| (address >> 64) as u64 ^ (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fold(ends.src).wrapping_add(fold(ends.dst))
}

/// The first `n` bytes of an encapsulation's header, or the reason why they are missing.
fn need(bytes: Bytes<'_>, n: usize) -> Result<&[u8], Stop> {
    bytes.captured.get(..n).ok_or_else(|| bytes.shortage(n, Layer::Tunnel))
}

/// An encapsulation that cannot be what it seems, or carries no packet.
const MALFORMED: Stop = Stop { layer: Layer::Tunnel, reason: Reason::Malformed };

#[cfg(test)]
mod tests;
