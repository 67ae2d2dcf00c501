//! Reading that may take long, kept off the threads that answer everybody.
//!
//! **Invariant:** a detector that answers in microseconds is asked on the spot; only one with a slow
//! second tier is worth another thread.
//! **Invariant:** no more slow readings go on at once than there are cores: more would only wait for each
//! other, each with its own memory.

use conclave_detect::Detector;
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

static AT_ONCE: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Arc::new(Semaphore::new(cores))
});

/// Lets the detector do some work, elsewhere if it may be slow.
pub(crate) async fn reading<R: Send + 'static>(
    detector: &Arc<Detector>,
    work: impl Fn(&Detector) -> R + Send + Sync + 'static,
) -> R {
    if !detector.may_be_slow() {
        return work(detector);
    }
    // The semaphore is never closed; without a permit the reading would go on all the same.
    let turn = Arc::clone(&AT_ONCE).acquire_owned().await.ok();
    let work = Arc::new(work);
    let (there, elsewhere) = (detector.clone(), work.clone());
    let done = move || {
        // Given up only here: a reading nobody waits for any more goes on, and takes its core.
        let _turn = turn;
        elsewhere(&there)
    };
    match tokio::task::spawn_blocking(done).await {
        Ok(read) => read,
        // No thread is to be had while the runtime ends: what must be read is read here.
        Err(_) => work(detector),
    }
}
