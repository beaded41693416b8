//! MPLS label stacks (RFC 3032), and what follows the last label: nothing says what it is.

use super::super::ether_type::{IPV4, IPV6};
use super::super::{Bytes, ip, u32_at};
use super::frame_shape::is_frame;
use super::{MALFORMED, Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::{Layer, Reason, Stop};
use crate::packet::tunnel::Tunnel;

/// The most labels of a stack; routers push a handful.
const MOST_LABELS: usize = 32;
/// Labels below are instructions to a router (RFC 7274).
const FIRST_LABEL: u32 = 16;
/// Before a label that only spreads flows over links (RFC 6790).
const ENTROPY_INDICATOR: u32 = 7;
const CONTROL_WORD: usize = 4;
const ETHER_TYPE: u32 = 0x8847;

pub fn labels<'a>(mut bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    const LAST: u32 = 0x100;
    tunnel.enter(Encapsulation::Mpls);
    tunnel.labels = Default::default();
    let (mut before, mut bottom) = (None, None);
    for _ in 0..MOST_LABELS {
        let entry = u32_at(need(bytes, 4)?, 0);
        bytes = bytes.after(4);
        let label = entry >> 12;
        tunnel.labels.push(label);
        if label >= FIRST_LABEL && before != Some(ENTROPY_INDICATOR) {
            bottom = Some(label);
        }
        before = Some(label);
        if entry & LAST != 0 {
            if let Some(label) = bottom {
                tunnel.lane.enter_path(Encapsulation::Mpls, label.into());
            }
            return behind_labels(bytes);
        }
    }
    Err(MALFORMED)
}

/// IP by its version, unless an Ethernet frame fits better; with 0 a pseudowire's control word (RFC 4385), or
/// the first half of a frame's destination.
fn behind_labels(bytes: Bytes<'_>) -> Step<'_> {
    match need(bytes, 1)?[0] >> 4 {
        4 if ip::is_certainly(bytes) || !is_frame(bytes) => Ok((Next::EtherType(IPV4), bytes)),
        6 if ip::is_certainly(bytes) || !is_frame(bytes) => Ok((Next::EtherType(IPV6), bytes)),
        0 if is_frame(bytes.after(CONTROL_WORD)) => Ok((Next::Ethernet, bytes.after(CONTROL_WORD))),
        _ if is_frame(bytes) => Ok((Next::Ethernet, bytes)),
        _ => Err(Stop { layer: Layer::Tunnel, reason: Reason::Unknown(ETHER_TYPE) }),
    }
}
