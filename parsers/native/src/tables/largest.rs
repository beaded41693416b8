//! The largest flows of a table, without a copy of its rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_schema::{ArrowError, DataType};

use super::Rows;

const ROWS_AT_ONCE: usize = 16_384;

/// How the rows of one flow are put together.
#[derive(Clone, Copy)]
pub enum Over {
    Sum,
    Max,
}

/// The rows of a flow, ordered by its value; of equal ones the first is the largest.
#[derive(PartialEq)]
struct Candidate {
    value: f64,
    rows: Range<usize>,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.value.total_cmp(&other.value).then(other.rows.start.cmp(&self.rows.start))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The value and rows of the `limit` flows with the largest value of `column`, largest first. The rows of
/// a flow are adjacent; where all are null, the flow comes last.
pub fn largest_flows(
    rows: &dyn Rows,
    column: &str,
    over: Over,
    limit: usize,
) -> Result<Vec<(f64, Range<usize>)>, ArrowError> {
    let mut largest = BinaryHeap::new();
    let mut keep = |flow: Option<Candidate>| {
        largest.extend(flow.map(Reverse));
        if largest.len() > limit {
            largest.pop();
        }
    };
    let mut last = None;
    let mut current: Option<Candidate> = None;
    for start in (0..rows.len()).step_by(ROWS_AT_ONCE) {
        let end = rows.len().min(start + ROWS_AT_ONCE);
        let batch = rows.batch_of(start, end, &|name| name == "flow" || name == column)?;
        let named = |name| {
            batch.column_by_name(name).ok_or_else(|| ArrowError::SchemaError(format!("no column {name}")))
        };
        let flows = named("flow")?.as_primitive_opt::<UInt32Type>();
        let flows = flows.ok_or_else(|| ArrowError::SchemaError("flow is no number".to_owned()))?;
        for (row, value) in numbers(named(column)?)?.into_iter().enumerate() {
            let (place, flow) = (start + row, flows.value(row));
            match current.as_mut().filter(|_| last == Some(flow)) {
                Some(same) => {
                    same.rows.end = place + 1;
                    same.value = together(same.value, value, over);
                }
                None => {
                    let next =
                        Candidate { value: value.unwrap_or(f64::NEG_INFINITY), rows: place..place + 1 };
                    keep(current.replace(next));
                    last = Some(flow);
                }
            }
        }
    }
    keep(current);
    let ordered = largest.into_sorted_vec();
    Ok(ordered.into_iter().map(|Reverse(flow)| (flow.value, flow.rows)).collect())
}

/// The value of rows that have `value` so far, -∞ if unknown, and of one more.
fn together(value: f64, more: Option<f64>, over: Over) -> f64 {
    match (more, over) {
        (None, _) => value,
        (Some(more), Over::Sum) => value.max(0.0) + more,
        (Some(more), Over::Max) => value.max(more),
    }
}

fn numbers(column: &dyn Array) -> Result<Vec<Option<f64>>, ArrowError> {
    Ok(match column.data_type() {
        DataType::UInt32 => column.as_primitive::<UInt32Type>().iter().map(|v| v.map(f64::from)).collect(),
        // Exact up to 2^53 bytes, and an order is all that is asked for.
        DataType::UInt64 => column.as_primitive::<UInt64Type>().iter().map(|v| v.map(|v| v as f64)).collect(),
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().collect(),
        other => return Err(ArrowError::SchemaError(format!("{other} has no order"))),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, UInt32Array};

    use super::*;
    use crate::tables::{ChosenColumns, Filled};

    struct OneBatch(RecordBatch);

    impl Rows for OneBatch {
        fn len(&self) -> usize {
            self.0.num_rows()
        }

        fn batch_of(&self, start: usize, end: usize, _: ChosenColumns<'_>) -> Filled {
            Ok(self.0.slice(start, end - start))
        }
    }

    fn rows(flows: &[u32], values: &[Option<u32>]) -> OneBatch {
        let columns: [(&str, ArrayRef); 2] = [
            ("flow", Arc::new(UInt32Array::from(flows.to_vec()))),
            ("bytes", Arc::new(UInt32Array::from(values.to_vec()))),
        ];
        OneBatch(RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap())
    }

    fn order(rows: &OneBatch, over: Over, limit: usize) -> Vec<Range<usize>> {
        largest_flows(rows, "bytes", over, limit).unwrap().into_iter().map(|found| found.1).collect()
    }

    #[test]
    fn test_directions_are_summed_or_compared() {
        let rows = rows(&[1, 1, 2, 2], &[Some(4), Some(4), Some(1), Some(6)]);
        assert_eq!(order(&rows, Over::Sum, 1).first(), Some(&(0..2)));
        assert_eq!(order(&rows, Over::Max, 2), [2..4, 0..2]);
    }

    #[test]
    fn test_equal_flows_stay_in_order_and_the_unknown_come_last() {
        let rows = rows(&[1, 2, 3, 3, 4], &[None, Some(0), None, Some(5), Some(5)]);
        assert_eq!(order(&rows, Over::Sum, 9), [2..4, 4..5, 1..2, 0..1]);
        assert_eq!(order(&rows, Over::Sum, 2), [2..4, 4..5]);
    }

    #[test]
    fn test_flows_go_on_from_one_piece_to_the_next() {
        let count = 2 * ROWS_AT_ONCE + 4;
        let flows = (0..count).map(|row| row as u32 / 3).collect::<Vec<_>>();
        let found = order(&rows(&flows, &vec![Some(1); count]), Over::Sum, count);
        assert_eq!(found, (0..count).step_by(3).map(|row| row..row + 3).collect::<Vec<_>>());
    }
}
