//! Reads two captures as one, in the order of time.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::Tap;
use super::clock::Clock;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::{Batch, Item};
use crate::packet::event::Packet;
use crate::packet::extras::PacketExtras;

/// Packets decoded in one go.
const BATCH: usize = 1024;
/// Decoded batches of each capture in the queue.
const WAITING: usize = 4;

/// Pass all packets of both captures to `work`, the earlier one first; of two at the same time that
/// of the first capture. Times of the second capture are converted to the first one's clock, except
/// in its summary. The error is the filter's, worded by libpcap.
pub fn for_each_packet(
    readings: &mut [Reading; 2],
    compiler: Option<&dyn Compiler>,
    clock: &Clock,
    summaries: &mut [SourceSummary; 2],
    mut work: impl FnMut(Tap, &Packet, &PacketExtras, &mut SourceSummary),
) -> Result<(), String> {
    thread::scope(|scope| {
        let start = |reading| {
            let (sender, filled) = sync_channel(WAITING);
            let (spent, returned) = channel();
            let reader = thread::Builder::new().name("reading".into());
            match reader.spawn_scoped(scope, || run_ahead(reading, compiler, sender, returned)) {
                Ok(_) => Ok(Queue { filled, spent, decoded: Decoded::default(), next: 0 }),
                Err(error) => Err(format!("cannot start a reader thread: {error}")),
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
            if let Some(packet) = queue.decoded.packets.get(queue.next) {
                work(tap, packet, &queue.decoded.extras, &mut summaries[tap as usize]);
            }
            queue.next += 1;
        }
    })
}

/// Fill one batch after the other until the capture ends or the receiver is gone.
fn run_ahead(
    reading: &mut Reading,
    compiler: Option<&dyn Compiler>,
    filled: SyncSender<Result<Decoded, String>>,
    returned: Receiver<Decoded>,
) {
    let mut batch = Batch::new(BATCH);
    loop {
        let outcome = reading.fill(&mut batch, compiler);
        let last = outcome.is_err() || !batch.is_full();
        let mut decoded = returned.try_recv().unwrap_or_default();
        decoded.take(&batch);
        if filled.send(outcome.map(|()| decoded)).is_err() || last {
            return;
        }
    }
}

/// Decoded packets with their extras. The memory is reused.
#[derive(Default)]
struct Decoded {
    packets: Vec<Packet>,
    extras: PacketExtras,
}

impl Decoded {
    fn take(&mut self, batch: &Batch) {
        self.packets.clear();
        self.packets.extend(batch.items().map(Item::to_packet));
        self.extras.clone_from(batch.extras());
    }
}

/// Decoded packets of one capture.
struct Queue {
    filled: Receiver<Result<Decoded, String>>,
    spent: Sender<Decoded>,
    decoded: Decoded,
    next: usize,
}

impl Queue {
    /// Make sure that there is a packet, unless the capture is at its end.
    fn fill(&mut self, adjust: impl FnMut(&mut Packet)) -> Result<(), String> {
        if self.next >= self.decoded.packets.len()
            && let Ok(decoded) = self.filled.recv()
        {
            // After its last batch the reader accepts no buffer.
            let _ = self.spent.send(std::mem::replace(&mut self.decoded, decoded?));
            self.next = 0;
            self.decoded.packets.iter_mut().for_each(adjust);
        }
        Ok(())
    }

    fn time_ns(&self) -> Option<i64> {
        self.decoded.packets.get(self.next).map(|packet| packet.time_ns)
    }
}
