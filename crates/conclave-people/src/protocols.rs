//! Protocols and the elders of communities.
//!
//! **Invariant:** the first elders of a community are named by the owner of the house; from then on only
//! its elders name others, and nobody else changes a word of its protocol.

use crate::people::{People, PeopleError, all_of, place, read, told, written};
use conclave_core::TenantId;
use conclave_govern::{Decider, Protocol, Unfit, community_id};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Caller, KeyRole, Record, RecordChange, RecordKind};
use serde::{Deserialize, Serialize};

/// So many communities of one tenant.
pub(crate) const COMMUNITIES_MAX: u32 = 64;
/// So many elders of one community.
const ELDERS_MAX: usize = 64;
/// The longest name of a key, an account or a person.
const HOLDER_BYTES_MAX: usize = 200;

/// One elder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elder {
    /// The id of their key, or `person:` and the name of their account.
    pub holder: String,
    /// Who they are: two keys of one person are one person.
    pub person: String,
    /// Since when.
    pub since_ms: u64,
    /// Who named them.
    pub named_by: String,
}

/// Who speaks for a community.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Standing {
    community: String,
    elders: Vec<Elder>,
}

impl People {
    /// The elders of a community.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn elders(
        &self,
        tenant: &TenantId,
        community: &str,
    ) -> Result<Vec<Elder>, PeopleError> {
        let (_, standing) = self.standing(tenant, community).await?;
        Ok(standing.elders)
    }

    async fn standing(
        &self,
        tenant: &TenantId,
        community: &str,
    ) -> Result<(Record, Standing), PeopleError> {
        let id = community_key(community)?;
        let key = place(RecordKind::Standing, tenant, &id);
        let known = self.get(key.clone()).await?;
        let read = known.and_then(|record| Some((read(&record)?, record)));
        Ok(match read {
            Some((standing, record)) => (record, standing),
            None => {
                let standing = Standing { community: community.to_owned(), elders: Vec::new() };
                (self.blank(key, "standing", &id), standing)
            }
        })
    }

    fn blank(&self, key: conclave_ports::RecordKey, state: &str, owner: &str) -> Record {
        Record {
            key,
            version: 0,
            state: state.to_owned(),
            owner: owner.to_owned(),
            rank: 0,
            due_ms: None,
            changed_ms: self.clock.now_ms(),
            subject: None,
            data: serde_json::Value::Null,
        }
    }

    /// What somebody may decide.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn decider(&self, caller: &Caller) -> Result<Decider, PeopleError> {
        let reviewer = matches!(caller.role, KeyRole::Reviewer | KeyRole::Owner);
        let mut decider = Decider {
            person: caller.person.clone().unwrap_or_else(|| caller.holder.clone()),
            named: caller.person.is_some(),
            holder: caller.holder.clone(),
            reviewer,
            elder_of: Vec::new(),
        };
        if caller.role != KeyRole::Elder {
            return Ok(decider);
        }
        let query = all_of(RecordKind::Standing, &caller.tenant, COMMUNITIES_MAX);
        for record in self.list(query).await? {
            let Some(standing) = read::<Standing>(&record) else { continue };
            let named = standing.elders.into_iter().find(|elder| elder.holder == caller.holder);
            if let Some(elder) = named {
                decider.person = elder.person;
                decider.named = true;
                decider.elder_of.push(record.key.id);
            }
        }
        Ok(decider)
    }

    /// Names an elder.
    ///
    /// # Errors
    /// When the caller may not, or it cannot be kept.
    pub async fn name_elder(
        &self,
        caller: &Caller,
        community: &str,
        holder: &str,
        person: &str,
    ) -> Result<Vec<Elder>, PeopleError> {
        for (place, name) in [("holder", holder), ("person", person)] {
            let fits = (1..=HOLDER_BYTES_MAX).contains(&name.len());
            if !fits || name.chars().any(char::is_control) {
                let why =
                    format!("must be 1 to {HOLDER_BYTES_MAX} bytes without control characters");
                return Err(Unfit::new(place, why).into());
            }
        }
        let (record, mut standing) = self.may_change(caller, community).await?;
        standing.elders.retain(|elder| elder.holder != holder);
        if standing.elders.len() >= ELDERS_MAX {
            return Err(PeopleError::Full(format!("a community has at most {ELDERS_MAX} elders")));
        }
        standing.elders.push(Elder {
            holder: holder.to_owned(),
            person: person.to_owned(),
            since_ms: self.clock.now_ms(),
            named_by: caller.holder.clone(),
        });
        self.keep_standing(caller, record, standing, "elder_named", holder).await
    }

    /// Removes an elder; the last one stays, because nobody could name another.
    ///
    /// # Errors
    /// When the caller may not, or there is no such elder.
    pub async fn remove_elder(
        &self,
        caller: &Caller,
        community: &str,
        holder: &str,
    ) -> Result<Vec<Elder>, PeopleError> {
        let (record, mut standing) = self.may_change(caller, community).await?;
        let before = standing.elders.len();
        standing.elders.retain(|elder| elder.holder != holder);
        if standing.elders.len() == before {
            return Err(PeopleError::NotFound(
                "Nobody of that name is an elder of this community.",
            ));
        }
        if standing.elders.is_empty() {
            return Err(PeopleError::Forbidden("The last elder of a community cannot be removed."));
        }
        self.keep_standing(caller, record, standing, "elder_removed", holder).await
    }

    /// The community as it stands, if the caller may change who speaks for it.
    async fn may_change(
        &self,
        caller: &Caller,
        community: &str,
    ) -> Result<(Record, Standing), PeopleError> {
        let (record, standing) = self.standing(&caller.tenant, community).await?;
        let theirs = standing.elders.iter().any(|elder| elder.holder == caller.holder);
        let first = standing.elders.is_empty();
        let may = if first { caller.role == KeyRole::Owner } else { theirs && is_elder(caller) };
        if !may {
            let why = if first {
                "The first elder of a community is named by the owner."
            } else {
                "Only the elders of a community name its elders."
            };
            return Err(PeopleError::Forbidden(why));
        }
        Ok((record, standing))
    }

    async fn keep_standing(
        &self,
        caller: &Caller,
        mut record: Record,
        standing: Standing,
        what: &str,
        whom: &str,
    ) -> Result<Vec<Elder>, PeopleError> {
        if record.version == 0 {
            let known =
                self.list(all_of(RecordKind::Standing, &caller.tenant, COMMUNITIES_MAX)).await?;
            if known.len() >= COMMUNITIES_MAX as usize {
                let sentence = format!("a tenant has at most {COMMUNITIES_MAX} communities");
                return Err(PeopleError::Full(sentence));
            }
        }
        let tenant = &caller.tenant;
        record.changed_ms = self.clock.now_ms();
        record.data = written(&standing);
        let public = Public::map([
            ("what", Public::from(what)),
            ("community", self.digest(b"community", tenant, &record.key.id)),
            ("whom", self.digest(b"reader", tenant, whom)),
            ("by", self.digest(b"reader", tenant, &caller.holder)),
            ("elders", Public::Uint(standing.elders.len() as u64)),
        ]);
        let entry = told(Kind::ProtocolChange, public);
        self.put(vec![RecordChange { record, entry }]).await?;
        Ok(standing.elders)
    }

    /// A protocol: all of it for the elders of the community, the public part for others.
    ///
    /// # Errors
    /// When there is none.
    pub async fn protocol(
        &self,
        caller: &Caller,
        community: &str,
    ) -> Result<(Protocol, u64), PeopleError> {
        let id = community_key(community)?;
        let found = self.get(place(RecordKind::Protocol, &caller.tenant, &id)).await?;
        let none = PeopleError::NotFound("This community has laid down no protocol here.");
        let record = found.ok_or(none.clone())?;
        let protocol: Protocol = read(&record).ok_or(none)?;
        let own = self.decider(caller).await?.elder_of.contains(&id);
        Ok((if own { protocol } else { protocol.public() }, record.version))
    }

    /// The protocols of the tenant's communities, each as the caller may see it.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn protocols(&self, caller: &Caller) -> Result<Vec<(Protocol, u64)>, PeopleError> {
        let own = self.decider(caller).await?.elder_of;
        let records =
            self.list(all_of(RecordKind::Protocol, &caller.tenant, COMMUNITIES_MAX)).await?;
        let seen = records.iter().filter_map(|record| {
            let protocol: Protocol = read(record)?;
            let all = own.contains(&record.key.id);
            Some((if all { protocol } else { protocol.public() }, record.version))
        });
        Ok(seen.collect())
    }

    /// Lays down a protocol, or changes it. `version` is the one that was read, 0 for a first.
    ///
    /// # Errors
    /// When the caller is no elder of the community, or it cannot be kept.
    pub async fn lay_down(
        &self,
        caller: &Caller,
        protocol: Protocol,
        version: Option<u64>,
    ) -> Result<u64, PeopleError> {
        let id = community_key(&protocol.community)?;
        if !self.decider(caller).await?.elder_of.contains(&id) {
            return Err(PeopleError::Forbidden(
                "Only the elders of a community change its protocol.",
            ));
        }
        protocol.check()?;
        let tenant = &caller.tenant;
        let key = place(RecordKind::Protocol, tenant, &id);
        let known = self.get(key.clone()).await?;
        let mut record = known.unwrap_or_else(|| self.blank(key, "in_force", &id));
        if version.is_some_and(|read| read != record.version) {
            return Err(PeopleError::Conflict);
        }
        record.changed_ms = self.clock.now_ms();
        record.data = written(&protocol);
        let public = Public::map([
            ("what", Public::from("protocol_set")),
            ("community", self.digest(b"community", tenant, &id)),
            ("protocol", self.digest(b"protocol", tenant, &record.data.to_string())),
            ("terms", Public::Uint(protocol.terms.len() as u64)),
            ("by", self.digest(b"reader", tenant, &caller.holder)),
        ]);
        let entry = told(Kind::ProtocolChange, public);
        let changed = self.put(vec![RecordChange { record, entry }]).await?;
        self.read_protocols_again(tenant).await;
        Ok(changed.first().map_or(0, |record| record.version))
    }
}

const fn is_elder(caller: &Caller) -> bool {
    matches!(caller.role, KeyRole::Elder)
}

/// Where the records of a community stand.
fn community_key(community: &str) -> Result<String, PeopleError> {
    let id = community_id(community);
    if id.is_empty() || community.len() > conclave_govern::NAME_BYTES_MAX {
        let why = format!("must be 1 to {} bytes with letters", conclave_govern::NAME_BYTES_MAX);
        return Err(Unfit::new("community", why).into());
    }
    Ok(id)
}
