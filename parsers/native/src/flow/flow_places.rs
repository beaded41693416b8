//! Where the state of a flow is: in which group of flows, and at which index there.
//!
//! Several groups are filled in turns, so that even a few flows are in different ones: a group is what one thread
//! follows at a time.

/// Flows in a group, as a power of two: with unacknowledged data 400 kB, which fit in the
/// second-level cache.
const GROUP_BITS: u32 = 8;

/// Groups that are filled in turns, as a power of two.
const TURN_BITS: u32 = 4;

/// Flows in a group.
pub const FLOWS: usize = 1 << GROUP_BITS;

/// Groups that are filled in turns.
pub const GROUPS_IN_TURNS: usize = 1 << TURN_BITS;

/// Flows in the groups that are filled in turns: the next such groups begin after them.
pub const FLOWS_IN_TURNS: u32 = 1 << (GROUP_BITS + TURN_BITS);

/// Number of the group of a flow.
#[inline(always)]
pub fn group_of(flow: u32) -> usize {
    (flow >> (GROUP_BITS + TURN_BITS) << TURN_BITS | flow & ((1 << TURN_BITS) - 1)) as usize
}

/// Index of a flow in its group.
#[inline(always)]
pub fn index_in_group(flow: u32) -> usize {
    (flow >> TURN_BITS) as usize % FLOWS
}

/// Index of a flow where the flows of each group follow those of the group before.
#[inline(always)]
pub fn index_by_group(flow: u32) -> usize {
    group_of(flow) * FLOWS + index_in_group(flow)
}

/// The flow at an index of a group.
pub fn flow_at(group: usize, index: usize) -> u32 {
    let turns = (group >> TURN_BITS << (GROUP_BITS + TURN_BITS)) as u32;
    turns + (index << TURN_BITS) as u32 + (group % GROUPS_IN_TURNS) as u32
}

/// How many of the first `flows` are in a group.
pub fn flows_in_group(group: usize, flows: u32) -> usize {
    let first = flow_at(group, 0);
    let behind = flows.saturating_sub(first) as usize;
    behind.div_ceil(GROUPS_IN_TURNS).min(FLOWS)
}

/// How many groups the first `flows` have.
pub fn groups_of(flows: u32) -> usize {
    let begun = (flows % FLOWS_IN_TURNS) as usize;
    (flows / FLOWS_IN_TURNS) as usize * GROUPS_IN_TURNS + begun.min(GROUPS_IN_TURNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_each_flow_has_a_place_of_its_own_and_groups_are_filled_in_order() {
        let mut opened: Vec<usize> = Vec::new();
        for flow in 0..3 * FLOWS_IN_TURNS {
            let (group, index) = (group_of(flow), index_in_group(flow));
            assert_eq!(flow_at(group, index), flow);
            if index == 0 {
                assert_eq!(group, opened.len());
                opened.push(0);
            }
            assert_eq!(opened[group], index);
            opened[group] += 1;
            assert_eq!(groups_of(flow + 1), opened.len());
        }
        for flows in [0, 1, 15, 16, 17, 300, FLOWS_IN_TURNS - 1, FLOWS_IN_TURNS, FLOWS_IN_TURNS + 3] {
            let groups: Vec<usize> = (0..50).map(|group| flows_in_group(group, flows)).collect();
            assert_eq!(groups.iter().sum::<usize>(), flows as usize);
            assert!(groups.iter().take(groups_of(flows)).all(|&flows| flows > 0));
        }
        assert_eq!((group_of(7), group_of(23), index_in_group(23)), (7, 7, 1));
    }
}
