//! What held each direction back, for all tables that tell it.

use std::io;

use super::shown::{Shown, each_flow};
use crate::flow::direction_name;
use crate::flow::tcp::causes::{ExplainedDirection, Sign, View};
use crate::flow::tcp::vantage::{BELIEVED, Vantage};
use crate::packet::key::Side;
use crate::pass::Analysis;

/// What held each direction with data back, by flow; none if that was not collected.
pub(super) fn explained(analysis: &Analysis) -> io::Result<&[ExplainedDirection]> {
    let Some(ledgers) = &analysis.results.ledgers else { return Ok(&[]) };
    ledgers.explained(|| {
        let mut all = Vec::new();
        each_flow(analysis, |shown, flow| {
            let forward = shown.flow(flow).forward();
            for side in [forward, forward.other()] {
                if let Some(view) = ledgers.get(flow, side) {
                    let place = (flow, side, direction_name(side, forward));
                    all.push(ExplainedDirection::of(view, place, hidden_by(shown, flow, side, view)));
                }
            }
        })?;
        Ok(all)
    })
}

/// Those of one flow.
pub(super) fn explained_of(all: &[ExplainedDirection], flow: u32) -> &[ExplainedDirection] {
    let first = all.partition_point(|of| of.flow < flow);
    let end = all.partition_point(|of| of.flow <= flow);
    all.get(first..end).unwrap_or_default()
}

/// Why the waits of a side show nothing, if so.
fn hidden_by(shown: Shown<'_>, number: u32, side: Side, view: &View) -> Option<Sign> {
    let flow = shown.flow(number);
    let half = flow.transport.tcp.as_deref()?.half(side);
    // A doubtful place is not taken for the sender's: from another one a wrong cause looks certain. But where
    // the sender's distance is known, the view is the sender's.
    let vantage = shown.options.vantage_of(flow, side);
    let is_seen_from = |(place, confidence)| match view.is_known() {
        true => place == Vantage::Sender || confidence < 1.0 || view.waits.is_estimated,
        false => place == Vantage::Sender && confidence >= BELIEVED,
    };
    if !vantage.is_none_or(is_seen_from) {
        Some(Sign::AwayFromSender)
    } else if half.gap_bytes() > 0 || half.ends_unseen() {
        Some(Sign::MissingData)
    } else if flow.direction(side.other()).packets == 0 {
        Some(Sign::NoAcknowledgements)
    } else {
        view.waits.has_stepped.then_some(Sign::ClockStep)
    }
}
