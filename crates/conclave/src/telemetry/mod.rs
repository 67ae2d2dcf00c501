//! Traces: from the engine's spans to a collector that speaks OTLP over HTTP.
//!
//! **Invariant:** a collector that is slow, away or wrong costs spans and nothing else: the queue is
//! bounded, nobody waits for it, and what was dropped is counted.

mod exporter;
mod otlp;
mod sampler;

pub use exporter::{Exporter, Exporting};

use crate::config::{SecretRef, Telemetry};
use anyhow::{Context, anyhow};
use conclave_models::WebClient;
use sampler::Sampler;
use std::time::Duration;

/// How long one call to the collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What it is called where nobody says.
const SERVICE: &str = "conclave";
/// How many headers a collector may be given.
const HEADERS_MAX: usize = 16;

/// Where spans go and how they are chosen.
struct Collector {
    client: WebClient,
    headers: Vec<(String, String)>,
    service: String,
    sampler: Sampler,
}

/// Begins to export, if a collector is named. `look` reads a variable of the environment.
///
/// # Errors
/// When what is named cannot be used.
pub fn begin(
    settings: &Telemetry,
    look: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Exporting>> {
    Ok(collector(settings, look)?.map(Exporter::begin))
}

/// Whether it could begin; nothing is sent.
///
/// # Errors
/// When what is named cannot be used.
pub fn check(settings: &Telemetry, look: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
    collector(settings, look).map(drop)
}

fn collector(
    settings: &Telemetry,
    look: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Collector>> {
    let look = |name: &str| look(name).map(|value| value.trim().to_owned());
    let look = |name: &str| look(name).filter(|value| !value.is_empty());
    let either = |traces: &str, all: &str| look(traces).or_else(|| look(all));
    if look("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let base = look("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| settings.otlp_endpoint.clone());
    let below = base.map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
    let Some(url) = look("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(below) else {
        return Ok(None);
    };
    let protocol = either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
    if let Some(protocol) = protocol.filter(|protocol| !protocol.starts_with("http/")) {
        // A variable for the whole machine is no reason not to answer people.
        tracing::warn!(protocol, "no traces are sent: only OTLP over HTTP is spoken, as JSON");
        return Ok(None);
    }
    let headers = either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
    let headers = match (headers, &settings.otlp_headers) {
        (Some(headers), _) => Some(headers),
        (None, Some(reference)) => Some(resolved(reference)?),
        (None, None) => None,
    };
    // A collector is the operator's own and usually stands in a private network.
    let client = WebClient::new(&url, true, PATIENCE).context("the address of the collector")?;
    let service = look("OTEL_SERVICE_NAME").or_else(|| settings.service_name.clone());
    let sampler = Sampler::read(
        look("OTEL_TRACES_SAMPLER").as_deref(),
        look("OTEL_TRACES_SAMPLER_ARG").as_deref(),
    )?;
    Ok(Some(Collector {
        client,
        headers: headers.map(|headers| read_headers(&headers)).transpose()?.unwrap_or_default(),
        service: service.unwrap_or_else(|| SERVICE.to_owned()),
        sampler,
    }))
}

fn resolved(reference: &SecretRef) -> anyhow::Result<String> {
    reference.resolve().map_err(|why| anyhow!("telemetry.otlp_headers: {why}"))
}

/// `name=value,name=value`, values with `%` and two digits for what may not stand there. What is wrong
/// is not repeated: a value may be a key.
fn read_headers(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let read = parts.enumerate().map(|(at, part)| {
        let odd = || anyhow!("header {} for the collector is not name=value", at + 1);
        let (name, value) = part.split_once('=').ok_or_else(odd)?;
        let name = name.trim().to_ascii_lowercase();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(odd());
        }
        Ok((name, unescaped(value.trim()).ok_or_else(odd)?))
    });
    let headers = read.collect::<anyhow::Result<Vec<_>>>()?;
    if headers.len() > HEADERS_MAX {
        return Err(anyhow!("a collector is given at most {HEADERS_MAX} headers"));
    }
    Ok(headers)
}

fn unescaped(value: &str) -> Option<String> {
    let mut pieces = value.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let value = String::from_utf8(bytes).ok()?;
    value.chars().all(|letter| !letter.is_control()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> anyhow::Result<Option<Collector>> {
        let look = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        collector(&Telemetry::default(), look)
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    #[test]
    fn nothing_is_sent_unless_a_collector_is_named() {
        for variables in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "true")],
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
        ] {
            assert!(named(variables).unwrap().is_none(), "{variables:?}");
        }
        let found = named(&[ENDPOINT, ("OTEL_SERVICE_NAME", "talks")]).unwrap().unwrap();
        assert_eq!(found.service, "talks");
    }

    #[test]
    fn what_cannot_be_used_is_said_without_repeating_it() {
        for (variables, expected) in [
            (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x")], "the address of the collector"),
            (vec![ENDPOINT, ("OTEL_TRACES_SAMPLER", "dice")], "OTEL_TRACES_SAMPLER"),
            (vec![ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2")], "header 1"),
            (vec![ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=hunter2%0a")], "header 2"),
        ] {
            let Err(error) = named(&variables) else { panic!("{variables:?}") };
            let error = format!("{error:#}");
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
        let headers = read_headers("Api-Key=a%20b%3D, x=1").unwrap();
        assert_eq!(headers, [("api-key".into(), "a b=".into()), ("x".into(), "1".to_owned())]);
    }
}
