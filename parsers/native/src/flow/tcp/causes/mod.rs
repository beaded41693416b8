//! Why a sender was no faster: every instant of a flow has one cause.
//!
//! A packet shows a [`Moment`] of the data of each side. [`view`] brings moments into the order in which
//! the sender saw them, if the capture is elsewhere. [`waits`] takes them one by one and says what the
//! sender waited for between its data; [`path`] what the path did meanwhile. At the end
//! [`ledger`] gives each stretch a [`Cause`], with the help of [`network`] where the congestion window
//! was the limit, and [`bottleneck`] tells what the path is like. It is only done
//! if a table of causes or of rounds is wanted: there is a wait for nearly every packet.

mod bottleneck;
mod cause;
mod explained;
mod hops;
mod interval;
mod ledger;
mod moment;
mod network;
mod pace;
mod path;
mod policer;
mod sender_clock;
#[cfg(test)]
mod tests;
mod view;
mod waits;

pub use bottleneck::{Bottleneck, Discipline, Untold};
pub use cause::{Cause, Sign};
pub use explained::ExplainedDirection;
pub use hops::Hops;
pub use ledger::Stretch;
use moment::{Event, Moment};
pub use pace::Clock;
pub use path::Lap;
pub use view::View;
use waits::Waits;

use std::io;
use std::sync::OnceLock;

use super::{Connection, Outcome};
use crate::packet::event::Packet;
use crate::packet::key::Side;

/// What both sides of every connection waited for, indexed by flow number.
#[derive(Debug)]
pub struct Ledgers {
    flows: Vec<Option<Box<[View; 2]>>>,
    /// How many more waits and laps are kept.
    left: usize,
    /// Packets that came after those of which anything was kept.
    pub left_out: u64,
    /// What held each direction back, once a table needs it.
    explained: OnceLock<io::Result<Vec<ExplainedDirection>>>,
}

impl Ledgers {
    /// Empty, for at most so many waits and laps.
    pub fn new(limit: usize) -> Self {
        Self { flows: Vec::new(), left: limit, left_out: 0, explained: OnceLock::new() }
    }

    /// What a side saw, up to the last packet of its flow; None if it sent no data.
    pub fn get(&self, flow: u32, side: Side) -> Option<&View> {
        self.flows.get(flow as usize)?.as_ref()?.get(side as usize).filter(|view| view.waits.has_data())
    }

    /// What held each direction back, by flow; `find` finds it once.
    pub fn explained(
        &self,
        find: impl FnOnce() -> io::Result<Vec<ExplainedDirection>>,
    ) -> io::Result<&[ExplainedDirection]> {
        let found = self.explained.get_or_init(find).as_ref();
        found.map(Vec::as_slice).map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    /// Take a packet from `side` of `flow`, after its connection processed it and returned
    /// `outcome`.
    pub fn on_segment(
        &mut self,
        (flow, side): (u32, Side),
        connection: &Connection,
        packet: &Packet,
        outcome: &Outcome,
    ) {
        if self.left == 0 {
            self.left_out += 1;
            return;
        }
        let index = flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, || None);
        }
        let Some(both) = self.flows.get_mut(index).map(|both| both.get_or_insert_default()) else { return };
        let stamp = packet.network.tcp().and_then(|tcp| tcp.options.timestamp);
        for (of, view) in [Side::Low, Side::High].into_iter().zip(both.iter_mut()) {
            if of == side {
                view.hops.on_packet(packet.time_ns, packet.network.ttl);
            }
            if let Some(moment) = Moment::of(connection, of, (side, packet), outcome) {
                let before = view.kept();
                view.on_moment(moment, of == side, stamp, connection.half(of).near_ns());
                self.left = self.left.saturating_add(before).saturating_sub(view.kept());
            }
        }
    }

    /// No packet follows.
    pub fn finish(&mut self) {
        let all = self.flows.iter_mut().flatten().flat_map(|both| both.iter_mut());
        all.filter(|view| view.waits.has_data()).for_each(View::finish);
    }
}
