//! Protocols as they are known in memory.
//!
//! **Invariant:** whoever waits for a reply never waits for a database here, once the protocols of all
//! tenants were read: they are read again beside, and while the database is away those of the last
//! contact hold.
//! **Invariant:** what is not known is not taken for absent: where nothing was ever read, or a change
//! made here could not be read back, the records are asked, and their silence is an error.

use super::COMMUNITIES_MAX;
use crate::people::{People, PeopleError};
use crate::records::{query, read};
use conclave_core::TenantId;
use conclave_govern::{Protocol, Protocols};
use conclave_ports::{Record, RecordKind, RecordQuery};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many protocols are read together.
const PAGE: u32 = 1_000;
/// The most protocols of all tenants.
const PROTOCOLS_MAX: u32 = 100_000;

/// The protocols that are known.
#[derive(Default)]
pub(crate) struct ProtocolCache(Mutex<CacheState>);

#[derive(Default)]
struct CacheState {
    tenants: BTreeMap<TenantId, TenantProtocols>,
    /// Whether a tenant that is not among them has none.
    is_complete: bool,
    /// Counts changes made here, so that what was read before one is not taken after it.
    changes: u64,
}

/// The version of each protocol, by community.
type Versions = BTreeMap<String, u64>;

struct TenantProtocols {
    versions: Versions,
    protocols: Arc<Protocols>,
}

impl ProtocolCache {
    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantProtocols {
    /// Made ready again only where one is different. Going on without a protocol that cannot be read would
    /// let out what it guards.
    fn from_records(records: &[Record], before: Option<&Self>) -> Result<Self, PeopleError> {
        let versions: Versions =
            records.iter().map(|record| (record.key.id.clone(), record.version)).collect();
        if let Some(same) = before.filter(|before| before.versions == versions) {
            return Ok(Self { versions, protocols: same.protocols.clone() });
        }
        let all = records.iter().map(read::<Protocol>).collect::<Result<_, _>>()?;
        let protocols = Arc::new(Protocols::new(all).map_err(PeopleError::Unavailable)?);
        Ok(Self { versions, protocols })
    }
}

/// A tenant's protocols in a copy.
#[derive(Serialize, Deserialize)]
struct CopiedRow {
    tenant: TenantId,
    versions: Versions,
    protocols: Vec<Protocol>,
}

impl People {
    /// Reads the protocols of all tenants again; says whether any is different.
    ///
    /// # Errors
    /// When the records do not answer or one cannot be read; what was known stays.
    pub async fn refresh_protocols(&self) -> Result<bool, PeopleError> {
        let changes = self.protocol_cache.lock().changes;
        let all = query(RecordKind::Protocol, None, PAGE);
        let mut found: BTreeMap<TenantId, Vec<Record>> = BTreeMap::new();
        for offset in (0..PROTOCOLS_MAX).step_by(PAGE as usize) {
            let page = self.records.list(RecordQuery { offset, ..all.clone() }).await?;
            let is_last = page.len() < PAGE as usize;
            for record in page {
                found.entry(record.key.tenant.clone()).or_default().push(record);
            }
            if is_last {
                break;
            }
        }
        let mut known = self.protocol_cache.lock();
        if known.changes != changes {
            // Somebody here was faster; the next time will do.
            return Ok(false);
        }
        let mut tenants = BTreeMap::new();
        for (tenant, records) in found {
            let taken = TenantProtocols::from_records(&records, known.tenants.get(&tenant))?;
            tenants.insert(tenant, taken);
        }
        let before = known.tenants.iter().map(|(name, theirs)| (name, &theirs.versions));
        let after = tenants.iter().map(|(name, theirs)| (name, &theirs.versions));
        let changed = !known.is_complete || !before.eq(after);
        known.tenants = tenants;
        known.is_complete = true;
        Ok(changed)
    }

    /// The protocols of all tenants, for a copy that a start without a database can use.
    ///
    /// # Errors
    /// When they cannot be written as JSON.
    pub fn copy_protocols(&self) -> Result<Value, PeopleError> {
        let known = self.protocol_cache.lock();
        let rows = known.tenants.iter().map(|(tenant, theirs)| CopiedRow {
            tenant: tenant.clone(),
            versions: theirs.versions.clone(),
            protocols: theirs.protocols.all().to_vec(),
        });
        serde_json::to_value(rows.collect::<Vec<_>>()).map_err(|error| bad_copy(&error))
    }

    /// Takes such a copy.
    ///
    /// # Errors
    /// When it is none; nothing is known then.
    pub fn restore_protocols(&self, copy: &Value) -> Result<(), PeopleError> {
        let rows = Vec::<CopiedRow>::deserialize(copy).map_err(|error| bad_copy(&error))?;
        let mut tenants = BTreeMap::new();
        for CopiedRow { tenant, versions, protocols } in rows {
            let protocols = Arc::new(Protocols::new(protocols).map_err(|why| bad_copy(&why))?);
            tenants.insert(tenant, TenantProtocols { versions, protocols });
        }
        let mut known = self.protocol_cache.lock();
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
            let known = self.protocol_cache.lock();
            if known.is_complete {
                let theirs = known.tenants.get(tenant);
                return Ok(theirs.map_or_else(Arc::default, |theirs| theirs.protocols.clone()));
            }
        }
        let records = self.stored_protocols(tenant).await?;
        let mut known = self.protocol_cache.lock();
        let taken = TenantProtocols::from_records(&records, known.tenants.get(tenant))?;
        let protocols = taken.protocols.clone();
        // Kept so that the same need not be made ready again.
        if known.tenants.len() < PROTOCOLS_MAX as usize {
            known.tenants.insert(tenant.clone(), taken);
        }
        Ok(protocols)
    }

    pub(super) async fn stored_protocols(
        &self,
        tenant: &TenantId,
    ) -> Result<Vec<Record>, PeopleError> {
        let all = query(RecordKind::Protocol, Some(tenant), COMMUNITIES_MAX);
        Ok(self.records.list(all).await?)
    }

    /// After a change made here: what was known of the tenant does not hold any more.
    pub(crate) async fn read_protocols_again(&self, tenant: &TenantId) {
        self.protocol_cache.lock().changes += 1;
        let records = self.stored_protocols(tenant).await;
        let mut known = self.protocol_cache.lock();
        let taken = records
            .and_then(|records| TenantProtocols::from_records(&records, known.tenants.get(tenant)));
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

fn bad_copy(why: &dyn Display) -> PeopleError {
    PeopleError::Unavailable(format!("the copy of protocols: {why}"))
}
