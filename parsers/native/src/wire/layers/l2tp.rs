//! L2TP, versions 2 (RFC 2661) and 3 (RFC 3931), over UDP and over IP.

use super::super::ether_type::{CUSTOMER_TAG, IPV4, IPV6, MPLS, SERVICE_TAGS};
use super::super::{Bytes, ip, u16_at, u32_at};
use super::{MALFORMED, Next, PPP_ADDRESS, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::tunnel::Tunnel;

const CONTROL: u16 = 0x8000;
const HAS_LENGTH: u16 = 0x4000;
const HAS_SEQUENCE: u16 = 0x0800;
const HAS_OFFSET: u16 = 0x0200;
const VERSION: u16 = 0x000f;
/// Bytes of cookie and sublayer that only the ends know.
const UNKNOWN_LENGTHS: [usize; 4] = [0, 4, 8, 12];

/// Of a fragment the packet inside is cut.
pub fn over_udp<'a>(bytes: Bytes<'a>, is_fragment: bool, tunnel: &mut Tunnel) -> Step<'a> {
    let flags = u16_at(need(bytes, 2)?, 0);
    match flags & VERSION {
        _ if flags & CONTROL != 0 => Err(MALFORMED),
        2 => version_2(flags, bytes, tunnel),
        3 => {
            need(bytes, 4)?;
            session(bytes.after(4), is_fragment, tunnel)
        }
        _ => Err(MALFORMED),
    }
}

/// Over IP the session follows at once; session 0 is for control.
pub fn over_ip<'a>(bytes: Bytes<'a>, is_fragment: bool, tunnel: &mut Tunnel) -> Step<'a> {
    session(bytes, is_fragment, tunnel)
}

fn version_2<'a>(flags: u16, bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let length = |bit: u16, bytes: usize| if flags & bit != 0 { bytes } else { 0 };
    let session_at = 2 + length(HAS_LENGTH, 2);
    let mut end = session_at + 4 + length(HAS_SEQUENCE, 4);
    if flags & HAS_OFFSET != 0 {
        end += 2 + usize::from(u16_at(need(bytes, end + 2)?, end));
    }
    let header = need(bytes, end)?;
    enter(u32_at(header, session_at), tunnel);
    Ok((Next::Ppp, bytes.after(end)))
}

/// Version 3: the cookie's length is not in the packet, so a packet after it has to be certain.
fn session<'a>(bytes: Bytes<'a>, is_fragment: bool, tunnel: &mut Tunnel) -> Step<'a> {
    let session = u32_at(need(bytes, 4)?, 0);
    if session == 0 {
        return Err(MALFORMED);
    }
    for unknown in UNKNOWN_LENGTHS {
        let inside = bytes.after(4 + unknown);
        // As if all of it had come. Then the length of a bare IPv6 packet, which has no checksum, proves nothing.
        let whole = if is_fragment { Bytes { on_wire: u32::MAX, ..inside } } else { inside };
        let proves = |next: &Next| {
            !is_fragment || *next != Next::Ip || inside.captured.first().is_some_and(|first| first >> 4 == 4)
        };
        if let Some(next) = certain(whole).filter(proves) {
            enter(session, tunnel);
            return Ok((next, inside));
        }
    }
    Err(MALFORMED)
}

/// Ethernet, PPP or IP, if an IP header follows whose length and checksum are right.
fn certain(bytes: Bytes<'_>) -> Option<Next> {
    let is_ip_at = |at| ip::is_certainly(bytes.after(at));
    if packet_in_frame(bytes).is_some_and(is_ip_at) {
        return Some(Next::Ethernet);
    }
    if bytes.captured.starts_with(&PPP_ADDRESS) && is_ip_at(4) {
        return Some(Next::Ppp);
    }
    is_ip_at(0).then_some(Next::Ip)
}

/// Where the IP packet of a frame begins, after VLAN tags and labels, if its types lead to one.
fn packet_in_frame(bytes: Bytes<'_>) -> Option<usize> {
    const MOST_TAGS: usize = 4;
    const LAST_LABEL: u8 = 1;
    let u16_at = |at: usize| bytes.captured.get(at..at + 2).map(|field| u16_at(field, 0));
    let mut at = 12;
    for _ in 0..MOST_TAGS {
        match u16_at(at)? {
            IPV4 | IPV6 => return Some(at + 2),
            tag if tag == CUSTOMER_TAG || SERVICE_TAGS.contains(&tag) => at += 4,
            labels if MPLS.contains(&labels) => {
                let mut stack = bytes.captured.get(at + 2..)?.chunks_exact(4);
                let last = stack.position(|label| label[2] & LAST_LABEL != 0)?;
                return Some(at + 2 + 4 * (last + 1));
            }
            _ => return None,
        }
    }
    None
}

fn enter(session: u32, tunnel: &mut Tunnel) {
    tunnel.enter(Encapsulation::L2tp);
    tunnel.lane.enter_path(Encapsulation::L2tp, session.into());
}
