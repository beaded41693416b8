//! Two captures read as one, in the order of time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::Tap;
use super::clock::Clock;
use crate::asides::Asides;
use crate::event::Packet;
use crate::filter::Compiler;
use crate::reading::Reading;
use crate::summary::SourceSummary;

/// Packets decoded in one go.
const BATCH: usize = 1024;
/// Batches of each capture that are decoded and wait.
const WAITING: usize = 4;

/// Decoded packets, and what only some of them have.
type Batch = (Vec<Packet>, Asides);

/// Hand all packets of both captures to `work`, the earlier one first; of two at the same time that
/// of the first capture. Times of the second capture are told by the first one's clock, except in
/// its summary. An error is one of the filter, in libpcap's words.
pub fn for_each_packet(
    readings: &mut [Reading; 2],
    compiler: Option<&dyn Compiler>,
    clock: &Clock,
    summaries: &mut [SourceSummary; 2],
    mut work: impl FnMut(Tap, &Packet, &Asides, &mut SourceSummary),
) -> Result<(), String> {
    thread::scope(|scope| {
        let start = |reading| {
            let (sender, filled) = sync_channel(WAITING);
            let reader = thread::Builder::new().name("reading".into());
            match reader.spawn_scoped(scope, || run_ahead(reading, compiler, sender)) {
                Ok(_) => Ok(Queue::of(filled)),
                Err(error) => Err(format!("no thread to read with: {error}")),
            }
        };
        let [first, second] = readings;
        let mut queues = [start(first)?, start(second)?];
        loop {
            for (queue, tap) in queues.iter_mut().zip(Tap::BOTH) {
                queue.fill(|packet| {
                    if tap == Tap::Second {
                        packet.time_ns = clock.to_first(packet.time_ns);
                    }
                })?;
            }
            let tap = match [queues[0].time_ns(), queues[1].time_ns()] {
                [None, None] => return Ok(()),
                [Some(first_ns), Some(second_ns)] if second_ns < first_ns => Tap::Second,
                [Some(_), _] => Tap::First,
                [None, Some(_)] => Tap::Second,
            };
            let queue = &mut queues[tap as usize];
            if let Some(packet) = queue.batch.0.get(queue.next) {
                work(tap, packet, &queue.batch.1, &mut summaries[tap as usize]);
            }
            queue.next += 1;
        }
    })
}

/// Fill one batch after the other until the capture ends or nobody wants them.
fn run_ahead(
    reading: &mut Reading,
    compiler: Option<&dyn Compiler>,
    filled: SyncSender<Result<Batch, String>>,
) {
    loop {
        let mut packets = vec![Packet::default(); BATCH];
        let mut asides = Asides::default();
        let outcome = reading.fill(&mut packets, &mut asides, compiler);
        let last = !matches!(outcome, Ok(BATCH));
        let batch = outcome.map(|n| {
            packets.truncate(n);
            (packets, asides)
        });
        if filled.send(batch).is_err() || last {
            return;
        }
    }
}

/// The packets of one capture that wait for their turn.
struct Queue {
    filled: Receiver<Result<Batch, String>>,
    batch: Batch,
    next: usize,
}

impl Queue {
    fn of(filled: Receiver<Result<Batch, String>>) -> Self {
        Self { filled, batch: Batch::default(), next: 0 }
    }

    /// Make sure that there is a packet, unless the capture is at its end.
    fn fill(&mut self, adjust: impl FnMut(&mut Packet)) -> Result<(), String> {
        if self.next >= self.batch.0.len()
            && let Ok(batch) = self.filled.recv()
        {
            self.batch = batch?;
            self.next = 0;
            self.batch.0.iter_mut().for_each(adjust);
        }
        Ok(())
    }

    fn time_ns(&self) -> Option<i64> {
        self.batch.0.get(self.next).map(|packet| packet.time_ns)
    }
}
