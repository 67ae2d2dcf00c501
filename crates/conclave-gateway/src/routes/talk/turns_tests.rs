//! Work whose client goes away, and what becomes of a turn that was not decided.

use super::*;
use tokio::sync::oneshot;

#[tokio::test]
async fn what_is_dropped_half_way_is_finished_all_the_same() {
    let (go, gone) = oneshot::channel::<()>();
    let (tell, told) = oneshot::channel();
    let mut work = Box::pin(DetachedWork::new(async move {
        let _ = gone.await;
        let _ = tell.send(42);
    }));
    assert!(futures_util::poll!(work.as_mut()).is_pending());
    drop(work);
    let _ = go.send(());
    assert_eq!(told.await, Ok(42));
}
