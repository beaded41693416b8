//! The encapsulations around a packet.

use serde::{Deserialize, Serialize};

use super::encapsulation::{Encapsulation, Lane};
use super::event::{Endpoints, Fragment};

/// Numbers of one header after the other, from the outside; of longer stacks the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    numbers: [u32; Self::MOST],
    length: u8,
}

impl Stack {
    /// Numbers that are kept.
    pub const MOST: usize = 8;

    pub fn push(&mut self, number: u32) {
        if let Some(place) = self.numbers.get_mut(usize::from(self.length)) {
            *place = number;
            self.length += 1;
        }
    }

    pub fn numbers(&self) -> &[u32] {
        self.numbers.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// As `16/20`; None if there are none.
    pub fn text(&self) -> Option<String> {
        let words: Vec<String> = self.numbers().iter().map(u32::to_string).collect();
        (!words.is_empty()).then(|| words.join("/"))
    }
}

/// An outer packet that is the first fragment of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OuterFragment {
    /// The ends and the protocol of the fragmented packet.
    pub endpoints: Endpoints,
    pub fragment: Fragment,
    /// Where the fragmented packet is itself.
    pub lane: Lane,
    /// Bytes of its payload before the inner packet's transport header.
    pub before: u32,
    /// Payload of the inner IP packet, of which the fragment has a part.
    pub inner_payload: u32,
}

/// What carried a packet. Numbers of one kind are those of the innermost layer that has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunnel {
    layers: Stack,
    /// Network identifier of VXLAN and Geneve, virtual subnet of NVGRE, service of PBB.
    pub vni: Option<u32>,
    /// Tunnel endpoint identifier of GTP-U.
    pub teid: Option<u32>,
    /// Key of GRE.
    pub gre_key: Option<u32>,
    /// MPLS labels, the top one first.
    pub labels: Stack,
    /// VLAN identifiers, also of packets that no tunnel carries.
    pub vlans: Stack,
    /// Ends of the innermost IP header around the packet.
    pub outer: Option<Endpoints>,
    pub lane: Lane,
    pub outer_fragment: Option<OuterFragment>,
}

impl Tunnel {
    /// Add a layer inside of those before.
    pub fn enter(&mut self, layer: Encapsulation) {
        self.layers.push(layer as u32);
    }

    /// Whether the packet was in neither tunnel nor VLAN.
    pub fn is_none(&self) -> bool {
        self.layers.length == 0 && self.vlans.length == 0
    }

    /// Whether a mirror's copies are inside: where they are sent to says nothing of the packet.
    pub fn is_mirror(&self) -> bool {
        self.layers.numbers().last() == Some(&(Encapsulation::Erspan as u32))
    }

    /// Names of the layers from the outside, as `vxlan` or `gre/mpls`; None without any.
    pub fn name(&self) -> Option<String> {
        let name = |&layer: &u32| Encapsulation::ALL.get(layer as usize).map(|layer| layer.name());
        let names: Vec<&str> = self.layers.numbers().iter().filter_map(name).collect();
        (!names.is_empty()).then(|| names.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_layers_are_named_from_the_outside() {
        let mut tunnel = Tunnel::default();
        assert_eq!((tunnel.name(), tunnel.labels.text()), (None, None));
        tunnel.enter(Encapsulation::Gre);
        tunnel.enter(Encapsulation::Mpls);
        for label in 16..30 {
            tunnel.labels.push(label);
        }
        assert_eq!(tunnel.name().as_deref(), Some("gre/mpls"));
        assert_eq!(tunnel.labels.text().as_deref(), Some("16/17/18/19/20/21/22/23"));
    }
}
