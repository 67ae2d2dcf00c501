//! Protocols as they are known in memory.
//!
//! **Invariant:** whoever waits for a reply never waits for a database here, once the protocols of all
//! tenants were read: they are read again beside, and while the database is away those of the last
//! contact hold.
//! **Invariant:** what is not known is not taken for absent: where nothing was ever read, or a change
//! made here could not be read back, the records are asked, and their silence is an error.

use crate::people::{People, PeopleError, all_of, read};
use crate::protocols::COMMUNITIES_MAX;
use conclave_core::TenantId;
use conclave_govern::{Protocol, Protocols};
use conclave_ports::{Record, RecordKind, RecordQuery};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many protocols are read together.
const PAGE: u32 = 1_000;
/// So many protocols of all tenants there may be.
const PROTOCOLS_MAX: u32 = 100_000;

/// What is known.
#[derive(Default)]
pub(crate) struct KnownProtocols(Mutex<Known>);

#[derive(Default)]
struct Known {
    tenants: BTreeMap<TenantId, TenantProtocols>,
    /// Whether a tenant that is not among them has none.
    is_complete: bool,
    /// Counts changes made here, so that what was read before one is not taken after it.
    changes: u64,
}

/// The protocols of one tenant.
struct TenantProtocols {
    /// Which records, in which versions.
    versions: Vec<(String, u64)>,
    protocols: Arc<Protocols>,
}

impl KnownProtocols {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantProtocols {
    fn of(records: &[Record], before: Option<&Self>) -> Result<Self, PeopleError> {
        let versions: Vec<_> =
            records.iter().map(|record| (record.key.id.clone(), record.version)).collect();
        if let Some(same) = before.filter(|before| before.versions == versions) {
            return Ok(Self { versions, protocols: same.protocols.clone() });
        }
        let all = records.iter().map(|record| {
            // Going on without a protocol that cannot be read would let out what it guards.
            let unreadable = || PeopleError::Unavailable("a protocol cannot be read".to_owned());
            read::<Protocol>(record).ok_or_else(unreadable)
        });
        let all = all.collect::<Result<Vec<_>, _>>()?;
        let protocols = Arc::new(Protocols::new(all).map_err(PeopleError::Unavailable)?);
        Ok(Self { versions, protocols })
    }
}

/// A tenant's protocols in a copy.
#[derive(Serialize, Deserialize)]
struct CopiedRow {
    tenant: TenantId,
    versions: Vec<(String, u64)>,
    protocols: Vec<Protocol>,
}

impl People {
    /// Reads the protocols of all tenants again; says whether any is different.
    ///
    /// # Errors
    /// When the records do not answer or one cannot be read; what was known stays.
    pub async fn refresh_protocols(&self) -> Result<bool, PeopleError> {
        let changes = self.protocols.lock().changes;
        let mut found: BTreeMap<TenantId, Vec<Record>> = BTreeMap::new();
        for offset in (0..PROTOCOLS_MAX).step_by(PAGE as usize) {
            let page = self.list(everywhere(offset)).await?;
            let is_last = page.len() < PAGE as usize;
            for record in page {
                found.entry(record.key.tenant.clone()).or_default().push(record);
            }
            if is_last {
                break;
            }
        }
        let mut known = self.protocols.lock();
        if known.changes != changes {
            // Somebody here was faster; the next time will do.
            return Ok(false);
        }
        let mut tenants = BTreeMap::new();
        for (tenant, records) in found {
            let taken = TenantProtocols::of(&records, known.tenants.get(&tenant))?;
            tenants.insert(tenant, taken);
        }
        let versions = |tenants: &BTreeMap<TenantId, TenantProtocols>| -> Vec<_> {
            tenants.iter().map(|(name, of)| (name.clone(), of.versions.clone())).collect()
        };
        let changed = !known.is_complete || versions(&known.tenants) != versions(&tenants);
        known.tenants = tenants;
        known.is_complete = true;
        Ok(changed)
    }

    /// The protocols of all tenants, for a copy that a start without a database can use.
    #[must_use]
    pub fn copy_protocols(&self) -> Value {
        let known = self.protocols.lock();
        let rows = known.tenants.iter().map(|(tenant, of)| CopiedRow {
            tenant: tenant.clone(),
            versions: of.versions.clone(),
            protocols: of.protocols.all().to_vec(),
        });
        rows.map(|row| serde_json::to_value(row).unwrap_or_default()).collect()
    }

    /// Takes such a copy.
    ///
    /// # Errors
    /// When it is none; nothing is known then.
    pub fn restore_protocols(&self, copy: &Value) -> Result<(), PeopleError> {
        let odd = |why: String| PeopleError::Unavailable(format!("the copy of protocols: {why}"));
        let rows: Vec<CopiedRow> =
            serde_json::from_value(copy.clone()).map_err(|error| odd(error.to_string()))?;
        let mut tenants = BTreeMap::new();
        for CopiedRow { tenant, versions, protocols } in rows {
            let protocols = Arc::new(Protocols::new(protocols).map_err(odd)?);
            tenants.insert(tenant, TenantProtocols { versions, protocols });
        }
        let mut known = self.protocols.lock();
        known.tenants = tenants;
        known.is_complete = true;
        Ok(())
    }

    /// The protocols in force, ready to be looked with.
    pub(crate) async fn protocols_in_force(
        &self,
        tenant: &TenantId,
    ) -> Result<Arc<Protocols>, PeopleError> {
        {
            let known = self.protocols.lock();
            if known.is_complete {
                let of = known.tenants.get(tenant);
                return Ok(of.map_or_else(Arc::default, |of| of.protocols.clone()));
            }
        }
        let records = self.list(all_of(RecordKind::Protocol, tenant, COMMUNITIES_MAX)).await?;
        let mut known = self.protocols.lock();
        let taken = TenantProtocols::of(&records, known.tenants.get(tenant))?;
        let protocols = taken.protocols.clone();
        // Kept so that the same need not be made ready again.
        if known.tenants.len() < PROTOCOLS_MAX as usize {
            known.tenants.insert(tenant.clone(), taken);
        }
        Ok(protocols)
    }

    /// After a change made here: what was known of the tenant does not hold any more.
    pub(crate) async fn read_protocols_again(&self, tenant: &TenantId) {
        self.protocols.lock().changes += 1;
        let records = self.list(all_of(RecordKind::Protocol, tenant, COMMUNITIES_MAX)).await;
        let mut known = self.protocols.lock();
        let taken =
            records.and_then(|records| TenantProtocols::of(&records, known.tenants.get(tenant)));
        match taken {
            Ok(taken) => {
                known.tenants.insert(tenant.clone(), taken);
            }
            Err(error) => {
                tracing::error!(%error, "a changed protocol cannot be read: the records are asked");
                known.is_complete = false;
            }
        }
    }
}

/// A page of all protocols there are.
fn everywhere(offset: u32) -> RecordQuery {
    RecordQuery {
        kind: RecordKind::Protocol,
        tenant: None,
        states: Vec::new(),
        owner: None,
        due_before_ms: None,
        offset,
        limit: PAGE,
    }
}
