//! Work on every core.

use conclave_eval::{all_cores, map_in_order};
use std::convert::Infallible;

/// Maps in order, on as many threads as there are cores.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut results = Vec::with_capacity(items.len());
    let Ok(()) = map_in_order::<_, _, Infallible>(all_cores(), items.iter(), work, |result| {
        results.push(result);
        Ok(())
    });
    results
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
