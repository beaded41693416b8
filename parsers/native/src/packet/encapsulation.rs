//! Encapsulations, and which flows inside of them are distinct.

use serde::{Deserialize, Serialize};

named_enum! {
    /// A layer that carries whole packets of another network, or protects them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Encapsulation {
        /// Label stack (RFC 3032), with or without a pseudowire's control word (RFC 4385).
        Mpls = "mpls",
        /// RFC 2784, RFC 2890; version 1 of PPTP (RFC 2637).
        Gre = "gre",
        /// Ethernet over GRE with a virtual subnet (RFC 7637).
        Nvgre = "nvgre",
        /// Mirrored frames over GRE (draft-foschiano-erspan), types I to III.
        Erspan = "erspan",
        /// IPv4 or IPv6 in IPv4 or IPv6 (RFC 2003, RFC 4213, RFC 2473).
        Ipip = "ipip",
        /// RFC 7348.
        Vxlan = "vxlan",
        /// Its generic protocol extension (draft-ietf-nvo3-vxlan-gpe).
        VxlanGpe = "vxlan-gpe",
        /// RFC 8926.
        Geneve = "geneve",
        /// User plane of mobile networks (3GPP TS 29.281).
        GtpU = "gtp-u",
        /// Versions 2 (RFC 2661) and 3 (RFC 3931).
        L2tp = "l2tp",
        /// IPv6 over UDP (RFC 4380).
        Teredo = "teredo",
        /// Authentication header (RFC 4302).
        Ah = "ah",
        /// Encapsulating security payload (RFC 4303) without encryption.
        Esp = "esp",
        /// Network service header (RFC 8300).
        Nsh = "nsh",
        /// Provider backbone bridging (IEEE 802.1ah).
        Pbb = "pbb",
        /// Ethernet in IP (RFC 3378).
        EtherIp = "etherip",
        /// MikroTik's Ethernet over GRE.
        Eoip = "eoip",
    }
}

/// Which flows with one five-tuple are distinct: see `docs/formats.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lane {
    /// Stands for the identifiers that name a network for both directions: VNI, VSID, I-SID, provider VLAN.
    pub network: u64,
    /// Stands for those that each direction has for itself (labels, TEID, keys, sessions) and the outer ends.
    pub path: u64,
}

impl Lane {
    /// That of a packet outside of any tunnel.
    pub const OUTSIDE: Self = Self { network: 0, path: 0 };

    pub fn is_outside(self) -> bool {
        self == Self::OUTSIDE
    }

    /// Add an identifier of a network to those outside of it.
    pub fn enter_network(&mut self, kind: Encapsulation, number: u64) {
        self.network = mixed(self.network, kind as u64 + 1, number);
    }

    /// Add the VLAN of a provider.
    pub fn enter_vlan(&mut self, vlan: u16) {
        self.network = mixed(self.network, 0, vlan.into());
    }

    /// Add an identifier of one direction, or of the tunnel's ends.
    pub fn enter_path(&mut self, kind: Encapsulation, number: u64) {
        self.path = mixed(self.path, kind as u64 + 1, number);
    }
}

/// A hash without a secret, as files of one trace have to agree. Never 0.
fn mixed(before: u64, kind: u64, number: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = (before ^ kind).wrapping_mul(FACTOR);
    hash = (hash ^ hash >> 32 ^ number).wrapping_mul(FACTOR);
    (hash ^ hash >> 29) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_lane_depends_on_kind_number_and_order() {
        let of = |numbers: &[(Encapsulation, u64)]| {
            let mut lane = Lane::OUTSIDE;
            numbers.iter().for_each(|&(kind, number)| lane.enter_network(kind, number));
            lane
        };
        let (vxlan, geneve) = (Encapsulation::Vxlan, Encapsulation::Geneve);
        let lanes = [&[(vxlan, 0)][..], &[(vxlan, 1)], &[(geneve, 1)], &[(vxlan, 1), (geneve, 2)]].map(of);
        for (at, lane) in lanes.iter().enumerate() {
            assert!(!lane.is_outside() && !lanes[at + 1..].contains(lane));
        }
        assert_ne!(of(&[(vxlan, 1), (vxlan, 2)]), of(&[(vxlan, 2), (vxlan, 1)]));
    }
}
