//! How far away a sender is at most: what echoes the timestamp of a packet (RFC 7323 section 4.3) left after this came.
//!
//! The handshake may have waited in a queue, or for the address of a router. Only data of a busy sender are timed
//! otherwise, but whatever else echoes a timestamp is late by no less than the way.

use crate::packet::seq::SeqNumber;

/// The shortest time until an echo.
#[derive(Debug, Default)]
pub struct Nearest {
    /// The value of a packet of the other side, and when it passed.
    asked: Option<(u32, i64)>,
    least_ns: Option<i64>,
}

impl Nearest {
    /// A packet with the value and the echo of a timestamp passes, from the sender itself if it `is_own`.
    pub fn on_packet(&mut self, time_ns: i64, stamp: Option<(u32, u32)>, is_own: bool) {
        let Some((value, echo)) = stamp else { return };
        match self.asked {
            None if !is_own => self.asked = Some((value, time_ns)),
            Some((asked, asked_ns)) if is_own && SeqNumber(echo).since(SeqNumber(asked)) >= 0 => {
                self.asked = None;
                let took_ns = time_ns.saturating_sub(asked_ns);
                // A clock that goes back tells nothing.
                if took_ns > 0 {
                    self.least_ns = Some(self.least_ns.map_or(took_ns, |least_ns| least_ns.min(took_ns)));
                }
            }
            _ => {}
        }
    }

    /// A round-trip time to the sender, or a shorter one that an echo took.
    pub fn bound(&self, near_ns: i64) -> i64 {
        self.least_ns.map_or(near_ns, |least_ns| least_ns.min(near_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_an_echo_bounds_the_way_though_the_handshake_took_longer() {
        let mut nearest = Nearest::default();
        for (time_ns, stamp, is_own) in [
            (0, Some((10, 1)), false),
            (50, Some((20, 9)), true),
            (70, Some((21, 10)), true),
            (100, Some((11, 20)), false),
            (130, Some((12, 20)), false),
            (160, None, true),
            (165, Some((22, 12)), true),
        ] {
            nearest.on_packet(time_ns, stamp, is_own);
        }
        assert_eq!([60, 90].map(|near_ns| nearest.bound(near_ns)), [60, 65]);
    }
}
