//! What communities have laid down.
//!
//! **Invariant:** nobody but its elders changes a word of a community's protocol; where it has none yet, the
//! owner of the house may prepare one.

use super::{COMMUNITIES_MAX, community_key};
use crate::people::{People, PeopleError};
use crate::records::{key, read, recorded};
use conclave_govern::Protocol;
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Caller, KeyRole, Record, RecordKind};

/// A protocol as a caller may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolVersion {
    /// All of it for the elders of the community, the public part for others.
    pub protocol: Protocol,
    /// From 1; one more with each change.
    pub version: u64,
}

impl ProtocolVersion {
    fn read_from(record: &Record, is_own: bool) -> Result<Self, PeopleError> {
        let protocol: Protocol = read(record)?;
        let protocol = if is_own { protocol } else { protocol.public() };
        Ok(Self { protocol, version: record.version })
    }
}

impl People {
    /// The protocol of a community.
    ///
    /// # Errors
    /// When there is none.
    pub async fn protocol(
        &self,
        caller: &Caller,
        community: &str,
    ) -> Result<ProtocolVersion, PeopleError> {
        let id = community_key(community)?;
        let found = self.records.get(key(RecordKind::Protocol, &caller.tenant, &id)).await?;
        let none = PeopleError::NotFound("This community has laid down no protocol here.");
        let is_own = self.speaks_for(caller, community).await?;
        ProtocolVersion::read_from(&found.ok_or(none)?, is_own)
    }

    /// The protocols of the tenant's communities.
    ///
    /// # Errors
    /// When the records do not answer, or one cannot be read.
    pub async fn protocols(&self, caller: &Caller) -> Result<Vec<ProtocolVersion>, PeopleError> {
        let seats = self.elder_seats(caller).await?;
        let records = self.stored_protocols(&caller.tenant).await?;
        let views = records.iter().map(|record| {
            let is_own = seats.iter().any(|seat| seat.community == record.key.id);
            ProtocolVersion::read_from(record, is_own)
        });
        views.collect()
    }

    /// Whether somebody may change the protocol of a community.
    async fn speaks_for(&self, caller: &Caller, community: &str) -> Result<bool, PeopleError> {
        let standing = self.standing(&caller.tenant, community).await?.standing;
        let is_preparing = caller.role == KeyRole::Owner && standing.elders.is_empty();
        Ok(is_preparing || standing.has_seat(caller))
    }

    /// Lays down a protocol, or changes it; returns its new version. `version` is the one that was read, 0
    /// for a first.
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
        if !self.speaks_for(caller, &protocol.community).await? {
            return Err(PeopleError::Forbidden(
                "Only the elders of a community change its protocol.",
            ));
        }
        protocol.check()?;
        let tenant = &caller.tenant;
        let place = key(RecordKind::Protocol, tenant, &id);
        let known = self.records.get(place.clone()).await?;
        if known.is_none() && self.stored_protocols(tenant).await?.len() >= COMMUNITIES_MAX as usize
        {
            // Those beyond it would not be read, and so not be looked with.
            let sentence = format!("a tenant has at most {COMMUNITIES_MAX} protocols");
            return Err(PeopleError::Full(sentence));
        }
        let mut record = known.unwrap_or_else(|| self.new_record(place, "in_force", &id));
        if version.is_some_and(|read| read != record.version) {
            return Err(PeopleError::Conflict);
        }
        self.rewrite(&mut record, &protocol)?;
        let public = Public::map([
            ("what", Public::from("protocol_set")),
            ("community", self.digest(b"community", tenant, &id)),
            ("protocol", self.digest(b"protocol", tenant, &record.data.to_string())),
            ("terms", Public::Uint(protocol.terms.len() as u64)),
            ("by", self.digest(b"reader", tenant, &caller.holder)),
        ]);
        let next = record.version + 1;
        let acting = std::iter::once(protocol.community);
        let mut changes = self.handover_changes(caller, acting).await?;
        changes.push(recorded(record, Kind::ProtocolChange, public));
        self.records.put(changes).await?;
        self.read_protocols_again(tenant).await;
        Ok(next)
    }
}
