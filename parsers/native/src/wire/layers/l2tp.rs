//! L2TP, versions 2 (RFC 2661) and 3 (RFC 3931), over UDP and over IP.

use super::super::ether_type::{IPV4, IPV6};
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

pub fn over_udp<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let flags = u16_at(need(bytes, 2)?, 0);
    match flags & VERSION {
        _ if flags & CONTROL != 0 => Err(MALFORMED),
        2 => version_2(flags, bytes, tunnel),
        3 => {
            need(bytes, 4)?;
            session(bytes.behind(4), tunnel)
        }
        _ => Err(MALFORMED),
    }
}

/// Over IP the session follows at once; session 0 is for control.
pub fn over_ip<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    session(bytes, tunnel)
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
    Ok((Next::Ppp, bytes.behind(end)))
}

/// Version 3: the cookie's length is not in the packet, so a packet behind it has to be certain.
fn session<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let session = u32_at(need(bytes, 4)?, 0);
    if session == 0 {
        return Err(MALFORMED);
    }
    for unknown in UNKNOWN_LENGTHS {
        let inside = bytes.behind(4 + unknown);
        if let Some(next) = certain(inside) {
            enter(session, tunnel);
            return Ok((next, inside));
        }
    }
    Err(MALFORMED)
}

/// Ethernet, PPP or IP, if an IP header follows whose length and checksum are right.
fn certain(bytes: Bytes<'_>) -> Option<Next> {
    const FRAME: usize = 14;
    const TAGGED: usize = FRAME + 4;
    let is_ip_at = |at| ip::is_certainly(bytes.behind(at));
    let ether_type = |at: usize| bytes.captured.get(at..at + 2).map(|field| u16_at(field, 0));
    let is_typed = |at| matches!(ether_type(at), Some(IPV4 | IPV6));
    if is_typed(FRAME - 2) && is_ip_at(FRAME) || is_typed(TAGGED - 2) && is_ip_at(TAGGED) {
        return Some(Next::Ethernet);
    }
    if bytes.captured.starts_with(&PPP_ADDRESS) && is_ip_at(4) {
        return Some(Next::Ppp);
    }
    is_ip_at(0).then_some(Next::Ip)
}

fn enter(session: u32, tunnel: &mut Tunnel) {
    tunnel.enter(Encapsulation::L2tp);
    tunnel.lane.enter_path(Encapsulation::L2tp, session.into());
}
