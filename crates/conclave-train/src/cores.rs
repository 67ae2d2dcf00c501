//! Work on every core.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maps in order, on as many threads as there are cores; each takes the next item when it is free.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        items.get(at).map(|item| (at, work(item)))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores)
            .map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>()))
            .collect();
        // What is missing would shift everything after it, so that a panic is passed on.
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let doubled: Vec<u64> = items.iter().map(|item| item * 2).collect();
        assert_eq!(on_all_cores(&items, |item| item * 2), doubled);
        assert!(on_all_cores(&[], |item: &u8| *item).is_empty());
    }

    #[test]
    #[should_panic(expected = "the seventh")]
    fn a_panic_is_passed_on() {
        on_all_cores(&[1, 7], |item| assert_ne!(*item, 7, "the seventh"));
    }
}
