//! Which trace a request belongs to.

use crate::state::Gateway;
use conclave_engine::trace::{Trace, TraceContext};
use http::{HeaderMap, HeaderName};
use std::sync::Arc;

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// The trace of a request: the caller's, a new one where spans are collected, or none. What nobody
/// collects is handed on.
pub(crate) fn trace_of(gateway: &Gateway, headers: &HeaderMap) -> Option<Arc<Trace>> {
    let given = given(headers);
    match gateway.span_sink() {
        Some(sink) => {
            let engine = gateway.engine();
            let mut random = [0; 24];
            engine.entropy.fill(&mut random);
            Some(Trace::begin(given, sink, engine.clock.now_ms(), random))
        }
        None => given.map(Trace::handed_on),
    }
}

/// What the caller says; a header that stands twice says nothing.
fn given(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(PARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?.to_str().ok()?;
    let state: Vec<_> =
        headers.get_all(STATE).iter().filter_map(|value| value.to_str().ok()).collect();
    TraceContext::read(parent, Some(state.join(",").as_str()).filter(|state| !state.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_parent_that_stands_twice_says_nothing_and_states_are_joined() {
        let mut headers = HeaderMap::new();
        assert_eq!(given(&headers), None);
        let parent =
            HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        headers.append(PARENT, parent.clone());
        headers.append(STATE, HeaderValue::from_static("a=1"));
        headers.append(STATE, HeaderValue::from_static("b=2"));
        assert_eq!(given(&headers).and_then(|given| given.state).as_deref(), Some("a=1,b=2"));
        headers.append(PARENT, parent);
        assert_eq!(given(&headers), None);
    }
}
