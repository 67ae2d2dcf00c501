//! People over records in memory, and a clock that a test moves.

use conclave_core::TenantId;
use conclave_ledger::Kind;
use conclave_people::People;
use conclave_ports::{Caller, Clock, Entropy, KeyRole, KeyedSubjects, RecordsInMemory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let next = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = next[at % next.len()];
        }
    }
}

pub struct SetClock(pub AtomicU64);

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

pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub fn caller(holder: &str, role: KeyRole) -> Caller {
    Caller { holder: holder.into(), tenant: tenant("t"), role, person: None }
}

impl Office {
    pub fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }

    pub fn entries(&self, kind: &Kind) -> usize {
        self.records.entries().iter().filter(|(known, _)| known == kind).count()
    }

    pub async fn with_elders(self) -> Self {
        let owner = caller("o", KeyRole::Owner);
        self.people.name_elder(&owner, "River People", "e1", "Ana").await.unwrap();
        let first = caller("e1", KeyRole::Elder);
        self.people.name_elder(&first, "River People", "e2", "Ben").await.unwrap();
        self
    }
}
