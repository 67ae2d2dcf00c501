//! People who agree, lay down and decide, over records in memory.

use crate::fakes::Counting;
use conclave_core::TenantId;
use conclave_engine::{
    Caller, Clock, Engine, KeyRole, KeyedSubjects, PolicyInForce, PolicySource, Post,
    RecordsInMemory,
};
use conclave_people::{GuardedHandOut, People};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub struct Office {
    pub people: Arc<People>,
    pub records: Arc<RecordsInMemory>,
    pub clock: Arc<SetClock>,
}

impl Office {
    pub fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }
}

pub fn office() -> Office {
    let records = Arc::new(RecordsInMemory::default());
    let clock = Arc::new(SetClock(AtomicU64::new(1_800_000_000_000)));
    let people = People::new(
        records.clone(),
        Arc::new(KeyedSubjects([9; 32])),
        clock.clone(),
        Arc::new(Counting::default()),
        [9; 32],
    );
    Office { people: Arc::new(people), records, clock }
}

pub fn caller(holder: &str, role: KeyRole) -> Caller {
    let tenant = TenantId::new("t").unwrap();
    Caller { holder: holder.into(), tenant, role, person: None }
}

/// Nobody has set a policy.
struct Open;

impl PolicySource for Open {
    fn in_force(&self, _: &TenantId) -> PolicyInForce {
        PolicyInForce::default()
    }
}

/// Hands out what this engine held; the governance is the engine's own.
pub fn hand_out(engine: &Engine, people: &Arc<People>) -> GuardedHandOut {
    GuardedHandOut {
        people: people.clone(),
        governance: engine.governance.clone().unwrap(),
        archive: engine.archive.clone(),
        ledger: engine.ledger.clone(),
        policies: engine
            .steward
            .clone()
            .map_or_else(|| Arc::new(Open) as _, |steward| steward as _),
        clock: engine.clock.clone(),
        stamp: engine.settings.stamp(),
        pseudonym_key: engine.settings.pseudonym_key,
    }
}

/// A place outside that takes everything.
pub struct Place;

impl Post for Place {
    fn check<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }

    fn post<'a>(
        &'a self,
        _: &'a str,
        _: Vec<(&'static str, String)>,
        _: String,
    ) -> BoxFuture<'a, Result<u16, String>> {
        std::future::ready(Ok(200)).boxed()
    }
}
