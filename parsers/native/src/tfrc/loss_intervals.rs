//! Loss intervals, their average and the loss event rate (sections 5.3 to 5.5).

use serde::{Deserialize, Serialize};

/// Closed intervals in the average: the n recommended by the RFC (section 5.4).
pub const N: usize = 8;
pub const MAX_N: usize = 64;

/// Weight of the `i`th newest of `n` intervals: the newer half counts fully (section 5.4).
fn weight(i: usize, n: usize) -> f64 {
    if 2 * i < n { 1.0 } else { 2.0 * (n - i) as f64 / (n + 2) as f64 }
}

/// Options of the average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Averaging {
    /// Closed intervals that count, 1 to [`MAX_N`].
    pub n: usize,
    /// The least weight that history discounting may leave (THRESHOLD, section 5.5); None without it.
    pub discounting: Option<f64>,
    /// Cut the mean and 1/p down to whole numbers, as implementations without fractions do.
    pub int_intervals: bool,
}

impl Default for Averaging {
    fn default() -> Self {
        Self { n: N, discounting: Some(0.25), int_intervals: false }
    }
}

/// The average and its terms, in the RFC's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Weighted sum with the open interval.
    pub i_tot0: f64,
    /// Sum of its weights.
    pub w_tot0: f64,
    /// Weighted sum of the closed intervals.
    pub i_tot1: f64,
    /// Sum of its weights.
    pub w_tot1: f64,
    /// The average loss interval.
    pub i_mean: f64,
    pub p: f64,
}

/// The history of one direction: I_1 to I_n, and their weights after discounting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LossHistory {
    averaging: Averaging,
    /// Closed intervals, the newest first.
    closed: Vec<f64>,
    /// DF_1 to DF_n.
    df_i: Vec<f64>,
    /// DF: of the open interval, until it is closed.
    df: f64,
}

impl LossHistory {
    /// No loss event yet.
    pub fn new(averaging: Averaging) -> Self {
        let averaging = Averaging { n: averaging.n.clamp(1, MAX_N), ..averaging };
        Self { averaging, closed: Vec::new(), df_i: Vec::new(), df: 1.0 }
    }

    /// Closed intervals, the newest first.
    pub fn closed(&self) -> &[f64] {
        &self.closed
    }

    /// A loss event ended the open interval at this length: it is I_1 now, and I_n is forgotten.
    pub fn close(&mut self, length: f64) {
        let kept = self.averaging.n.saturating_sub(1);
        self.closed.truncate(kept);
        self.df_i.truncate(kept);
        self.df_i.iter_mut().for_each(|df_i| *df_i *= self.df);
        self.closed.insert(0, length);
        self.df_i.insert(0, 1.0);
        self.df = 1.0;
    }

    /// The average while the open interval is `open` packets long; None before the first loss event,
    /// when p is 0. `counts_open` is whether the open interval may raise it (RFC 4828 section 3.3).
    pub fn mean(&mut self, open: f64, counts_open: bool) -> Option<Mean> {
        let len = self.closed.len();
        if len == 0 {
            return None;
        }
        self.discount(open);
        let (i_tot1, w_tot1) = self.total(0, len, 1.0);
        // The open one stands in the place of the oldest (section 5.4).
        let (i_tot, w_tot) = self.total(1, len.saturating_sub(1), self.df);
        let n = self.averaging.n;
        let (i_tot0, w_tot0) = (open * weight(0, n) + i_tot, weight(0, n) + w_tot);
        let closed = i_tot1 / w_tot1;
        let i_mean = if counts_open { closed.max(i_tot0 / w_tot0) } else { closed };
        let i_mean = if self.averaging.int_intervals { i_mean.floor() } else { i_mean };
        // A mean below one packet would be a rate above one event a packet.
        let p = 1.0 / i_mean.max(1.0);
        Some(Mean { i_tot0, w_tot0, i_tot1, w_tot1, i_mean, p })
    }

    /// History discounting (section 5.5): a long open interval takes weight from the closed ones.
    fn discount(&mut self, open: f64) {
        let Some(threshold) = self.averaging.discounting else { return };
        let (i_tot, w_tot) = self.total(0, self.closed.len(), 1.0);
        let m = i_tot / w_tot;
        self.df = if open > 2.0 * m { (2.0 * m / open).max(threshold) } else { 1.0 };
    }

    /// Weighted sum of the newest `count` closed intervals and sum of their weights, which begin at
    /// `first_weight`.
    fn total(&self, first_weight: usize, count: usize, df: f64) -> (f64, f64) {
        let n = self.averaging.n;
        let weights = (first_weight..n).map(|i| weight(i, n)).zip(&self.df_i).map(|(w, df_i)| w * df_i * df);
        let weighted = self.closed.iter().take(count).zip(weights);
        weighted.fold((0.0, 0.0), |(i_tot, w_tot), (i, w)| (i_tot + i * w, w_tot + w))
    }
}

#[cfg(test)]
impl LossHistory {
    /// A history with closed intervals.
    pub fn with(averaging: Averaging, closed: &[f64], df_i: Option<&[f64]>) -> Self {
        let mut df_i = df_i.map(<[f64]>::to_vec).unwrap_or_default();
        df_i.resize(closed.len(), 1.0);
        Self { closed: closed.to_vec(), df_i, ..Self::new(averaging) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_a_discount_becomes_permanent_at_the_next_loss_event() {
        let mut history = LossHistory::new(Averaging::default());
        history.close(100.0);
        assert_eq!(history.mean(400.0, true).unwrap().i_mean, 400.0);
        history.close(400.0);
        // DF was 2 M / I_0 = 0.5 and is DF_2 now.
        assert_eq!(history.df_i[..2], [1.0, 0.5]);
        assert_eq!(history.mean(0.0, true).unwrap().i_mean, (400.0 + 0.5 * 100.0) / 1.5);
    }

    #[test]
    fn test_weights_are_those_that_the_rfc_prints_for_eight_and_fall_alike_for_others() {
        let weights = |n| (0..n).map(|i| weight(i, n)).collect::<Vec<_>>();
        // Section 5.4 prints these.
        assert_eq!(weights(8), [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]);
        assert_eq!(weights(2), [1.0, 0.5]);
        assert_eq!(weights(1), [1.0]);
        assert!(weights(64).is_sorted_by(|newer, older| newer >= older && *older > 0.0));
    }

    #[test]
    fn test_n_intervals_count_and_no_more() {
        for n in [1, 2, 8, 64] {
            let mut history = LossHistory::new(Averaging { n, ..Averaging::default() });
            history.close(1e6);
            for _ in 0..n {
                history.close(100.0);
            }
            assert_eq!(history.closed(), vec![100.0; n]);
            assert!((history.mean(0.0, true).unwrap().p * 100.0 - 1.0).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn test_p_is_a_share_whatever_the_intervals(
            intervals in proptest::collection::vec(0.0..1e15_f64, 1..20), open in 0.0..1e15_f64,
            int_intervals: bool,
        ) {
            let mut history = LossHistory::new(Averaging { int_intervals, ..Averaging::default() });
            for interval in intervals {
                history.close(interval);
                let mean = history.mean(open, true).unwrap();
                prop_assert!(mean.p > 0.0 && mean.p <= 1.0);
            }
        }

        #[test]
        fn test_longer_intervals_never_raise_p(
            intervals in proptest::collection::vec(1.0..1e6_f64, 1..9), open in 1.0..1e6_f64, at in 0_usize..8,
        ) {
            let averaging = Averaging { discounting: None, ..Averaging::default() };
            let mut longer = intervals.clone();
            if let Some(interval) = longer.get_mut(at) {
                *interval *= 1.5;
            }
            let p = |intervals: &[f64]| {
                let count = intervals.len().min(N);
                LossHistory::with(averaging, &intervals[..count], None).mean(open, true).unwrap().p
            };
            prop_assert!(p(&longer) <= p(&intervals));
        }
    }
}
