//! Convex hulls of points in time, and the lines that touch them.

use serde::{Deserialize, Serialize};

/// A time and the value measured at it, both in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    pub time_ns: i64,
    pub value_ns: i64,
}

/// The lower convex hull of points: every line below all points is below the hull, and touches it
/// if it is as high as its slope allows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LowerHull(Vec<Point>);

impl LowerHull {
    /// Of points in the order of time (Andrew's monotone chain).
    pub fn of(points: impl Iterator<Item = Point>) -> Self {
        let mut hull: Vec<Point> = Vec::new();
        for point in points {
            while let [.., before, last] = hull.as_slice()
                && !is_left_turn(*before, *last, point)
            {
                hull.pop();
            }
            // Of points at one time only the lowest matters, and the turn does not detect it first.
            if hull
                .last()
                .is_some_and(|last| last.time_ns == point.time_ns && last.value_ns <= point.value_ns)
            {
                continue;
            }
            hull.push(point);
        }
        Self(hull)
    }

    pub fn points(&self) -> &[Point] {
        &self.0
    }

    /// How high a line of `slope` below all points can be, at time 0. None without points.
    pub fn height(&self, slope: f64) -> Option<f64> {
        let heights = self.0.iter().map(|point| point.value_ns as f64 - slope * point.time_ns as f64);
        heights.min_by(f64::total_cmp)
    }

    /// The slope of the line below all points that leaves the least area between: that of the edge
    /// in the middle of the time. None with points of one time only.
    pub fn slope(&self) -> Option<f64> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        let middle_ns = first.time_ns.midpoint(last.time_ns);
        let edge = self.0.windows(2).find(|edge| edge[1].time_ns >= middle_ns)?;
        let rise = edge[1].value_ns as f64 - edge[0].value_ns as f64;
        Some(rise / (edge[1].time_ns as f64 - edge[0].time_ns as f64))
    }
}

/// Whether the path from `a` over `b` to `c` bends upwards at `b`.
fn is_left_turn(a: Point, b: Point, c: Point) -> bool {
    let step = |from: i64, to: i64| i128::from(to) - i128::from(from);
    // Saturating: no clock of a real capture is centuries off, and a wrong turn breaks nothing.
    let left = step(a.time_ns, b.time_ns).saturating_mul(step(a.value_ns, c.value_ns));
    let right = step(a.value_ns, b.value_ns).saturating_mul(step(a.time_ns, c.time_ns));
    left > right
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn test_no_point_is_below_a_line_that_touches(
            mut points in proptest::collection::vec((any::<i32>(), any::<i32>()), 1..200),
            slope in -3.0_f64..3.0,
        ) {
            points.sort_by_key(|point| point.0);
            let points: Vec<_> = points
                .iter()
                .map(|&(time, value)| Point { time_ns: time.into(), value_ns: value.into() })
                .collect();
            let hull = LowerHull::of(points.iter().copied());
            let heights = points.iter().map(|point| point.value_ns as f64 - slope * point.time_ns as f64);
            prop_assert_eq!(hull.height(slope), heights.min_by(f64::total_cmp));
            if let Some(best) = hull.slope() {
                // The area grows with the height in the middle of the time.
                let (first, last) = (points[0].time_ns, points[points.len() - 1].time_ns);
                let middle = first.midpoint(last) as f64;
                let at_middle = |slope: f64| hull.height(slope).unwrap_or(f64::NAN) + slope * middle;
                prop_assert!(at_middle(best) >= at_middle(slope) - 1e-3);
            }
        }

        #[test]
        fn test_times_out_of_any_range_do_not_panic(
            points in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..50),
        ) {
            let points = points.iter().map(|&(time_ns, value_ns)| Point { time_ns, value_ns });
            let hull = LowerHull::of(points);
            let _ = (hull.height(1e-4), hull.slope());
        }
    }
}
