//! A measured value, and how sure it is.

/// A value and the bounds between which it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub value: f64,
    pub high: f64,
}

impl Interval {
    /// Median and quartiles of sorted values; None without any.
    pub fn of_quartiles(sorted: &[f64]) -> Option<Self> {
        Self::of_quantiles(sorted, 0.25)
    }

    /// Median, and the quantiles at a share from both ends, of sorted values; None without any.
    pub fn of_quantiles(sorted: &[f64], share: f64) -> Option<Self> {
        let at = |share| quantile(sorted, share);
        Some(Self { low: at(share)?, value: at(0.5)?, high: at(1.0 - share)? })
    }

    /// Difference of the bounds, as a part of the value.
    pub fn width(&self) -> f64 {
        (self.high - self.low) / self.value
    }

    /// The same with a relative error of its own.
    pub fn widened(self, error: f64) -> Self {
        Self { low: self.low * (1.0 - error), high: self.high * (1.0 + error), ..self }
    }

    pub fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, value: self.value * factor, high: self.high * factor }
    }
}

/// A quantile of sorted values, between neighbours; None without any.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted.get(place as usize)?, sorted.get(place.ceil() as usize)?);
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_quantiles_lie_between_neighbours() {
        let values = [1.0, 2.0, 3.0, 5.0];
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&values, share)), [Some(1.0), Some(2.5), Some(5.0)]);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(Interval::of_quartiles(&[7.0]), Some(Interval { low: 7.0, value: 7.0, high: 7.0 }));
    }
}
