//! The loss event rate of a TCP connection as a TFRC receiver would have it: losses that are known by
//! where and when they were, grouped into events (RFC 5348 section 5.2) and averaged (section 5.4).

use crate::tfrc::EPS_T;
use crate::tfrc::equation::Equation;
use crate::tfrc::intervals::{Averaging, LossHistory};

/// A lost packet.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When it was lost, or known to be, in seconds.
    pub time: f64,
    /// Its place among all packets of the flow.
    pub packet: f64,
}

/// A time at which p is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// When, in seconds.
    pub time: f64,
    /// Packets delivered until then.
    pub packets: f64,
    /// Round-trip time, seconds.
    pub rtt: f64,
    /// Receive rate, bytes per second.
    pub x_recv: f64,
}

/// What is known at such a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Loss event rate; 0 before the first loss event.
    pub p: f64,
    /// Loss events since the round before.
    pub loss_events: u32,
    /// Lost packets, likewise.
    pub lost_packets: u32,
}

/// The loss event rate at each round, both in order of time, for packets of `s` bytes.
pub fn loss_event_rates(losses: &[Loss], rounds: &[Round], s: f64) -> Vec<Rate> {
    let mut history = LossHistory::new(Averaging::default());
    let mut event: Option<Loss> = None;
    let mut highest_x_recv = 0.0_f64;
    let mut waiting = losses.iter().peekable();
    let mut rates = Vec::with_capacity(rounds.len());
    for round in rounds {
        let mut rate = Rate::default();
        while let Some(loss) = waiting.next_if(|loss| loss.time <= round.time) {
            rate.lost_packets = rate.lost_packets.saturating_add(1);
            if event.is_some_and(|event| loss.time - event.time <= round.rtt + EPS_T) {
                continue;
            }
            rate.loss_events = rate.loss_events.saturating_add(1);
            let interval = match event {
                Some(event) => (loss.packet - event.packet).max(1.0),
                None => first_interval(s, round.rtt, highest_x_recv.max(s / (2.0 * round.rtt))),
            };
            history.close(interval);
            event = Some(*loss);
        }
        highest_x_recv = highest_x_recv.max(round.x_recv);
        let open = event.map_or(0.0, |event| (round.packets - event.packet).max(0.0) + 1.0);
        rate.p = history.mean(open, true).map_or(0.0, |mean| mean.p);
        rates.push(rate);
    }
    rates
}

/// What stands for the interval before the first loss event (section 6.3.1).
fn first_interval(s: f64, rtt: f64, x_target: f64) -> f64 {
    Equation::default().inverse(s, rtt, 4.0 * rtt, x_target).map_or(1.0, |inverse| 1.0 / inverse.p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(time: f64, packets: f64) -> Round {
        Round { time, packets, rtt: 0.1, x_recv: 100_000.0 }
    }

    #[test]
    fn test_losses_within_a_round_trip_time_are_one_event_and_intervals_are_packets() {
        let losses = [(1.0, 100.0), (1.05, 105.0), (2.0, 200.0), (3.0, 300.0)];
        let losses = losses.map(|(time, packet)| Loss { time, packet });
        let rounds = [round(0.9, 90.0), round(1.1, 110.0), round(2.1, 210.0), round(3.1, 310.0)];
        let rates = loss_event_rates(&losses, &rounds, 1000.0);
        let counted: Vec<_> = rates.iter().map(|rate| (rate.loss_events, rate.lost_packets)).collect();
        assert_eq!(counted, [(0, 0), (1, 2), (1, 1), (1, 1)]);
        assert_eq!(rates[0].p, 0.0);
        // The first interval is 1/p for 100 packets/s at 100 ms, the next two are 100 packets long.
        let first = first_interval(1000.0, 0.1, 100_000.0);
        assert!((rates[1].p - 1.0 / first).abs() < 1e-12);
        assert!((1.0 / rates[3].p - (200.0 + first) / 3.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn test_p_is_a_share_whatever_the_losses(
            losses in proptest::collection::vec((any::<f64>(), any::<f64>()), 0..40),
            rounds in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>()), 0..40),
        ) {
            let losses: Vec<_> = losses.into_iter().map(|(time, packet)| Loss { time, packet }).collect();
            let rounds: Vec<_> =
                rounds.into_iter().map(|(time, packets, rtt, x_recv)| Round { time, packets, rtt, x_recv }).collect();
            for rate in loss_event_rates(&losses, &rounds, 1460.0) {
                prop_assert!((0.0..=1.0).contains(&rate.p));
            }
        }
    }
}
