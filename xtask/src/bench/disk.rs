//! What the disk allows.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a typical ledger entry.
const ENTRY_BYTES: usize = 2048;

/// How long one small write and `fdatasync` take on the disk in question.
pub fn fsync_time(dir: &Path) -> anyhow::Result<Duration> {
    let mut file = File::create(dir.join("fsync-probe"))?;
    file.write_all(&vec![0; 1 << 20])?;
    file.sync_all()?;
    let (started, mut rounds) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(1) {
        file.write_all_at(&[7; ENTRY_BYTES], u64::from(rounds % 400) * 2048)?;
        file.sync_data()?;
        rounds += 1;
    }
    Ok(started.elapsed() / rounds.max(1))
}

/// Requests a second that the disk allows so many clients.
pub fn bound(concurrency: usize, fsync: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "some thousand clients at most")]
    let clients = concurrency as f64;
    clients / (1.5 * fsync.as_secs_f64() + 0.0008)
}
