//! Flows that the stretch of time cuts.

use super::Analysis;
use crate::error::{ProblemKind, ReadError};
use crate::input::stretch::REMEMBERED;

named_enum! {
    /// Where a flow has packets outside of the stretch of time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Cut {
        Before = "before",
        Behind = "after",
        Both = "both",
    }
}

impl Analysis {
    /// How many flows began before the stretch, and how many went on behind it.
    pub fn count_cut_flows(&self) -> (usize, usize) {
        let without = |other| self.cut_flows.values().filter(|&&cut| cut != other).count();
        (without(Cut::Behind), without(Cut::Before))
    }

    /// Mark the flows that began before the stretch or went on behind it.
    pub(super) fn find_cut_flows(&mut self) {
        let mut outside = std::mem::take(&mut self.outside);
        if outside.is_empty() {
            return;
        }
        if outside.has_more {
            let message = format!(
                "more than {REMEMBERED} flows outside of the stretch of time: of the others it is not known \
                 whether it cuts them"
            );
            self.bound(ReadError::whole(ProblemKind::Imprecise, message));
        }
        let mut concerned = Vec::new();
        let read = self.flows.for_each(|number, flow| {
            if outside.has(&flow.key()) {
                let begins = flow.transport.tcp.as_ref().is_some_and(|tcp| tcp.syn_ns().is_some());
                concerned.push((number, flow.key(), begins));
            }
        });
        self.note_unread(read);
        for (number, key, begins) in &concerned {
            if outside.take_before(key) && !begins {
                self.cut_flows.insert(*number, Cut::Before);
            }
        }
        for (number, key, _) in concerned.into_iter().rev() {
            if outside.take_behind(&key) {
                let cut = self.cut_flows.entry(number);
                cut.and_modify(|cut| *cut = Cut::Both).or_insert(Cut::Behind);
            }
        }
    }
}
