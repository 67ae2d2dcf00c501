//! Measures the processor time one exchange with a provider costs on our side.
//!
//! Start `cargo run -p conclave-testkit --example mock-model` first, then
//! `cargo run -p conclave-models --example exchange-cost -- http://127.0.0.1:9000/v1 20000`.

use conclave_core::{Message, Role, Score};
use conclave_engine::{Model, ModelRequest};
use conclave_models::{HostedModel, ProviderConfig};
use serde_json::{Map, json};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which base URL?")?;
    let count: u32 = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    for stream_upstream in [false, true] {
        let model = HostedModel::new(ProviderConfig {
            stream_upstream,
            ..ProviderConfig::new("measured", &url)
        })?;
        model.generate(request()).await?;
        let start = cpu_ns()?;
        for _ in 0..count {
            model.generate(request()).await?;
        }
        let spent = Duration::from_nanos(cpu_ns()? - start) / count;
        writeln!(std::io::stdout(), "streaming {stream_upstream}: {spent:?} per exchange")?;
    }
    Ok(())
}

/// Nanoseconds this thread has run, in the kernel and outside it.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no figure")?.parse()?)
}

fn request() -> ModelRequest {
    let question = "My sister moved away last month and the evenings are long. ".repeat(4);
    let body = Map::from_iter([
        ("model".to_owned(), json!("measured")),
        ("messages".to_owned(), json!([{"role": "user", "content": question}])),
    ]);
    ModelRequest {
        body: Arc::new(body),
        conversation: Arc::new([Message::text(Role::User, question)]),
        guidance: Some("Keep it short; ask one question.".into()),
        temperature: Some(0.7),
        field: Arc::default(),
        crisis: Score::ZERO,
        reasons: Vec::new(),
        attempt: 0,
        seed: 1,
        timeout: Duration::from_secs(10),
        pause: Duration::from_secs(10),
    }
}
