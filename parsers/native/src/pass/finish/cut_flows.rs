//! Flows that the stretch of time cuts.

use std::collections::BTreeMap;
use std::io;

use crate::error::{ProblemKind, ReadError};
use crate::flow::FlowTable;
use crate::input::stretch::{OutsideFlows, REMEMBERED};

named_enum! {
    /// Where a flow has packets outside of the stretch of time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Cut {
        Before = "before",
        Behind = "after",
        Both = "both",
    }
}

/// Flows that began before the stretch or went on after it, by number.
#[derive(Default)]
pub struct CutFlows(BTreeMap<u32, Cut>);

impl CutFlows {
    pub(super) fn find(mut outside: OutsideFlows, flows: &FlowTable) -> (Self, io::Result<()>) {
        let mut concerned = Vec::new();
        let read = flows.for_each(|number, flow| {
            if outside.has(&flow.key()) {
                let begins = flow.transport.tcp.as_ref().is_some_and(|tcp| tcp.syn_ns().is_some());
                concerned.push((number, flow.key(), begins));
            }
        });
        let mut cut_flows = BTreeMap::new();
        for (number, key, begins) in &concerned {
            if outside.take_before(key) && !begins {
                cut_flows.insert(*number, Cut::Before);
            }
        }
        for (number, key, _) in concerned.into_iter().rev() {
            if outside.take_behind(&key) {
                let cut = cut_flows.entry(number);
                cut.and_modify(|cut| *cut = Cut::Both).or_insert(Cut::Behind);
            }
        }
        (Self(cut_flows), read)
    }

    pub fn get(&self, flow: u32) -> Option<Cut> {
        self.0.get(&flow).copied()
    }

    /// How many flows began before the stretch, and how many went on after it.
    pub fn count(&self) -> (usize, usize) {
        let without = |other| self.0.values().filter(|&&cut| cut != other).count();
        (without(Cut::Behind), without(Cut::Before))
    }
}

/// Say that not all flows outside of the stretch are known.
pub(super) fn unknown_cuts() -> ReadError {
    let message = format!(
        "more than {REMEMBERED} flows outside of the stretch of time: of the others it is not known \
         whether it cuts them"
    );
    ReadError::whole(ProblemKind::Imprecise, message)
}
