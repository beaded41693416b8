//! Encapsulations over UDP, known by their port.

use super::super::{Bytes, u16_at, udp};
use super::{MALFORMED, Step, gre, gtp, ipsec, l2tp, mpls, overlay, teredo};
use crate::packet::event::Network;
use crate::packet::tunnel::Tunnel;

named_enum! {
    /// An encapsulation in `--tunnel-port`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UdpTunnel {
        Vxlan = "vxlan",
        VxlanGpe = "vxlan-gpe",
        Geneve = "geneve",
        GtpU = "gtp-u",
        L2tp = "l2tp",
        Teredo = "teredo",
        Mpls = "mpls",
        Gre = "gre",
        Esp = "esp",
    }
}

impl UdpTunnel {
    /// The port that IANA has registered.
    pub fn registered_port(self) -> u16 {
        match self {
            Self::Vxlan => 4789,
            Self::VxlanGpe => 4790,
            Self::Geneve => 6081,
            Self::GtpU => 2152,
            Self::L2tp => 1701,
            Self::Teredo => 3544,
            // RFC 7510, RFC 8086.
            Self::Mpls => 6635,
            Self::Gre => 4754,
            // RFC 3948.
            Self::Esp => 4500,
        }
    }

    /// Whether the source port is only there to spread flows over links.
    fn is_known_by_destination(self) -> bool {
        matches!(self, Self::Vxlan | Self::VxlanGpe | Self::Geneve | Self::Mpls | Self::Gre)
    }

    /// The header of a datagram in the packet `around` it.
    pub(super) fn header<'a>(self, bytes: Bytes<'a>, around: &Network, tunnel: &mut Tunnel) -> Step<'a> {
        match self {
            Self::Vxlan => overlay::vxlan(bytes, tunnel),
            Self::VxlanGpe => overlay::vxlan_gpe(bytes, tunnel),
            Self::Geneve => overlay::geneve(bytes, tunnel),
            Self::GtpU => gtp::header(bytes, tunnel),
            Self::L2tp => l2tp::over_udp(bytes, around.fragment.is_some(), tunnel),
            Self::Teredo => teredo::header(bytes, tunnel),
            Self::Mpls => mpls::labels(bytes, tunnel),
            Self::Gre => gre::header(bytes, tunnel),
            Self::Esp => ipsec::unencrypted(bytes, &around.endpoints, tunnel).ok_or(MALFORMED),
        }
    }
}

/// Which ports carry encapsulations.
#[derive(Clone, Debug)]
pub struct TunnelPorts {
    ports: Vec<(u16, UdpTunnel)>,
    /// A bit for the last ten bits of each port: most datagrams need no search.
    last_bits: [u64; 16],
}

impl Default for TunnelPorts {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl TunnelPorts {
    /// The registered ports, but these first.
    pub fn with(more: &[(u16, UdpTunnel)]) -> Self {
        let registered = UdpTunnel::ALL.into_iter().map(|tunnel| (tunnel.registered_port(), tunnel));
        let ports: Vec<_> = more.iter().copied().chain(registered).collect();
        let mut last_bits = [0; 16];
        for &(port, _) in &ports {
            last_bits[usize::from(port) / 64 % 16] |= 1 << (port % 64);
        }
        Self { ports, last_bits }
    }

    /// What the datagram with this header carries, if its ports say so.
    #[inline(always)]
    pub(super) fn of_datagram(&self, bytes: Bytes<'_>) -> Option<UdpTunnel> {
        let header = bytes.captured.first_chunk::<{ udp::HEADER }>()?;
        self.of(u16_at(header, 0), u16_at(header, 2))
    }

    #[inline(always)]
    pub(super) fn of(&self, src_port: u16, dst_port: u16) -> Option<UdpTunnel> {
        let may_be = |port: u16| self.last_bits[usize::from(port) / 64 % 16] >> (port % 64) & 1 != 0;
        if may_be(src_port) || may_be(dst_port) { self.find(src_port, dst_port) } else { None }
    }

    #[inline(never)]
    fn find(&self, src_port: u16, dst_port: u16) -> Option<UdpTunnel> {
        let is_meant = |&&(port, tunnel): &&(u16, UdpTunnel)| {
            port == dst_port || port == src_port && !tunnel.is_known_by_destination()
        };
        self.ports.iter().find(is_meant).map(|&(_, tunnel)| tunnel)
    }
}
