//! Who speaks for a community.
//!
//! **Invariant:** the first elder of a community is named by the owner of the house; from then on only its
//! elders name others.

use super::{COMMUNITIES_MAX, community_key};
use crate::people::{People, PeopleError};
use crate::records::{key, query, read, read_or_report, recorded};
use conclave_core::TenantId;
use conclave_govern::Unfit;
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Caller, KeyRole, Record, RecordKind};
use serde::{Deserialize, Serialize};

/// The most elders of one community.
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
    /// The key or account that named them.
    pub named_by: String,
}

/// Who speaks for a community, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    community: String,
    pub(super) elders: Vec<Elder>,
}

/// A community with the record it was read from.
pub(super) struct StoredStanding {
    record: Record,
    pub(super) standing: Standing,
}

/// A seat among the elders of a community.
pub(crate) struct ElderSeat {
    /// The community's id.
    pub(crate) community: String,
    pub(crate) person: String,
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
        Ok(self.standing(tenant, community).await?.standing.elders)
    }

    pub(super) async fn standing(
        &self,
        tenant: &TenantId,
        community: &str,
    ) -> Result<StoredStanding, PeopleError> {
        let id = community_key(community)?;
        let place = key(RecordKind::Standing, tenant, &id);
        if let Some(record) = self.records.get(place.clone()).await? {
            return Ok(StoredStanding { standing: read(&record)?, record });
        }
        let standing = Standing { community: community.to_owned(), elders: Vec::new() };
        Ok(StoredStanding { record: self.new_record(place, "standing", &id), standing })
    }

    /// Where a caller is an elder. The right key in another role is the wrong key.
    pub(crate) async fn elder_seats(&self, caller: &Caller) -> Result<Vec<ElderSeat>, PeopleError> {
        if caller.role != KeyRole::Elder {
            return Ok(Vec::new());
        }
        let all = query(RecordKind::Standing, Some(&caller.tenant), COMMUNITIES_MAX);
        let mut seats = Vec::new();
        for record in self.records.list(all).await? {
            // Whose seat cannot be read has none: nobody decides by a record that nobody understands.
            let Some(standing) = read_or_report::<Standing>(&record) else { continue };
            let own = standing.elders.into_iter().find(|elder| elder.holder == caller.holder);
            let community = record.key.id;
            seats.extend(own.map(|elder| ElderSeat { community, person: elder.person }));
        }
        Ok(seats)
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
        let mut stored = self.may_change(caller, community).await?;
        let elders = &mut stored.standing.elders;
        elders.retain(|elder| elder.holder != holder);
        if elders.len() >= ELDERS_MAX {
            return Err(PeopleError::Full(format!("a community has at most {ELDERS_MAX} elders")));
        }
        elders.push(Elder {
            holder: holder.to_owned(),
            person: person.to_owned(),
            since_ms: self.clock.now_ms(),
            named_by: caller.holder.clone(),
        });
        self.keep_standing(caller, stored, "elder_named", holder).await
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
        let mut stored = self.may_change(caller, community).await?;
        let elders = &mut stored.standing.elders;
        let before = elders.len();
        elders.retain(|elder| elder.holder != holder);
        if elders.len() == before {
            return Err(PeopleError::NotFound(
                "Nobody of that name is an elder of this community.",
            ));
        }
        if elders.is_empty() {
            return Err(PeopleError::Forbidden("The last elder of a community cannot be removed."));
        }
        self.keep_standing(caller, stored, "elder_removed", holder).await
    }

    /// The community as it stands, if the caller may change who speaks for it.
    async fn may_change(
        &self,
        caller: &Caller,
        community: &str,
    ) -> Result<StoredStanding, PeopleError> {
        let stored = self.standing(&caller.tenant, community).await?;
        let elders = &stored.standing.elders;
        let theirs = elders.iter().any(|elder| elder.holder == caller.holder);
        let first = elders.is_empty();
        let may = if first {
            caller.role == KeyRole::Owner
        } else {
            theirs && caller.role == KeyRole::Elder
        };
        if !may {
            let why = if first {
                "The first elder of a community is named by the owner."
            } else {
                "Only the elders of a community name its elders."
            };
            return Err(PeopleError::Forbidden(why));
        }
        Ok(stored)
    }

    async fn keep_standing(
        &self,
        caller: &Caller,
        stored: StoredStanding,
        what: &str,
        whom: &str,
    ) -> Result<Vec<Elder>, PeopleError> {
        let StoredStanding { mut record, standing } = stored;
        let tenant = &caller.tenant;
        if record.version == 0 {
            let all = query(RecordKind::Standing, Some(tenant), COMMUNITIES_MAX);
            if self.records.list(all).await?.len() >= COMMUNITIES_MAX as usize {
                let sentence = format!("a tenant has at most {COMMUNITIES_MAX} communities");
                return Err(PeopleError::Full(sentence));
            }
        }
        self.rewrite(&mut record, &standing)?;
        let public = Public::map([
            ("what", Public::from(what)),
            ("community", self.digest(b"community", tenant, &record.key.id)),
            ("whom", self.digest(b"reader", tenant, whom)),
            ("by", self.digest(b"reader", tenant, &caller.holder)),
            ("elders", Public::Uint(standing.elders.len() as u64)),
        ]);
        self.records.put(vec![recorded(record, Kind::ProtocolChange, public)]).await?;
        Ok(standing.elders)
    }
}
