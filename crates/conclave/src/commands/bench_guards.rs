//! `conclave bench guards`: what the guards cost beside the models, on one core.

use super::Answer;
use crate::output;
use crate::system::SystemClock;
use anyhow::{Context, anyhow};
use conclave_core::{MicroUsd, TenantId};
use conclave_engine::{
    AccountsInMemory, Archive, ArchiveError, Clock, DecisionFilter, DecisionRow, Policies, Purse,
    RecordsInMemory, Steward, StewardState, StoredEntry, Tally, UsageAsk, UsageBook, UsagePage,
    Whose, tokens_at_most,
};
use conclave_govern::{Reserve, Scopes, TenantPolicy};
use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Requests that are measured.
const REQUESTS: u32 = 20_000;
/// What a call of the guards may take on a core, storage apart.
const MILLISECONDS_MAX: f64 = 1.0;

/// Runs the command.
///
/// # Errors
/// When a policy of our own cannot be read.
pub fn run(as_json: bool) -> anyhow::Result<Answer> {
    let policy = TenantPolicy::parse(json!({
        "daily_budget_usd": 1_000_000, "monthly_budget_usd": 10_000_000,
        "per_key": {"daily_usd": 1_000_000}, "per_user": {"daily_usd": 1_000_000},
        "per_session": {"daily_usd": 1_000_000}, "max_cost_per_request_usd": 100,
    }))?;
    let tenant = TenantId::new("bench")?;
    let steward = steward(BTreeMap::from([(tenant.clone(), policy)]));
    let words = "a message of ordinary length, said once more. ".repeat(40);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": words}]});
    let start = Instant::now();
    for n in 0..REQUESTS {
        request(&steward, &tenant, n, &body)?;
    }
    let each_ms = start.elapsed().as_secs_f64() * 1e3 / f64::from(REQUESTS);
    let holds = each_ms <= MILLISECONDS_MAX;
    if as_json {
        output::json(&json!({"guards_ms_per_request": each_ms, "holds": holds}));
    } else {
        output::line(&format!(
            "guards      {each_ms:.4} ms a request on one core (policy, bound, five limits, hold and \
             settle; storage apart), at most {MILLISECONDS_MAX} ms"
        ));
    }
    Ok(if holds { Answer::Yes } else { Answer::No })
}

fn request(
    steward: &Steward,
    tenant: &TenantId,
    n: u32,
    body: &serde_json::Value,
) -> anyhow::Result<()> {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&n.to_be_bytes());
    let scopes = Scopes {
        tenant: tenant.clone(),
        key: Some("key".to_owned()),
        user: Some(format!("user{}", n % 100)),
        session: Some(format!("session{}", n % 1_000)),
        recipe: None,
    };
    let most = MicroUsd(tokens_at_most(body));
    let ask = Reserve { id, scopes, most, now_ms: SystemClock.now_ms() };
    let held = steward.reserve(ask).now_or_never().context("accounts in memory do not wait")?;
    held.map_err(|error| anyhow!("{error}"))?;
    let settled = steward.settle(tenant, id, MicroUsd(10)).now_or_never();
    let settled = settled.context("accounts in memory do not wait")?;
    settled.map(|_| ()).map_err(|error| anyhow!("{error}"))
}

fn steward(policies: BTreeMap<TenantId, TenantPolicy>) -> Steward {
    let records = Policies::over(Arc::new(RecordsInMemory::default()));
    let (accounts, clock) = (Arc::<AccountsInMemory>::default(), Arc::new(SystemClock));
    let state = StewardState::new(accounts, records, (Arc::new(Nothing), Arc::new(Nothing)), clock);
    let deadline = Duration::from_secs(30);
    Steward::new(Arc::new(state), policies, BTreeMap::new(), deadline)
}

/// An archive with nothing in it: nothing is looked up here.
struct Nothing;

fn none<'a, T: Send + 'a>(empty: T) -> BoxFuture<'a, Result<T, ArchiveError>> {
    ready(Ok(empty)).boxed()
}

impl Archive for Nothing {
    fn find(
        &self,
        _: u64,
        _: conclave_core::AuditId,
    ) -> BoxFuture<'_, Result<Vec<StoredEntry>, ArchiveError>> {
        none(Vec::new())
    }

    fn list(&self, _: DecisionFilter) -> BoxFuture<'_, Result<Vec<DecisionRow>, ArchiveError>> {
        none(Vec::new())
    }

    fn latest(
        &self,
        _: u64,
        _: Whose,
        _: Option<u64>,
    ) -> BoxFuture<'_, Result<Option<StoredEntry>, ArchiveError>> {
        none(None)
    }

    fn tally(&self, _: Option<u64>, _: u64) -> BoxFuture<'_, Result<Tally, ArchiveError>> {
        none(Tally::default())
    }

    fn health(&self) -> BoxFuture<'_, Result<(), ArchiveError>> {
        none(())
    }
}

impl UsageBook for Nothing {
    fn sums(&self, _: UsageAsk) -> BoxFuture<'_, Result<UsagePage, ArchiveError>> {
        none(UsagePage::default())
    }
}
