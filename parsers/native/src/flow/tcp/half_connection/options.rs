//! TCP options of one side: what its SYN announced, what both agreed on, and its timestamps.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::flow::outstanding::Outstanding;
use crate::packet::event::TcpOptions;
use crate::packet::seq::SeqNumber;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    /// Whether the SYN permitted SACK.
    pub(in crate::flow::tcp) permits_sack: bool,
    pub has_timestamps: bool,
    /// Shift of its windows, if both SYNs announced a scale.
    pub(in crate::flow::tcp) window_shift: Option<u8>,
    /// Whether a SYN of either side did not permit SACK.
    pub(in crate::flow::tcp) refuses_sack: bool,
    /// Newest timestamp value of data and its echo; meaningless before data had one.
    newest_stamp: (u32, u32),
    is_stamped: bool,
    /// Timestamp values not yet echoed, each with the time of the first data that carried it.
    pub(super) unechoed: Outstanding,
}

impl Options {
    /// Note what a SYN announces.
    pub(in crate::flow::tcp) fn on_syn(&mut self, options: &TcpOptions) {
        self.mss = self.mss.or(options.mss);
        self.window_scale = self.window_scale.or(options.window_scale);
        self.permits_sack |= options.sack.is_permitted();
        self.has_timestamps |= options.timestamp.is_some();
    }

    /// Newest timestamp value of data and its echo.
    #[inline(always)]
    pub(in crate::flow::tcp) fn last_stamp(&self) -> Option<(u32, u32)> {
        self.is_stamped.then_some(self.newest_stamp)
    }

    /// Note the value and echo of data: how far the value has grown. None if they are older than the newest.
    #[inline(always)]
    pub(super) fn renew_stamp(&mut self, (value, echo): (u32, u32)) -> Option<i32> {
        // As `stamp_order`, with one comparison where the value has grown.
        let is_older = |last| SeqNumber(echo).since(SeqNumber(last)) < 0;
        let (step, is_older) = self.last_stamp().map_or((1, false), |last| {
            let step = SeqNumber(value).since(SeqNumber(last.0));
            (step, step < 0 || (step == 0 && is_older(last.1)))
        });
        if is_older {
            return None;
        }
        (self.newest_stamp, self.is_stamped) = ((value, echo), true);
        Some(step)
    }

    /// Whether a packet with this timestamp option was sent before or after the newest data of its
    /// side, by value and by echo: neither ever decreases (RFC 7323 sections 4.1 and 4.3).
    #[inline]
    pub(in crate::flow::tcp) fn stamp_order(&self, (value, echo): (u32, u32)) -> Option<[Ordering; 2]> {
        let last = self.last_stamp()?;
        let steps = [(value, last.0), (echo, last.1)];
        Some(steps.map(|(this, last)| SeqNumber(this).since(SeqNumber(last)).cmp(&0)))
    }
}
