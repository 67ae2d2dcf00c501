//! A provider that sends without end costs a bounded amount of memory, also many at once.
#![cfg(target_os = "linux")]

use ask::{Outcome, ask, config};
use conclave_models::{BreakerLimits, HostedModel, ProviderConfig};
use conclave_testkit::{Behaviour, MockModel, Script};

mod ask;

const BYTES_MAX: usize = 1024 * 1024;
const PARALLEL: usize = 8;
/// Everything that is read at once, four times over for growing buffers and sockets.
const GROWTH_BYTES_MAX: usize = 4 * PARALLEL * BYTES_MAX;

/// The most memory this process ever held.
fn peak_bytes() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak")?;
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

#[tokio::test]
async fn endless_answers_do_not_fill_the_memory() -> Outcome<()> {
    let endless = [
        Behaviour::Huge(1 << 30),
        Behaviour::HugeChunked(1 << 30),
        Behaviour::HugeStatus(500, 1 << 30),
        Behaviour::EndlessSseLine,
        Behaviour::GzipBomb,
    ];
    let warm = MockModel::scripted(Script::always(Behaviour::GzipBomb)).await?;
    assert!(ask(&HostedModel::new(config(&warm))?, "hello").await.is_err());
    let before = peak_bytes()?;
    for behaviour in endless {
        let mock = MockModel::scripted(Script::always(behaviour)).await?;
        for stream_upstream in [false, true] {
            let model = HostedModel::new(ProviderConfig {
                response_bytes_max: BYTES_MAX,
                stream_upstream,
                breaker: BreakerLimits { failures: 0, ..BreakerLimits::default() },
                ..config(&mock)
            })?;
            let asked = (0..PARALLEL).map(|_| ask(&model, "hello"));
            let results = futures_util::future::join_all(asked).await;
            assert!(results.iter().all(Result::is_err));
        }
    }
    let growth = peak_bytes()?.saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "grew by {growth} bytes");
    Ok(())
}
