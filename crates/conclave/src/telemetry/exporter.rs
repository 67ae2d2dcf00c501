//! The task that sends finished traces, and the queue before it.

use super::sampler::Sampler;
use super::{Collector, otlp};
use conclave_engine::trace::{FinishedTrace, SpanSink};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How many traces may wait.
const WAITING_MAX: usize = 2_048;
/// How many go in one call.
const TOGETHER_MAX: usize = 128;
/// How long the first of a call waits for others.
const LINGER: Duration = Duration::from_millis(500);
/// How long the end of the program waits for what is left.
const FAREWELL: Duration = Duration::from_secs(3);

/// Takes finished traces.
pub struct Exporter {
    queue: Sender<FinishedTrace>,
    sampler: Sampler,
    sent: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

/// An exporter at work.
pub struct Exporting {
    /// Where the gateway puts traces.
    pub exporter: Arc<Exporter>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporting {
    /// Sends what is left, for a short while.
    pub async fn finish(self) {
        // Fails when the task has ended, and then nothing is left.
        let _ = self.stop.send(());
        if tokio::time::timeout(FAREWELL, self.task).await.is_err() {
            tracing::warn!("the collector did not take the last traces in time");
        }
    }
}

impl Exporter {
    pub(super) fn begin(collector: Collector) -> Exporting {
        let (queue, waiting) = channel(WAITING_MAX);
        let (stop, stopped) = oneshot::channel();
        let (sent, dropped) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let sampler = collector.sampler;
        let worker =
            Worker { collector, sent: sent.clone(), dropped: dropped.clone(), in_trouble: false };
        let task = tokio::spawn(worker.run(waiting, stopped));
        let exporter = Arc::new(Self { queue, sampler, sent, dropped });
        Exporting { exporter, stop, task }
    }
}

impl SpanSink for Exporter {
    fn samples(&self, trace_id: &[u8; 16], parent: Option<bool>) -> bool {
        self.sampler.takes(trace_id, parent)
    }

    fn take(&self, finished: FinishedTrace) {
        let (spans, left_out) = (count(&finished), finished.left_out);
        let refused = if self.queue.try_send(finished).is_ok() { 0 } else { spans };
        self.dropped.fetch_add(left_out.saturating_add(refused), Ordering::Relaxed);
    }

    fn counted(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }
}

struct Worker {
    collector: Collector,
    sent: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
    in_trouble: bool,
}

impl Worker {
    async fn run(mut self, mut waiting: Receiver<FinishedTrace>, mut stop: oneshot::Receiver<()>) {
        let mut batch = Vec::with_capacity(TOGETHER_MAX);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                first = waiting.recv() => match first {
                    Some(first) => batch.push(first),
                    None => break,
                },
            }
            let gathered = gather(&mut waiting, &mut batch);
            let is_stopped = tokio::select! {
                biased;
                _ = &mut stop => true,
                () = gathered => false,
            };
            self.send(&mut batch).await;
            if is_stopped {
                break;
            }
        }
        while waiting.try_recv().map(|trace| batch.push(trace)).is_ok() {
            if batch.len() == TOGETHER_MAX {
                self.send(&mut batch).await;
            }
        }
        self.send(&mut batch).await;
    }

    /// Sends what was gathered. What a collector does not take is dropped: the next may be worth more.
    async fn send(&mut self, batch: &mut Vec<FinishedTrace>) {
        if batch.is_empty() {
            return;
        }
        let spans = batch.iter().map(count).sum();
        let body = otlp::body(&self.collector.service, batch);
        batch.clear();
        let answered = self.collector.client.post_json(&self.collector.headers, body).await;
        let trouble = match answered {
            Ok(200..=299) => None,
            Ok(status) => Some(format!("it answered with status {status}")),
            Err(error) => Some(error.to_string()),
        };
        match trouble {
            None => {
                self.sent.fetch_add(spans, Ordering::Relaxed);
                if std::mem::take(&mut self.in_trouble) {
                    tracing::info!("the collector takes traces again");
                }
            }
            Some(trouble) => {
                self.dropped.fetch_add(spans, Ordering::Relaxed);
                if !std::mem::replace(&mut self.in_trouble, true) {
                    tracing::warn!(trouble, "the collector does not take traces; they are dropped");
                }
            }
        }
    }
}

/// Waits for more, until there are enough or the first has waited long enough.
async fn gather(waiting: &mut Receiver<FinishedTrace>, batch: &mut Vec<FinishedTrace>) {
    let enough = async {
        while batch.len() < TOGETHER_MAX {
            match waiting.recv().await {
                Some(trace) => batch.push(trace),
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, enough).await;
}

fn count(trace: &FinishedTrace) -> u64 {
    u64::try_from(trace.spans.len()).unwrap_or(u64::MAX)
}
