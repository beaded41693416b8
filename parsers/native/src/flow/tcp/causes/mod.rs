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
mod growth;
mod hops;
mod host_queue;
mod interval;
mod ledger;
mod moment;
mod nearest;
mod network;
mod pace;
mod path;
mod policer;
mod sender_clock;
mod sender_rounds;
mod shared_queue;
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
pub use sender_rounds::SenderRound;
pub use shared_queue::tell_shared_queues;
pub use view::View;
use waits::Waits;

use std::io;

use super::{Connection, Outcome};
use crate::packet::event::Packet;
use crate::packet::key::Side;

/// What both sides of every connection waited for, indexed by flow number.
#[derive(Debug)]
pub struct Ledgers {
    flows: Vec<[Option<Box<View>>; 2]>,
    /// Whether rounds are kept as senders saw them where a capture is away from these.
    wants_rounds: bool,
    /// How many more waits and laps are kept.
    left: usize,
    /// Packets that came after those of which anything was kept.
    pub left_out: u64,
    /// What held each direction back, by flow, once that was found.
    pub explained: io::Result<Vec<ExplainedDirection>>,
}

impl Ledgers {
    /// Empty, for at most so many waits, laps and rounds, if these are wanted.
    pub fn new(limit: usize, wants_rounds: bool) -> Self {
        let not_yet = io::Error::other("what held flows back was not looked for");
        Self { flows: Vec::new(), wants_rounds, left: limit, left_out: 0, explained: Err(not_yet) }
    }

    /// What a side saw, up to the last packet of its flow; None if it sent no data.
    pub fn get(&self, flow: u32, side: Side) -> Option<&View> {
        let view = self.flows.get(flow as usize)?.get(side as usize)?.as_deref();
        view.filter(|view| view.waits.has_data())
    }

    /// The same, to be explained.
    pub fn get_mut(&mut self, flow: u32, side: Side) -> Option<&mut View> {
        let view = self.flows.get_mut(flow as usize)?.get_mut(side as usize)?.as_deref_mut();
        view.filter(|view| view.waits.has_data())
    }

    /// The rounds that a side saw, which are not kept.
    pub fn take_rounds(&mut self, flow: u32, side: Side) -> Vec<SenderRound> {
        self.get_mut(flow, side).map(|view| std::mem::take(&mut view.rounds)).unwrap_or_default()
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
            self.flows.resize_with(index + 1, Default::default);
        }
        let Some(both) = self.flows.get_mut(index) else { return };
        let stamp = packet.network.tcp().and_then(|tcp| tcp.options.timestamp);
        for (of, view) in [Side::Low, Side::High].into_iter().zip(both) {
            let view = view.get_or_insert_with(|| Box::new(View::new(self.wants_rounds)));
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
        self.flows.iter_mut().for_each(finish);
    }

    /// No packet of a flow follows.
    pub fn finish_flow(&mut self, flow: u32) {
        self.flows.get_mut(flow as usize).into_iter().for_each(finish);
    }
}

/// Add to what many flows have one of: a vector makes room for four.
fn push<T>(kept: &mut Vec<T>, new: T) {
    if kept.is_empty() {
        kept.reserve_exact(1);
    }
    kept.push(new);
}

/// Keep nothing of a side without data.
fn finish(both: &mut [Option<Box<View>>; 2]) {
    for view in both {
        match view {
            Some(seen) if seen.waits.has_data() => seen.finish(),
            _ => *view = None,
        }
    }
}
