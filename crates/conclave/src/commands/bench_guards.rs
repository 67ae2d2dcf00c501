//! `conclave bench guards`: what each guard costs beside the models, and all together, on one core.

use super::{Answer, checker};
use crate::config::SecondTier;
use crate::output;
use crate::system::SystemClock;
use anyhow::{Context, anyhow};
use conclave_core::GuardKind;
use conclave_core::{MicroUsd, Mode, Sensitivity, TenantId};
use conclave_engine::{
    Archive, ArchiveError, Clock, DecisionFilter, DecisionRow, RecordsInMemory, StoredEntry, Tally,
    UsageAsk, UsageBook, UsagePage, Whose,
};
use conclave_govern::{
    ConsentAsk, ConsentEvidence, ConsentRecord, CulturalAsk, EvidenceKind, Protocol, Protocols,
    Scopes, TenantPolicy, check_consent, look,
};
use conclave_govern::{Jurisdictions, Transfer};
use conclave_money::{
    AccountsInMemory, Payer, Policies, ReservationRequest, Steward, StewardState, tokens_at_most,
};
use conclave_pii::{Finder, Tokens, redact};
use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::json;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What somebody says on an ordinary day, with an address that must not leave.
const SAID: &str = "My day was long and my boss was unfair to me in front of everyone. I keep thinking \
    about it and cannot settle down this evening; write to me at mara@example.org.";
/// What a model answers.
const REPLIED: &str = "That sounds like a hard evening after an unfair day. What part of it stays \
    with you the most?";
/// How often a guard is measured; the best counts, because whatever else runs here only adds.
const BATCHES: u32 = 5;
/// Calls in each.
const CALLS: u32 = 400;
/// Communities with protocols, and terms that each looks for.
const COMMUNITIES: usize = 4;
const TERMS: usize = 25;
/// What all guards together may take for a call on a core, storage apart.
const MILLISECONDS_MAX: f64 = 1.0;

/// One guard at work on call number so and so.
type Work = Box<dyn FnMut(u32) -> anyhow::Result<()>>;

/// Runs the command.
///
/// # Errors
/// When a file that is compiled in, or a policy of our own, cannot be read.
pub fn run(as_json: bool) -> anyhow::Result<Answer> {
    let mut measured = Vec::new();
    for (guard, work) in guards()? {
        measured.push((guard, milliseconds(work)?));
    }
    let sum: f64 = measured.iter().map(|(_, each_ms)| each_ms).sum();
    let holds = sum <= MILLISECONDS_MAX;
    if as_json {
        let each: serde_json::Map<_, _> =
            measured.iter().map(|(guard, ms)| (guard.as_str().to_owned(), json!(ms))).collect();
        output::json(&json!({"guards_ms": each, "guards_ms_per_call": sum, "holds": holds}));
    } else {
        for (guard, each_ms) in &measured {
            output::line(&format!("{:<13} {each_ms:.4} ms", guard.as_str()));
        }
        output::line(&format!(
            "all guards    {sum:.4} ms a call on one core, before and after the model (storage apart), \
             at most {MILLISECONDS_MAX} ms"
        ));
    }
    Ok(if holds { Answer::Yes } else { Answer::No })
}

/// Every guard with what it does for one call, before the model and after.
fn guards() -> anyhow::Result<Vec<(GuardKind, Work)>> {
    GuardKind::ALL
        .iter()
        .copied()
        .map(|guard| {
            let work = match guard {
                GuardKind::Cost => cost()?,
                GuardKind::Culture => culture()?,
                GuardKind::Consent => consent(),
                GuardKind::PersonalData => identifying()?,
                GuardKind::Jurisdiction => jurisdiction()?,
                GuardKind::Interpretation | GuardKind::Toxicity => toxicity()?,
                GuardKind::Budget => budget()?,
            };
            Ok((guard, work))
        })
        .collect()
}

fn milliseconds(mut work: Work) -> anyhow::Result<f64> {
    let mut best = f64::INFINITY;
    for batch in 0..BATCHES {
        let start = Instant::now();
        for n in 0..CALLS {
            work(batch * CALLS + n)?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e3 / f64::from(CALLS));
    }
    Ok(best)
}

fn body() -> serde_json::Value {
    json!({"model": "m", "messages": [{"role": "user", "content": SAID}]})
}

/// Whether the model is permitted, and how large the request is at most.
fn cost() -> anyhow::Result<Work> {
    let allowed: Vec<_> = (0..20).map(|n| format!("model-{n}")).chain(["m".to_owned()]).collect();
    let policy = TenantPolicy::parse(json!({"allowed_models": allowed}))?;
    let body = body();
    Ok(Box::new(move |_| {
        black_box((policy.permits(black_box("m")), tokens_at_most(black_box(&body))));
        Ok(())
    }))
}

/// What is said and what would be answered, under the protocols of some communities.
fn culture() -> anyhow::Result<Work> {
    let protocol = |n: usize| -> Result<Protocol, serde_json::Error> {
        let terms: Vec<_> =
            (0..TERMS).map(|term| json!({"spellings": [format!("word{n}x{term}")]})).collect();
        serde_json::from_value(json!({"community": format!("People {n}"), "terms": terms}))
    };
    let all = (0..COMMUNITIES).map(protocol).collect::<Result<Vec<_>, _>>()?;
    let protocols = Protocols::new(all).map_err(|why| anyhow!(why))?;
    let ask = |text: &str| CulturalAsk {
        texts: vec![text.to_owned()],
        sensitivity: Sensitivity::Medium,
        affiliations: vec!["People 1".to_owned()],
        labels: Vec::new(),
        audience: None,
        now_ms: SystemClock.now_ms(),
    };
    let asks = [ask(SAID), ask(REPLIED)];
    Ok(Box::new(move |_| {
        asks.iter().for_each(|ask| drop(black_box(look(&protocols, black_box(ask)))));
        Ok(())
    }))
}

/// A person with ten records, of which the last covers it.
fn consent() -> Work {
    let record = |n: usize| ConsentRecord {
        subject: "teller".to_owned(),
        scopes: vec!["research".to_owned()],
        purposes: vec![format!("purpose {n}")],
        parties: Vec::new(),
        given_ms: 1,
        expires_ms: None,
        evidence: ConsentEvidence { kind: EvidenceKind::Written, reference: "form".to_owned() },
        withdrawn: None,
    };
    let records: Vec<_> = (0..10).map(|n| (format!("c{n}"), record(n))).collect();
    let ask = ConsentAsk {
        subject: "teller".to_owned(),
        scopes: vec!["research".to_owned()],
        purpose: "purpose 9".to_owned(),
        party: None,
        now_ms: 2,
    };
    Box::new(move |_| {
        black_box(check_consent(&records, black_box(&ask)));
        Ok(())
    })
}

/// Finds and replaces in what is said, and looks at what would be answered.
fn identifying() -> anyhow::Result<Work> {
    let finder = Finder::builtin()?;
    Ok(Box::new(move |_| {
        for text in [SAID, REPLIED] {
            let mut tokens = Tokens::new();
            let found = finder.find(black_box(text));
            black_box(redact(text, &found, &mut tokens));
        }
        Ok(())
    }))
}

/// From a person to a region and a provider.
fn jurisdiction() -> anyhow::Result<Work> {
    let rules = Jurisdictions::builtin()?;
    let regions = vec!["NZ".to_owned(), "DE".to_owned()];
    Ok(Box::new(move |_| {
        let (subject, provider) = (Some("DE"), Some(Some("FR")));
        black_box(rules.rule(black_box(&Transfer { subject, regions: &regions, provider })));
        Ok(())
    }))
}

/// Reads the caller's words for harm, everything for orders to the model, and what would be answered.
fn toxicity() -> anyhow::Result<Work> {
    let detector = checker::detector(SecondTier::Never)?;
    Ok(Box::new(move |_| {
        black_box(detector.read(black_box(SAID), Mode::Normal));
        black_box(detector.read(black_box(SAID), Mode::Normal));
        black_box(detector.read_reply("", black_box(REPLIED), Mode::Normal));
        Ok(())
    }))
}

/// The bound, five limits, a reservation and its settlement.
fn budget() -> anyhow::Result<Work> {
    let policy = TenantPolicy::parse(json!({
        "daily_budget_usd": 1_000_000, "monthly_budget_usd": 10_000_000,
        "per_key": {"daily_usd": 1_000_000}, "per_user": {"daily_usd": 1_000_000},
        "per_session": {"daily_usd": 1_000_000}, "max_cost_per_request_usd": 100,
    }))?;
    let tenant = TenantId::new("bench")?;
    let steward = steward();
    let body = body();
    Ok(Box::new(move |n| request(&steward, &policy, &tenant, n, &body)))
}

fn request(
    steward: &Steward,
    policy: &TenantPolicy,
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
    let request = ReservationRequest {
        id,
        policy,
        scopes: &scopes,
        cost: conclave_money::CostBound::exact(MicroUsd(tokens_at_most(body))),
        cheaper: None,
        payer: Payer { tenant: 0, id },
        now_ms: SystemClock.now_ms(),
    };
    let reserved = steward.reserve(request).now_or_never();
    let reserved = reserved.context("accounts in memory do not wait")??;
    let settled = steward.settle(reserved, MicroUsd(10), policy, request.payer).now_or_never();
    settled.map(|_| ()).context("accounts in memory do not wait")
}

fn steward() -> Steward {
    let records = Policies::over(Arc::new(RecordsInMemory::default()));
    let (accounts, clock) = (Arc::<AccountsInMemory>::default(), Arc::new(SystemClock));
    let nothing = Arc::new(Nothing);
    let state = StewardState::new(accounts, records, nothing.clone(), nothing, clock);
    let deadline = Duration::from_secs(30);
    Steward::new(Arc::new(state), BTreeMap::new(), BTreeMap::new(), deadline)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guard_is_measured_and_does_its_work() {
        let mut all = guards().unwrap();
        let names: Vec<_> = all.iter().map(|(guard, _)| *guard).collect();
        assert_eq!(names, GuardKind::ALL);
        for (guard, work) in &mut all {
            work(0).unwrap_or_else(|why| panic!("{}: {why}", guard.as_str()));
        }
    }
}
