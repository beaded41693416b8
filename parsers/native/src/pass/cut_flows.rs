//! Flows that the stretch of time cuts.

use super::Analysis;

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
        let numbers = 0..self.flows.len() as u32;
        for number in numbers.clone() {
            let flow = self.flows.get(number);
            let is_earlier = outside.take_before(&flow.key());
            let begins = flow.tcp.as_ref().is_some_and(|tcp| tcp.syn_ns().is_some());
            if is_earlier && !begins {
                self.cut_flows.insert(number, Cut::Before);
            }
        }
        for number in numbers.rev() {
            if outside.take_behind(&self.flows.get(number).key()) {
                let cut = self.cut_flows.entry(number);
                cut.and_modify(|cut| *cut = Cut::Both).or_insert(Cut::Behind);
            }
        }
    }
}
