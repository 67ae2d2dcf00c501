//! Spans in the JSON form of OTLP.

use conclave_engine::trace::{Attributes, FinishedTrace, Span, SpanKind, TraceValue};
use serde_json::{Value, json};

/// The body that tells a collector of these traces.
pub(super) fn body(service: &str, traces: &[FinishedTrace]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let about = json!([
        text("service.name", service),
        text("service.version", version),
        text("telemetry.sdk.name", "conclave"),
        text("telemetry.sdk.language", "rust"),
        text("telemetry.sdk.version", version),
    ]);
    let spans: Vec<_> = traces
        .iter()
        .flat_map(|trace| trace.spans.iter().map(move |span| written(trace, span)))
        .collect();
    let scope = json!({"name": "conclave", "version": version});
    let whole = json!({"resourceSpans": [{
        "resource": {"attributes": about},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    whole.to_string().into_bytes()
}

fn written(trace: &FinishedTrace, span: &Span) -> Value {
    let events = span.events.iter().map(|event| {
        json!({
            "timeUnixNano": event.at_ns.to_string(),
            "name": event.name,
            "attributes": attributes(&event.attributes),
        })
    });
    let mut value = json!({
        "traceId": hex::encode(trace.trace_id),
        "spanId": hex::encode(span.id),
        "name": span.name,
        "kind": kind(span.kind),
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes(&span.attributes),
        "events": events.collect::<Vec<_>>(),
        "flags": 1,
    });
    if let Some(parent) = span.parent {
        value["parentSpanId"] = json!(hex::encode(parent));
    }
    if let Some(state) = &trace.state {
        value["traceState"] = json!(state);
    }
    if let Some(failure) = span.failure {
        value["status"] = json!({"code": 2, "message": failure});
    }
    value
}

const fn kind(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

fn attributes(attributes: &Attributes) -> Vec<Value> {
    attributes.iter().map(|(name, value)| json!({"key": name, "value": any(value)})).collect()
}

fn any(value: &TraceValue) -> Value {
    match value {
        TraceValue::Text(text) => json!({"stringValue": text}),
        TraceValue::Texts(texts) => {
            let values: Vec<_> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
        // Whole numbers are text there, because not every reader of JSON has 64 bits.
        TraceValue::Whole(number) => json!({"intValue": number.to_string()}),
        TraceValue::Hundredths(number) => json!({"doubleValue": f64::from(*number) / 100.0}),
        TraceValue::Flag(flag) => json!({"boolValue": flag}),
    }
}

fn text(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}
