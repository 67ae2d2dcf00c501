//! The dashboard alone, with decisions in memory: `demo [PORT] [empty]`.
//!
//! Signs in `owner` with the password in `CONCLAVE_PASSWORD`, or `demo demo demo`; `auditor` has
//! the same.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use conclave_core::TenantId;
use conclave_dashboard::{Account, AccountBook, Dashboard, Ports, hash_password, router};
use conclave_engine::{Clock, Entropy, KeyRole};
use conclave_ledger::tenant_number;
use fixture::archive::MemoryArchive;
use fixture::scenes::{
    blocked, crisis, every_kind, exhausted, japanese, ordinary, technical, written_again,
};
use fixture::told::Told;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use tokio::net::TcpListener;

struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "a demonstration runs in real time")]
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}

struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::panic, reason = "without randomness there are no sessions")]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            panic!("the operating system gives no randomness: {error}");
        }
    }
}

/// What happens on an ordinary day, in the shares it happens.
fn ordinary_day() -> Vec<Told> {
    let mut day = Vec::new();
    for _ in 0..5 {
        day.extend([ordinary(), technical(), japanese(), ordinary()]);
    }
    day.extend([written_again(), crisis(), exhausted(), blocked()]);
    day
}

/// A day of decisions, busier in the evening.
fn fill(archive: &MemoryArchive, tenant: u64, now_ms: u64) {
    const MINUTE_MS: u64 = 60_000;
    let day = ordinary_day();
    let mut minutes_ago = 23 * 60 + 40;
    let mut step = 0_usize;
    while minutes_ago > 30 {
        let told = &day[(step * 7) % day.len()];
        archive.add(tenant, now_ms - minutes_ago * MINUTE_MS, told);
        let pause = 3 + (step as u64 * 11) % 9 + if minutes_ago > 14 * 60 { 9 } else { 0 };
        minutes_ago = minutes_ago.saturating_sub(pause);
        step += 1;
    }
    for (at, told) in every_kind().iter().enumerate() {
        archive.add(tenant, now_ms - (29 - at as u64 * 2) * MINUTE_MS, told);
    }
    let erased = &every_kind()[3];
    archive.add_with(tenant, now_ms - MINUTE_MS / 2, erased, |entry| entry.body = None);
}

fn accounts(tenant: &TenantId) -> AccountBook {
    let password = std::env::var("CONCLAVE_PASSWORD").unwrap_or_else(|_| "demo demo demo".into());
    let account = |name: &str, role| {
        let account = Account { name: name.into(), tenant: tenant.clone(), role };
        (account, hash_password(&password, &SystemEntropy))
    };
    AccountBook::new([account("owner", KeyRole::Owner), account("auditor", KeyRole::Auditor)])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().map_or(Ok(8_421), |port| port.parse())?;
    let tenant = TenantId::new("default")?;
    let archive = Arc::new(MemoryArchive::default());
    if args.next().is_none() {
        fill(&archive, tenant_number(tenant.as_str()), SystemClock.now_ms());
    }
    let dashboard = Dashboard::new(Ports {
        sign_in: Arc::new(accounts(&tenant)),
        archive,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        on_transcript_read: Arc::new(|account, id| {
            let _ = writeln!(std::io::stderr(), "{} reads the words of {id}", account.name);
        }),
        people: None,
        appeals: None,
        https: false,
    });
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let _ = writeln!(std::io::stderr(), "http://{}/", listener.local_addr()?);
    axum::serve(listener, router(dashboard)).await?;
    Ok(())
}
