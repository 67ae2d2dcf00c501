//! What a turn did and when, for whoever traces it: spans in the terms of OpenTelemetry.
//!
//! **Invariant:** no words are in a span: values are numbers, digests, pseudonyms, and names from closed
//! lists or from the configuration.
//! **Invariant:** nobody waits for a span. A turn that nobody traces pays one look at a task-local value.
//! **Invariant:** a trace holds at most [`SPANS_MAX`] spans; what is beyond is counted.

mod context;

pub use context::{Onward, TraceContext};

use conclave_core::Score;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// How many spans one trace may hold.
pub const SPANS_MAX: usize = 256;

tokio::task_local! {
    static HERE: Place;
}

/// Where finished traces go.
pub trait SpanSink: Send + Sync {
    /// Whether a turn is traced; `parent` is what whoever called us decided, if anybody did.
    fn samples(&self, trace_id: &[u8; 16], parent: Option<bool>) -> bool;
    /// Takes a finished trace. Must not wait: what cannot be taken at once is dropped and counted.
    fn take(&self, finished: FinishedTrace);
    /// How many spans were sent, and how many were dropped, since the start.
    fn counted(&self) -> (u64, u64);
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceValue {
    /// A name.
    Text(String),
    /// Names.
    Texts(Vec<String>),
    /// A whole number.
    Whole(u64),
    /// A number from 0 to 1, in hundredths.
    Hundredths(u8),
    /// Yes or no.
    Flag(bool),
}

impl From<&str> for TraceValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for TraceValue {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<Score> for TraceValue {
    fn from(score: Score) -> Self {
        Self::Hundredths(score.hundredths())
    }
}

/// Names and values.
pub type Attributes = Vec<(&'static str, TraceValue)>;

/// Something that happened at one moment of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanEvent {
    /// What.
    pub name: &'static str,
    /// When, in nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// What is known of it.
    pub attributes: Attributes,
}

/// What a span is to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of this program's own work.
    Internal,
    /// An answer to somebody.
    Server,
    /// A question to somebody.
    Client,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its id.
    pub id: [u8; 8],
    /// The span it is a part of.
    pub parent: Option<[u8; 8]>,
    /// What it is called.
    pub name: String,
    /// What it is to its neighbours.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What is known of it.
    pub attributes: Attributes,
    /// What happened meanwhile.
    pub events: Vec<SpanEvent>,
    /// Why it failed, as a name, if it did.
    pub failure: Option<&'static str>,
}

/// A turn's spans, the first of them last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedTrace {
    /// The id all spans share.
    pub trace_id: [u8; 16],
    /// What other tracing systems handed on.
    pub state: Option<String>,
    /// The spans.
    pub spans: Vec<Span>,
    /// How many more there were.
    pub left_out: u64,
}

/// A trace that is being written, or a context that is only handed on.
pub struct Trace {
    context: TraceContext,
    sink: Option<Arc<dyn SpanSink>>,
    root: [u8; 8],
    began: Instant,
    began_ns: u64,
    next: AtomicU64,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    spans: Vec<Span>,
    left_out: u64,
    name: Option<String>,
    attributes: Attributes,
}

/// Where in which trace a task is.
#[derive(Clone)]
struct Place {
    trace: Arc<Trace>,
    span: [u8; 8],
}

impl Trace {
    /// A trace that goes to a sink, begun now. `random` makes the ids that nobody gave.
    #[must_use]
    pub fn begin(
        given: Option<TraceContext>,
        sink: &Arc<dyn SpanSink>,
        now_ms: u64,
        random: [u8; 24],
    ) -> Arc<Self> {
        let mut fresh = [0; 16];
        fresh.copy_from_slice(&random[..16]);
        let id = given.as_ref().map_or(fresh, |given| given.trace_id);
        let samples = sink.samples(&id, given.as_ref().map(|given| given.is_sampled));
        let mut start = [0; 8];
        start.copy_from_slice(&random[16..]);
        let context = given.unwrap_or(TraceContext {
            trace_id: id,
            parent: None,
            is_sampled: samples,
            state: None,
        });
        let context = TraceContext { is_sampled: samples, ..context };
        let sink = samples.then(|| sink.clone());
        Arc::new(Self::new(context, sink, now_ms, u64::from_be_bytes(start)))
    }

    /// A context that is only handed on: nobody collects spans here.
    #[must_use]
    pub fn handed_on(given: TraceContext) -> Arc<Self> {
        Arc::new(Self::new(given, None, 0, 0))
    }

    fn new(
        context: TraceContext,
        sink: Option<Arc<dyn SpanSink>>,
        now_ms: u64,
        start: u64,
    ) -> Self {
        let trace = Self {
            context,
            sink,
            root: [0; 8],
            began: Instant::now(),
            began_ns: now_ms.saturating_mul(1_000_000),
            next: AtomicU64::new(start),
            written: Mutex::default(),
        };
        // Where nothing is recorded, whoever called us stays the parent of what comes next.
        let handed = trace.context.parent.filter(|_| trace.sink.is_none());
        let root = handed.unwrap_or_else(|| trace.new_id());
        Self { root, ..trace }
    }

    /// The same trace, with spans of its own: one request may be several turns.
    fn another(&self) -> Self {
        let ids = u64::try_from(SPANS_MAX * 4).unwrap_or(u64::MAX);
        let next = AtomicU64::new(self.next.fetch_add(ids, Ordering::Relaxed));
        let other = Self {
            context: self.context.clone(),
            sink: self.sink.clone(),
            written: Mutex::default(),
            next,
            ..*self
        };
        let root = if other.is_recorded() { other.new_id() } else { other.root };
        Self { root, ..other }
    }

    const fn is_recorded(&self) -> bool {
        self.sink.is_some()
    }

    /// An id that is not zero and is its trace's only one.
    fn new_id(&self) -> [u8; 8] {
        loop {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            if id != 0 {
                return id.to_be_bytes();
            }
        }
    }

    fn now_ns(&self) -> u64 {
        let passed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.began_ns.saturating_add(passed)
    }

    fn write(&self, span: Span) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // One place is kept for the span that holds all others.
        if written.spans.len() + 1 < SPANS_MAX {
            written.spans.push(span);
        } else {
            written.left_out += 1;
        }
    }

    fn finish(&self, failure: Option<&'static str>) {
        let Some(sink) = &self.sink else { return };
        let written =
            std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner));
        let mut spans = written.spans;
        spans.push(Span {
            id: self.root,
            parent: self.context.parent,
            name: written.name.unwrap_or_else(|| "chat".to_owned()),
            kind: SpanKind::Server,
            start_ns: self.began_ns,
            end_ns: self.now_ns(),
            attributes: written.attributes,
            events: Vec::new(),
            failure,
        });
        sink.take(FinishedTrace {
            trace_id: self.context.trace_id,
            state: self.context.state.clone(),
            spans,
            left_out: written.left_out,
        });
    }
}

/// Runs work within a trace, if there is one.
pub async fn within<T>(trace: Option<Arc<Trace>>, work: impl Future<Output = T>) -> T {
    match trace {
        Some(trace) => {
            let span = trace.root;
            HERE.scope(Place { trace, span }, work).await
        }
        None => work.await,
    }
}

/// Keeps the trace with work that may go on in another task, and finishes it when the work is done.
pub fn followed<T>(
    work: impl Future<Output = T>,
    failure: impl FnOnce(&T) -> Option<&'static str>,
) -> impl Future<Output = T> {
    let here = HERE.try_with(Clone::clone).ok();
    async move {
        let Some(here) = here else { return work.await };
        let trace = Arc::new(here.trace.another());
        let place = Place { trace: trace.clone(), span: trace.root };
        let result = HERE.scope(place, work).await;
        trace.finish(failure(&result));
        result
    }
}

/// What is said of a span when it ends.
#[derive(Default)]
pub struct SpanReport {
    /// What it is called, where that is known only at its end.
    pub name: Option<String>,
    /// What is known of it.
    pub attributes: Attributes,
    /// What happened meanwhile.
    pub events: Vec<(&'static str, Attributes)>,
    /// Why it failed, as a name, if it did.
    pub failure: Option<&'static str>,
}

/// Runs work as a span of its own, where a trace is written.
pub async fn span<T>(
    name: &'static str,
    kind: SpanKind,
    work: impl Future<Output = T>,
    tell: impl FnOnce(&T) -> SpanReport,
) -> T {
    let Some(here) = recorded() else { return work.await };
    let (trace, id) = (here.trace.clone(), here.trace.new_id());
    let start_ns = trace.now_ns();
    let result = HERE.scope(Place { trace: trace.clone(), span: id }, work).await;
    let (told, end_ns) = (tell(&result), trace.now_ns());
    let events = told.events.into_iter();
    trace.write(Span {
        id,
        parent: Some(here.span),
        name: told.name.unwrap_or_else(|| name.to_owned()),
        kind,
        start_ns,
        end_ns,
        attributes: told.attributes,
        events: events
            .map(|(name, attributes)| SpanEvent { name, at_ns: end_ns, attributes })
            .collect(),
        failure: told.failure,
    });
    result
}

/// Says what the whole trace is about.
pub fn about(tell: impl FnOnce() -> (String, Attributes)) {
    if let Some(here) = recorded() {
        let (name, attributes) = tell();
        let mut written = here.trace.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.name = Some(name);
        written.attributes = attributes;
    }
}

/// What whoever is asked from here should be told about the trace.
#[must_use]
pub fn onward() -> Option<Onward> {
    HERE.try_with(|here| here.trace.context.onward(here.span)).ok()
}

fn recorded() -> Option<Place> {
    HERE.try_with(|here| here.trace.is_recorded().then(|| here.clone())).ok().flatten()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
