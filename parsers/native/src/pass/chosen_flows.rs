//! Flows of which something is collected: a report draws few of many.

use std::sync::Arc;

/// Flows by their number; all unless some were chosen.
#[derive(Clone, Debug, Default)]
pub struct ChosenFlows(Option<Arc<[bool]>>);

impl ChosenFlows {
    /// Only these flows.
    pub fn only(flows: &[u32]) -> Self {
        let mut is_chosen = vec![false; flows.iter().max().map_or(0, |&last| last as usize + 1)];
        for &flow in flows {
            is_chosen[flow as usize] = true;
        }
        Self(Some(is_chosen.into()))
    }

    /// Whether a flow is among them.
    #[inline(always)]
    pub fn has(&self, flow: u32) -> bool {
        self.0.as_ref().is_none_or(|is_chosen| is_chosen.get(flow as usize).is_some_and(|&is| is))
    }
}
