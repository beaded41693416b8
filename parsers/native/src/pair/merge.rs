//! Reads captures as one, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
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

/// Packets decoded in one go; of many captures fewer, as each has its own.
const BATCH: usize = 1024;
const SHARED_BATCH: usize = 128;
const FEW_CAPTURES: usize = 8;
/// Decoded batches of each capture in the queue.
const WAITING: usize = 4;

/// Pass all packets of the captures to `work`, the earliest one first; of several at the same time that
/// of the capture named first. Times of all captures but the first are converted to the first one's clock, except
/// in its summary. The error is the filter's, worded by libpcap.
pub fn for_each_packet(
    readings: &mut [Reading],
    compiler: Option<&dyn Compiler>,
    clock: &Clock,
    summaries: &mut [SourceSummary],
    mut work: impl FnMut(Tap, &Packet, &PacketExtras, &mut SourceSummary),
) -> Result<(), String> {
    let batch = if readings.len() <= FEW_CAPTURES { BATCH } else { SHARED_BATCH };
    thread::scope(|scope| {
        let start = |reading| {
            let (sender, filled) = sync_channel(WAITING);
            let (spent, returned) = channel();
            let reader = thread::Builder::new().name("reading".into());
            match reader.spawn_scoped(scope, move || run_ahead(reading, compiler, batch, sender, returned)) {
                Ok(_) => Ok(Queue { filled, spent, decoded: Decoded::default(), next: 0 }),
                Err(error) => Err(format!("cannot start a reader thread: {error}")),
            }
        };
        let mut queues = readings.iter_mut().map(start).collect::<Result<Vec<_>, _>>()?;
        let adjust = |at: usize| {
            move |packet: &mut Packet| {
                if at > 0 {
                    packet.time_ns = clock.to_first(packet.time_ns);
                }
            }
        };
        let mut earliest = BinaryHeap::new();
        for (at, queue) in queues.iter_mut().enumerate() {
            queue.fill(adjust(at))?;
            earliest.extend(queue.time_ns().map(|time_ns| Reverse((time_ns, at))));
        }
        while let Some(mut next) = earliest.peek_mut() {
            let Reverse((_, at)) = *next;
            let queue = &mut queues[at];
            if let Some(packet) = queue.decoded.packets.get(queue.next) {
                work(Tap(at as u8), packet, &queue.decoded.extras, &mut summaries[at]);
            }
            queue.next += 1;
            queue.fill(adjust(at))?;
            match queue.time_ns() {
                Some(time_ns) => *next = Reverse((time_ns, at)),
                None => drop(PeekMut::pop(next)),
            }
        }
        Ok(())
    })
}

/// Fill one batch after the other until the capture ends or the receiver is gone.
fn run_ahead(
    reading: &mut Reading,
    compiler: Option<&dyn Compiler>,
    batch_size: usize,
    filled: SyncSender<Result<Decoded, String>>,
    returned: Receiver<Decoded>,
) {
    let mut batch = Batch::new(batch_size);
    loop {
        let outcome = reading.fill(&mut batch, compiler);
        let last = outcome.is_err() || !batch.is_full();
        let mut decoded = returned.try_recv().unwrap_or_default();
        decoded.on_batch(&batch);
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
    fn on_batch(&mut self, batch: &Batch) {
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
