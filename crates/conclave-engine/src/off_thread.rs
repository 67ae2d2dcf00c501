//! Reading that may take long, kept off the threads that answer everybody.
//!
//! **Invariant:** a detector that answers in microseconds is asked on the spot; only one with a slow
//! second tier is worth another thread.

use conclave_detect::Detector;
use std::sync::Arc;

/// Lets the detector do some work, elsewhere if it may be slow.
pub(crate) async fn reading<R: Send + 'static>(
    detector: &Arc<Detector>,
    work: impl Fn(&Detector) -> R + Send + Sync + 'static,
) -> R {
    if !detector.may_be_slow() {
        return work(detector);
    }
    let work = Arc::new(work);
    let (there, elsewhere) = (detector.clone(), work.clone());
    match tokio::task::spawn_blocking(move || elsewhere(&there)).await {
        Ok(read) => read,
        // No thread is to be had while the runtime ends: what must be read is read here.
        Err(_) => work(detector),
    }
}
