//! What is written of a trace, and what is handed on.

use super::*;

#[derive(Default)]
struct Kept {
    traces: Mutex<Vec<FinishedTrace>>,
    refuses: bool,
}

impl SpanSink for Kept {
    fn samples(&self, _: &[u8; 16], parent: Option<bool>) -> bool {
        parent.unwrap_or(!self.refuses)
    }

    fn take(&self, finished: FinishedTrace) {
        self.traces.lock().unwrap().push(finished);
    }

    fn counted(&self) -> (u64, u64) {
        (0, 0)
    }
}

fn sink() -> (Arc<Kept>, Arc<dyn SpanSink>) {
    let kept = Arc::new(Kept::default());
    (kept.clone(), kept)
}

const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

async fn work() -> Option<Onward> {
    span("model", SpanKind::Client, async { onward() }, |_| SpanReport::default()).await
}

#[tokio::test(start_paused = true)]
async fn spans_stand_under_each_other_and_the_next_is_told_of_the_innermost() {
    let (kept, sink) = sink();
    let given = TraceContext::read(GIVEN, Some("a=1")).unwrap();
    let trace = Trace::begin(Some(given.clone()), &sink, 1_000, [7; 24]);
    let told = within(Some(trace), async { followed(work(), |_| None).await }).await.unwrap();
    let traces = kept.traces.lock().unwrap();
    let [finished] = &traces[..] else { panic!("one trace") };
    let [model, root] = &finished.spans[..] else { panic!("two spans") };
    assert_eq!(finished.trace_id, given.trace_id);
    assert_eq!((root.parent, model.parent), (given.parent, Some(root.id)));
    assert_eq!(root.start_ns, 1_000_000_000);
    assert!(told.parent.contains(&hex::encode(model.id)) && told.parent.ends_with("-01"));
    assert_eq!(told.state.as_deref(), Some("a=1"));
}

#[tokio::test]
async fn what_the_caller_does_not_record_is_handed_on_and_not_written() {
    let (kept, sink) = sink();
    let given = TraceContext::read(&GIVEN.replace("-01", "-00"), None).unwrap();
    for trace in
        [Trace::begin(Some(given.clone()), &sink, 0, [7; 24]), Trace::handed_on(given.clone())]
    {
        let told = within(Some(trace), followed(work(), |_| None)).await;
        // `followed` looks where it is when it is made, which is outside here.
        assert_eq!(told, Some(given.onward(given.parent.unwrap())));
    }
    assert!(kept.traces.lock().unwrap().is_empty());
    assert_eq!(work().await, None, "outside a trace nobody is told of one");
}

#[tokio::test]
async fn two_turns_of_one_request_share_the_trace_and_no_id() {
    let (kept, sink) = sink();
    let trace = Trace::begin(None, &sink, 0, [255; 24]);
    within(Some(trace), async {
        for failure in [None, Some("timeout")] {
            followed(work(), move |_| failure).await;
        }
    })
    .await;
    let traces = kept.traces.lock().unwrap();
    assert_eq!(traces.len(), 2);
    assert_eq!(traces[0].trace_id, traces[1].trace_id);
    let mut ids: Vec<_> =
        traces.iter().flat_map(|trace| &trace.spans).map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), ids.contains(&[0; 8])), (4, false));
    assert_eq!(traces[1].spans.last().unwrap().failure, Some("timeout"));
}

#[tokio::test]
async fn a_trace_has_a_limit_and_says_what_was_left_out() {
    let (kept, sink) = sink();
    let trace = Trace::begin(None, &sink, 0, [1; 24]);
    within(Some(trace), async {
        let many = async {
            for _ in 0..SPANS_MAX + 9 {
                work().await;
            }
        };
        followed(many, |()| None).await;
    })
    .await;
    let traces = kept.traces.lock().unwrap();
    assert_eq!((traces[0].spans.len(), traces[0].left_out), (SPANS_MAX, 10));
}
