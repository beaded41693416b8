//! What held a direction back, for tables.

use super::bottleneck::Bottleneck;
use super::cause::{Cause, Sign};
use super::hops::Hops;
use super::ledger::{Stretch, hidden, is_held_by, ledger};
use super::pace::Clock;
use super::view::View;
use crate::packet::key::Side;

/// A direction with data, and the causes that held it back.
#[derive(Debug)]
pub struct ExplainedDirection {
    pub flow: u32,
    pub side: Side,
    pub name: &'static str,
    pub base_rtt_ns: Option<i64>,
    pub hops: Hops,
    /// Whether flights at its sender are estimates, as the capture was elsewhere.
    pub is_estimated: bool,
    start_ns: i64,
    stretches: Box<[Stretch]>,
    /// Why its waits show nothing, if so.
    hides: Option<Sign>,
}

impl ExplainedDirection {
    /// What a side saw, which sent the data of `flow` in the direction `name`, unless a sign hides it; `sees_flight` if
    /// the capture shows all that it had in flight. Its waits are not kept beside that.
    pub fn of(
        view: &mut View,
        (flow, side, name): (u32, Side, &'static str),
        hides: Option<Sign>,
        sees_flight: bool,
    ) -> Self {
        let is_estimated = view.is_away() && (view.waits.is_behind_queue || !sees_flight);
        let waits = &mut view.waits;
        let stretches = hides.map_or_else(|| ledger(waits), |sign| hidden(waits, sign));
        waits.spans = Vec::new();
        Self {
            flow,
            side,
            name,
            base_rtt_ns: waits.path.base_rtt_ns().filter(|_| hides.is_none()),
            hops: view.hops,
            is_estimated,
            start_ns: waits.start_ns.unwrap_or(0),
            stretches: stretches.into(),
            hides,
        }
    }

    /// How many stretches it has.
    pub fn count(&self) -> usize {
        self.stretches.len()
    }

    /// Its stretches in order, each with the time at which it began.
    pub fn stretches(&self) -> impl Iterator<Item = (i64, Stretch)> {
        (0..self.count()).filter_map(|index| self.stretch(index))
    }

    /// One of them.
    pub fn stretch(&self, index: usize) -> Option<(i64, Stretch)> {
        let before = index.checked_sub(1).and_then(|before| self.stretches.get(before));
        let start_ns = before.map_or(self.start_ns, |before| before.end_ns);
        Some((start_ns, *self.stretches.get(index)?))
    }

    /// Whether a queue held it back at some time.
    pub fn stands_in_queue(&self) -> bool {
        self.stretches.iter().any(|stretch| stretch.cause.is_of_queue())
    }

    /// Change its stretches, each with the time at which it began; those that become alike are one.
    pub fn change_causes(&mut self, change: impl Fn(i64, &mut Stretch)) {
        let mut start_ns = self.start_ns;
        let mut changed: Vec<Stretch> = Vec::with_capacity(self.stretches.len());
        for mut stretch in std::mem::take(&mut self.stretches) {
            change(start_ns, &mut stretch);
            start_ns = stretch.end_ns;
            match changed.last_mut().filter(|last| last.is_alike(&stretch)) {
                Some(last) => last.extend(&stretch),
                None => changed.push(stretch),
            }
        }
        self.stretches = changed.into();
    }

    /// Whether its waits show anything.
    pub fn is_shown(&self) -> bool {
        self.hides.is_none()
    }

    /// What it shows of the bottleneck of its path, by what its side saw, or why it shows nothing.
    pub fn bottleneck(&self, view: &View) -> Result<Bottleneck, Sign> {
        self.hides.map_or_else(|| Ok(Bottleneck::of(&view.waits, &self.stretches)), Err)
    }

    /// Whether causes of one kind held it back all the time from `begin_ns` to `end_ns`.
    pub fn is_held_by(&self, kind: fn(Cause) -> bool, (begin_ns, end_ns): (i64, i64)) -> bool {
        is_held_by(kind, &self.stretches, (begin_ns, end_ns))
    }

    /// Whether its sender paces its data: most laps in which it had data and that tell show that.
    pub fn is_paced(&self, view: &View) -> bool {
        let (mut paced, mut clocked) = (0, 0);
        for lap in view.waits.path.laps.iter().filter(|lap| !lap.is_repairing) {
            let has_data = || self.is_held_by(Cause::has_data, (lap.start_ns(), lap.end_ns));
            match lap.clock {
                Some(Clock::Pace(_)) if has_data() => paced += 1,
                Some(Clock::Acknowledgements) if has_data() => clocked += 1,
                _ => {}
            }
        }
        paced > clocked
    }
}
