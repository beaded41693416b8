//! Threads that share the work of a pass, with the same result however many there are.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// Limit of threads; more would wait for memory.
const MAX_THREADS: usize = 8;

/// The calling thread and others, which are started when they are first needed.
#[derive(Debug)]
pub struct Threads {
    count: usize,
    /// All but the calling one; None if they cannot be started.
    others: OnceLock<Option<ThreadPool>>,
}

impl Threads {
    /// So many threads, or as many as there are processors; [`MAX_THREADS`] at most.
    pub fn new(count: Option<usize>) -> Self {
        let available = || thread::available_parallelism().map_or(1, usize::from);
        Self { count: count.unwrap_or_else(available).clamp(1, MAX_THREADS), others: OnceLock::new() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Pass each item to `work`, with the state of the thread that takes it. There are as many threads as
    /// states, or fewer.
    pub fn share<I, S>(&self, items: I, states: &mut [S], work: impl Fn(I::Item, &mut S) + Sync)
    where
        I: Iterator<Item: Send> + Send,
        S: Send,
    {
        let items = Mutex::new(items);
        let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let take_all = &|state: &mut S| {
            while let Some(item) = next() {
                work(item, state);
            }
        };
        let Some((own, rest)) = states.split_first_mut() else { return };
        match self.others().filter(|_| !rest.is_empty()) {
            Some(pool) => pool.in_place_scope(|scope| {
                for state in rest {
                    scope.spawn(move |_| take_all(state));
                }
                take_all(own);
            }),
            None => take_all(own),
        }
    }

    /// End the others, until they are needed again.
    pub fn stop(&mut self) {
        self.others.take();
    }

    fn others(&self) -> Option<&ThreadPool> {
        let start = || {
            let builder = ThreadPoolBuilder::new().num_threads(self.count - 1);
            builder.thread_name(|_| "following".into()).build().ok()
        };
        self.others.get_or_init(|| (self.count > 1).then(start).flatten()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_each_item_is_taken_once_by_any_number_of_threads() {
        for count in [0, 1, 2, 5, 100] {
            let threads = Threads::new(Some(count));
            assert_eq!(threads.count(), count.clamp(1, MAX_THREADS));
            let mut items = [0; 1_000];
            let mut sums = vec![0; threads.count()];
            for _ in 0..3 {
                threads.share(items.iter_mut(), &mut sums, |item, sum| {
                    *item += 1;
                    *sum += 1;
                });
            }
            assert!(items.iter().all(|&item| item == 3) && sums.iter().sum::<i32>() == 3_000);
        }
    }
}
