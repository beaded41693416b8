//! A pass with the flows that some rows are of.

use std::io;
use std::ops::Deref;

use crate::flow::Flow;
use crate::flow::ends::LoadedFlows;
use crate::packet::key::Side;
use crate::packet::tunnel::Tunnel;
use crate::pass::Analysis;

/// Flows that are looked at together.
const TOGETHER: u32 = 1 << 12;

#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub analysis: &'a Analysis,
    left: &'a LoadedFlows,
}

impl<'a> Shown<'a> {
    pub fn new(analysis: &'a Analysis, left: &'a LoadedFlows) -> Self {
        Self { analysis, left }
    }

    pub fn flow(self, number: u32) -> &'a Flow {
        match self.left.get(&number) {
            Some(settled) => &settled.flow,
            None => self.analysis.carried.flows.get(number),
        }
    }

    /// What carried the first packet of `side`, if anything.
    pub fn tunnel(self, number: u32, side: Side) -> Option<&'a Tunnel> {
        match self.left.get(&number) {
            Some(settled) => settled.tunnels[side as usize].as_deref(),
            None => self.analysis.carried.flows.tunnel(number, side),
        }
    }
}

impl Deref for Shown<'_> {
    type Target = Analysis;

    fn deref(&self) -> &Analysis {
        self.analysis
    }
}

/// Give all flows, some at a time and in order, to `take`.
pub fn each_flow(analysis: &Analysis, mut take: impl FnMut(Shown<'_>, u32)) -> io::Result<()> {
    let flows = analysis.carried.flows.len() as u32;
    for start in (0..flows).step_by(TOGETHER as usize) {
        let numbers = start..start.saturating_add(TOGETHER).min(flows);
        let left = analysis.carried.flows.load(&mut numbers.clone())?;
        numbers.for_each(|number| take(Shown::new(analysis, &left), number));
    }
    Ok(())
}
