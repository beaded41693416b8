//! Columns of flows in tunnels and VLANs.

use super::FlowRow;
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::Endpoints;
use crate::packet::key::address_text;
use crate::packet::tunnel::Tunnel;
use crate::tables::Column;
use crate::tables::column::column;

impl<'a> FlowRow<'a> {
    pub(super) const TUNNEL: &'a [Column<Self>] = &[
        column(
            "tunnel",
            "",
            "encapsulations around the first packet of this direction, from the outside, joined by `/`",
        )
        .one_of(|| Encapsulation::ALL.map(Encapsulation::name).to_vec())
        .null_when("none around it")
        .text(|row| row.tunnel()?.name()),
        column(
            "vni",
            "",
            "virtual network of VXLAN and Geneve, subnet of NVGRE, service of PBB: the innermost",
        )
        .null_when("none of these around it")
        .u32(|row| row.tunnel()?.vni),
        column("teid", "", "tunnel endpoint identifier of GTP-U, which each direction has for itself")
            .null_when("no GTP-U around it")
            .u32(|row| row.tunnel()?.teid),
        column("gre_key", "", "key of GRE")
            .null_when("no GRE around it, or none with a key")
            .u32(|row| row.tunnel()?.gre_key),
        column("mpls_labels", "", "labels of the innermost MPLS stack, the top one first, as `16004/24001`")
            .null_when("no MPLS around it")
            .text(|row| row.tunnel()?.labels.text()),
        column("vlans", "", "VLAN identifiers, from the outside, as `100/20`; also without a tunnel")
            .null_when("no VLAN tag")
            .text(|row| row.tunnel()?.vlans.text()),
        column("outer_src", "", "source of the innermost IP header around the packet")
            .null_when("no IP around it")
            .text(|row| Some(row.outer_address(row.tunnel()?.outer?, |ends| ends.src))),
        column("outer_dst", "", "destination of that header")
            .null_when("as outer_src")
            .text(|row| Some(row.outer_address(row.tunnel()?.outer?, |ends| ends.dst))),
    ];

    fn tunnel(&self) -> Option<&Tunnel> {
        self.analysis.tunnel(self.index(), self.side)
    }

    fn outer_address(&self, outer: Endpoints, end: fn(&Endpoints) -> u128) -> String {
        address_text(end(&outer), outer.family, self.notation)
    }
}
