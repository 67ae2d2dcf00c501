//! Work on several cores, with results in the order of the items.
//!
//! **Invariant:** at most [`IN_FLIGHT_MAX`] items are waiting, under way or done and not yet handed
//! over, and of those at most two a job still hold what they were made of: memory does not grow with
//! the number of items, however long one of them takes.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Items that were taken from their source and whose results were not yet handed over.
pub const IN_FLIGHT_MAX: usize = 512;
/// More jobs than this are a slip of the finger.
pub const JOBS_MAX: usize = 256;

/// As many jobs as there are cores.
#[must_use]
pub fn all_cores() -> NonZeroUsize {
    let most = NonZeroUsize::new(JOBS_MAX).unwrap_or(NonZeroUsize::MIN);
    thread::available_parallelism().map_or(NonZeroUsize::MIN, |cores| cores.min(most))
}

/// Does `work` on so many threads and hands over each result on this one, in the order of the items
/// and as soon as it and all before it are there.
///
/// A panic of `work` is passed on when its turn comes: a result left out would shift all after it.
///
/// # Errors
/// The first one of `hand_over`; what is still under way is finished and dropped.
pub fn map_in_order<T: Send, R: Send, E>(
    jobs: NonZeroUsize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
    mut hand_over: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    // One place is the feeder's, which takes an item before it waits, and one is the result at hand.
    let (promise, promised) = sync_channel(IN_FLIGHT_MAX - 2);
    let (queue, queued) = sync_channel(jobs.get());
    let queued = Mutex::new(queued);
    thread::scope(|scope| {
        scope.spawn(move || feed(items, &promise, &queue));
        for _ in 0..jobs.get() {
            scope.spawn(|| work_off(&queued, &work));
        }
        // Returning early drops the promises, on which the feeder ends, and then the workers.
        for result in promised {
            match result.recv() {
                Ok(Ok(result)) => hand_over(result)?,
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => resume_unwind(Box::new("an item was lost on its way to a worker")),
            }
        }
        Ok(())
    })
}

/// An item, and where its result is waited for.
struct WorkOrder<T, R> {
    item: T,
    answer: SyncSender<thread::Result<R>>,
}

fn feed<T, R>(
    items: impl Iterator<Item = T>,
    promise: &SyncSender<Receiver<thread::Result<R>>>,
    queue: &SyncSender<WorkOrder<T, R>>,
) {
    for item in items {
        let (answer, result) = sync_channel(1);
        if promise.send(result).is_err() || queue.send(WorkOrder { item, answer }).is_err() {
            return;
        }
    }
}

fn work_off<T, R>(queued: &Mutex<Receiver<WorkOrder<T, R>>>, work: &impl Fn(T) -> R) {
    loop {
        let next = queued.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(WorkOrder { item, answer }) = next else {
            return;
        };
        let result = catch_unwind(AssertUnwindSafe(|| work(item)));
        // Nobody waits any more where the results were not wanted to the end.
        let _ = answer.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn jobs(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    fn collected<T: Send, R: Send>(
        count: usize,
        items: impl Iterator<Item = T> + Send,
        work: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        let mut all = Vec::new();
        let Ok(()) = map_in_order::<_, _, Infallible>(jobs(count), items, work, |result| {
            all.push(result);
            Ok(())
        });
        all
    }

    #[test]
    fn results_keep_the_order_of_items_that_cost_very_different_times() {
        let costly = |item: u64| {
            let rounds = if item.is_multiple_of(97) { 200_000 } else { item % 7 };
            std::hint::black_box((0..rounds).fold(item, |sum, round| sum.rotate_left(7) ^ round));
            item * 2
        };
        let expected: Vec<u64> = (0..3_000).map(|item| item * 2).collect();
        for count in [1, 2, 8] {
            assert_eq!(collected(count, 0..3_000, costly), expected, "{count} jobs");
        }
        assert!(collected(8, 0..0, costly).is_empty());
    }

    /// The first item is not done before the window is full, so that all results behind it wait.
    #[test]
    fn a_slow_item_makes_the_source_wait() {
        let taken = AtomicUsize::new(0);
        let handed_over = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let items = (0..5_000_usize).inspect(|_| {
            let now = taken.fetch_add(1, SeqCst) + 1;
            most.fetch_max(now - handed_over.load(SeqCst), SeqCst);
        });
        let work = |item| {
            while item == 0 && taken.load(SeqCst) < IN_FLIGHT_MAX - 1 {
                thread::yield_now();
            }
        };
        let count = |()| {
            handed_over.fetch_add(1, SeqCst);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = map_in_order(jobs(8), items, work, count);
        assert_eq!(handed_over.load(SeqCst), 5_000);
        assert!(most.load(SeqCst) <= IN_FLIGHT_MAX, "{most:?}");
    }

    #[test]
    fn a_result_that_is_refused_ends_a_source_without_end() {
        let mut seen = Vec::new();
        let refused = map_in_order(
            jobs(4),
            0_u64..,
            |item| item,
            |item| {
                seen.push(item);
                if item == 700 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!(refused, Err("enough"));
        assert_eq!(seen, (0..=700).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "the seventh")]
    fn a_panic_is_passed_on() {
        collected(2, 0_u64.., |item| assert_ne!(item, 7, "the seventh"));
    }
}
