//! Gives rows of groups away while a trace is read, once their interval is over.
//!
//! What becomes known of an interval later changes its rows, which are then given again, so that the last of each is
//! what a table has at the end. Released rows stay for that as long as there is room.

use super::state::Analysis;
use crate::flow::intervals::IntervalWidth;
use crate::packet::batch::{Batch, Item};

/// How long after an interval its rows are given: most of what is answered is by then.
const WAIT_NS: i64 = 10_000_000_000;

/// Released rows that always stay, some 50 MB.
const KEPT: usize = 1 << 17;

/// Note which source is read, and return whether its groups are released meanwhile.
pub fn begin_release(analysis: &mut Analysis, source: &str) -> bool {
    let release = analysis.results.release.as_mut();
    release.map(|release| source.clone_into(&mut release.source)).is_some()
}

/// Give the rows of intervals that were over for a while at the end of these batches, which were read last.
pub fn release_ended(analysis: &mut Analysis, batches: &[Batch]) {
    let Some((release, stage)) = analysis.results.release.as_mut().zip(analysis.carried.groups.as_mut())
    else {
        return;
    };
    let width = stage.groups.grouping.every;
    let mut clock_ns = i64::MIN;
    for last_ns in batches.iter().flat_map(Batch::items).map(Item::time_ns) {
        // The earlier of two packets, so that a single wrong time does nothing.
        clock_ns = std::mem::replace(&mut release.last_ns, last_ns).min(last_ns);
    }
    let before_ns = width.start_ns(clock_ns.saturating_sub(WAIT_NS));
    if clock_ns > i64::MIN && release.to_ns > clock_ns {
        // The clock of the capture was ahead and was set back: what follows is given by the clock that it has now.
        release.to_ns = i64::MIN;
    }
    if width == IntervalWidth::Whole || before_ns <= release.to_ns {
        return;
    }
    let ended = (release.to_ns, before_ns);
    analysis.working.settle_backlog(&mut analysis.carried.flows);
    analysis.carried.flows.cut_ended(ended);
    stage.group_all_pieces(&mut analysis.carried.flows);
    release_before(analysis, before_ns);
    if let Some(stage) = &mut analysis.carried.groups {
        stage.groups.leave(before_ns, KEPT);
    }
}

/// Give the rows that were not given, and those that changed since. To be called after the end of the pass.
pub fn release_rest(analysis: &mut Analysis) {
    release_before(analysis, i64::MAX);
}

fn release_before(analysis: &mut Analysis, before_ns: i64) {
    let Some(release) = &mut analysis.results.release else { return };
    release.to_ns = before_ns;
    let Some(stage) = &mut analysis.carried.groups else { return };
    let numbers = stage.groups.released(before_ns);
    if numbers.is_empty() {
        return;
    }
    if let Some(release) = &analysis.results.release {
        (release.take)(analysis, &numbers);
    }
    if let Some(stage) = &mut analysis.carried.groups {
        stage.groups.note_released(&numbers);
    }
}
