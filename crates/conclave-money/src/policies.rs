//! The policies of tenants: kept as records, held in memory, over what the configuration states.
//!
//! **Invariant:** a turn never waits for a database to know its policy. What is in memory is as of the
//! last contact; if there was none since the start, what was copied then holds.

use conclave_core::TenantId;
use conclave_govern::{PolicyError, TenantPolicy, Usd, tenant_name_fault};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{
    Record, RecordChange, RecordKey, RecordKind, RecordQuery, Records, RecordsError,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// The id of a tenant's policy among its records.
const POLICY_ID: &str = "policy";
/// The id of a tenant among its own records.
const TENANT_ID: &str = "tenant";
/// The most tenants that are looked after.
const TENANTS_MAX: u32 = 20_000;
const PAGE: u32 = 500;
/// The most users and projects that a tenant names.
const MEMBERS_MAX: usize = 1_000;

/// Why a policy or tenant was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TenantsError {
    /// It cannot be.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// It is no tenant.
    #[error("{0}")]
    Invalid(String),
    /// Records refused.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// A policy and its version; 0 where nobody has set one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPolicy {
    /// From 1; one more with each change.
    pub version: u64,
    /// What it says.
    pub policy: Arc<TenantPolicy>,
}

/// Policies and tenants over records.
pub struct Policies {
    records: Arc<dyn Records>,
    known: RwLock<BTreeMap<TenantId, KnownPolicy>>,
    /// Of tenants that have set none.
    none: KnownPolicy,
}

impl Policies {
    /// Knows nothing yet; see [`Policies::refresh`].
    #[must_use]
    pub fn over(records: Arc<dyn Records>) -> Self {
        Self { records, known: RwLock::default(), none: KnownPolicy::default() }
    }

    /// A tenant's own policy, from memory; the empty one where none was set.
    #[must_use]
    pub fn of(&self, tenant: &TenantId) -> KnownPolicy {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(tenant).unwrap_or(&self.none).clone()
    }

    /// Reads all policies again; says whether one is different. What cannot be read stays as it was.
    ///
    /// # Errors
    /// When the records cannot be reached.
    pub async fn refresh(&self) -> Result<bool, RecordsError> {
        let mut found = BTreeMap::new();
        for offset in (0..TENANTS_MAX).step_by(PAGE as usize) {
            let page = self.list(RecordKind::Policy, offset).await?;
            let last = page.len() < PAGE as usize;
            for record in page {
                let (tenant, version) = (record.key.tenant.clone(), record.version);
                match TenantPolicy::parse(record.data) {
                    Ok(policy) => {
                        found.insert(tenant, KnownPolicy { version, policy: Arc::new(policy) });
                    }
                    // One that cannot be read is of a later program: the last that could holds.
                    Err(error) => {
                        tracing::error!(%tenant, %error, "a stored policy cannot be read");
                        found.insert(tenant.clone(), self.of(&tenant));
                    }
                }
            }
            if last {
                break;
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != found;
        *known = found;
        Ok(changed)
    }

    /// Every policy that was set.
    #[must_use]
    pub fn each(&self) -> Vec<(TenantId, KnownPolicy)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(tenant, known)| (tenant.clone(), known.clone())).collect()
    }

    /// All policies, for a copy that a start without a database can use.
    #[must_use]
    pub fn copy(&self) -> Value {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let rows = known.iter().map(|(tenant, known)| {
            json!({"tenant": tenant, "version": known.version, "policy": *known.policy})
        });
        rows.collect()
    }

    /// Takes such a copy; rows that are none are left out.
    pub fn restore(&self, copy: &Value) {
        let rows = copy.as_array().into_iter().flatten().filter_map(|row| {
            let tenant = TenantId::new(row["tenant"].as_str()?).ok()?;
            let policy = Arc::new(TenantPolicy::parse(row["policy"].clone()).ok()?);
            Some((tenant, KnownPolicy { version: row["version"].as_u64()?, policy }))
        });
        let rows = rows.collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = rows;
    }

    async fn list(&self, kind: RecordKind, offset: u32) -> Result<Vec<Record>, RecordsError> {
        let query = RecordQuery {
            kind,
            tenant: None,
            states: Vec::new(),
            owner: None,
            due_before_ms: None,
            offset,
            limit: PAGE,
        };
        self.records.list(query).await
    }

    /// Sets a tenant's policy; the change is an entry with what was before and what is after.
    ///
    /// # Errors
    /// When the policy cannot be, or somebody else changed it meanwhile.
    pub async fn set(
        &self,
        tenant: &TenantId,
        policy: Value,
        version: Option<u64>,
        now_ms: u64,
    ) -> Result<KnownPolicy, TenantsError> {
        let after = TenantPolicy::parse(policy)?;
        let key = key(RecordKind::Policy, tenant, POLICY_ID);
        let stored = self.records.get(key.clone()).await?;
        let before = match &stored {
            Some(record) => TenantPolicy::parse(record.data.clone()).ok(),
            None => Some(TenantPolicy::default()),
        };
        let read = stored.as_ref().map_or(0, |record| record.version);
        if version.is_some_and(|version| version != read) {
            return Err(RecordsError::Conflict.into());
        }
        let data = serde_json::to_value(&after).map_err(unwritable)?;
        let entry = policy_entry(before.as_ref(), &after, read + 1)?;
        let record = record(key, read, "set", now_ms, data);
        let change = RecordChange { record, entry: Some((Kind::PolicySet, entry)) };
        let made = self.records.put(vec![change]).await?;
        let version = made.first().map_or(read + 1, |record| record.version);
        let now = KnownPolicy { version, policy: Arc::new(after) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(tenant.clone(), now.clone());
        Ok(now)
    }

    /// Every tenant that was entered, by name.
    ///
    /// # Errors
    /// When the records cannot be reached.
    pub async fn tenants(&self, offset: u32) -> Result<Vec<Value>, TenantsError> {
        let page = self.list(RecordKind::Tenant, offset).await?;
        Ok(page.iter().map(shown).collect())
    }

    /// A tenant, if it was entered.
    ///
    /// # Errors
    /// When the records cannot be reached.
    pub async fn tenant(&self, tenant: &TenantId) -> Result<Option<Value>, TenantsError> {
        let found = self.records.get(key(RecordKind::Tenant, tenant, TENANT_ID)).await?;
        Ok(found.as_ref().map(shown))
    }

    /// Enters a tenant that is not there yet.
    ///
    /// # Errors
    /// When a name is wrong or there are too many; [`RecordsError::Conflict`] when it is there.
    pub async fn enter(
        &self,
        tenant: &TenantId,
        users: &[String],
        projects: &[String],
        now_ms: u64,
    ) -> Result<Value, TenantsError> {
        if let Some(fault) = tenant_name_fault(tenant.as_str()) {
            return Err(TenantsError::Invalid(fault));
        }
        check_members(users)?;
        check_members(projects)?;
        let members = json!({"users": users, "projects": projects});
        self.put_tenant(tenant, 0, members, now_ms).await
    }

    /// Replaces the users of a tenant, its projects, or both; `None` stays as it was. Without such a
    /// tenant there is nothing to change and nothing is returned.
    ///
    /// # Errors
    /// When a name is wrong or there are too many, or somebody else changed it meanwhile.
    pub async fn change(
        &self,
        tenant: &TenantId,
        users: Option<&[String]>,
        projects: Option<&[String]>,
        now_ms: u64,
    ) -> Result<Option<Value>, TenantsError> {
        let found = self.records.get(key(RecordKind::Tenant, tenant, TENANT_ID)).await?;
        let Some(stored) = found else { return Ok(None) };
        let mut members = stored.data;
        if let Some(users) = users {
            check_members(users)?;
            members["users"] = json!(users);
        }
        if let Some(projects) = projects {
            check_members(projects)?;
            members["projects"] = json!(projects);
        }
        self.put_tenant(tenant, stored.version, members, now_ms).await.map(Some)
    }

    /// Takes the place of the version that was read, 0 if there was none.
    async fn put_tenant(
        &self,
        tenant: &TenantId,
        read: u64,
        members: Value,
        now_ms: u64,
    ) -> Result<Value, TenantsError> {
        let entry = Public::map([
            ("version", Public::Uint(read + 1)),
            ("users", count(members["users"].as_array().map_or(0, Vec::len))),
            ("projects", count(members["projects"].as_array().map_or(0, Vec::len))),
        ]);
        let key = key(RecordKind::Tenant, tenant, TENANT_ID);
        let record = record(key, read, "active", now_ms, members);
        let change = RecordChange { record, entry: Some((Kind::TenantChange, entry)) };
        let made = self.records.put(vec![change]).await?;
        Ok(made.first().map(shown).unwrap_or_default())
    }
}

fn check_members(names: &[String]) -> Result<(), TenantsError> {
    let is_plain = |name: &String| {
        !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control)
    };
    if names.len() <= MEMBERS_MAX && names.iter().all(is_plain) {
        return Ok(());
    }
    Err(TenantsError::Invalid(format!(
        "users and projects are at most {MEMBERS_MAX} names of 1 to 200 bytes"
    )))
}

fn key(kind: RecordKind, tenant: &TenantId, id: &str) -> RecordKey {
    RecordKey { kind, tenant: tenant.clone(), id: id.to_owned() }
}

fn record(key: RecordKey, version: u64, state: &str, now_ms: u64, data: Value) -> Record {
    let owner = key.tenant.as_str().to_owned();
    let state = state.to_owned();
    Record {
        key,
        version,
        state,
        owner,
        rank: 0,
        due_ms: None,
        changed_ms: now_ms,
        subject: None,
        data,
    }
}

fn shown(record: &Record) -> Value {
    json!({
        "object": "tenant",
        "id": record.key.tenant,
        "version": record.version,
        "changed_at_ms": record.changed_ms,
        "users": record.data["users"],
        "projects": record.data["projects"],
    })
}

fn count(number: usize) -> Public {
    Public::Uint(u64::try_from(number).unwrap_or(u64::MAX))
}

/// Digests of both policies and their numbers: no name that somebody chose stands in a leaf.
fn policy_entry(
    before: Option<&TenantPolicy>,
    after: &TenantPolicy,
    version: u64,
) -> Result<Public, TenantsError> {
    Ok(Public::map([
        ("version", Public::Uint(version)),
        ("before", before.map(policy_fingerprint).transpose()?.unwrap_or(Public::Null)),
        ("after", policy_fingerprint(after)?),
    ]))
}

fn policy_fingerprint(policy: &TenantPolicy) -> Result<Public, TenantsError> {
    let bytes = serde_json::to_vec(policy).map_err(unwritable)?;
    let digest = Public::Bytes(Sha256::digest(bytes).to_vec());
    Ok(Public::map([("digest", digest), ("numbers", numbers(policy))]))
}

fn unwritable(error: impl std::fmt::Display) -> TenantsError {
    TenantsError::Invalid(format!("the policy cannot be written down: {error}"))
}

fn numbers(policy: &TenantPolicy) -> Public {
    let money = |amount: Option<Usd>| amount.map_or(Public::Null, |usd| Public::Uint(usd.0.0));
    let small = |number: Option<u64>| number.map_or(Public::Null, Public::Uint);
    Public::map([
        ("request", money(policy.max_cost_per_request_usd)),
        ("day", money(policy.daily_budget_usd)),
        ("month", money(policy.monthly_budget_usd)),
        ("key_day", money(policy.per_key.daily_usd)),
        ("key_month", money(policy.per_key.monthly_usd)),
        ("user_day", money(policy.per_user.daily_usd)),
        ("user_month", money(policy.per_user.monthly_usd)),
        ("session_day", money(policy.per_session.daily_usd)),
        ("session_month", money(policy.per_session.monthly_usd)),
        ("recipe_day", money(policy.per_recipe.daily_usd)),
        ("recipe_month", money(policy.per_recipe.monthly_usd)),
        ("downgrade_at", Public::Uint(policy.downgrade_at_percent.into())),
        ("downgrades", Public::Bool(policy.auto_downgrade_enabled)),
        ("threshold", small(policy.harm_threshold.map(u64::from))),
        ("retention_days", small(policy.retention_days.map(u64::from))),
        ("audit_failure", policy.audit_failure.map_or(Public::Null, |what| what.as_str().into())),
        ("allowed_models", count(policy.allowed_models.len())),
        ("blocked_models", count(policy.blocked_models.len())),
    ])
}
