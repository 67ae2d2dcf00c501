//! What communities have laid down.
//!
//! **Invariant:** nobody but its elders changes a word of a community's protocol.

use super::{COMMUNITIES_MAX, community_key};
use crate::people::{People, PeopleError};
use crate::records::{key, query, read, recorded};
use conclave_govern::Protocol;
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Caller, Record, RecordKind};

/// A protocol as a caller may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolVersion {
    /// All of it for the elders of the community, the public part for others.
    pub protocol: Protocol,
    /// From 1; one more with each change.
    pub version: u64,
}

impl ProtocolVersion {
    fn read_for(own: &[String], record: &Record) -> Result<Self, PeopleError> {
        let protocol: Protocol = read(record)?;
        let is_own = own.contains(&record.key.id);
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
        let own = self.own_communities(caller).await?;
        ProtocolVersion::read_for(&own, &found.ok_or(none)?)
    }

    /// The protocols of the tenant's communities.
    ///
    /// # Errors
    /// When the records do not answer, or one cannot be read.
    pub async fn protocols(&self, caller: &Caller) -> Result<Vec<ProtocolVersion>, PeopleError> {
        let own = self.own_communities(caller).await?;
        let all = query(RecordKind::Protocol, Some(&caller.tenant), COMMUNITIES_MAX);
        let records = self.records.list(all).await?;
        records.iter().map(|record| ProtocolVersion::read_for(&own, record)).collect()
    }

    async fn own_communities(&self, caller: &Caller) -> Result<Vec<String>, PeopleError> {
        let seats = self.elder_seats(caller).await?.into_iter();
        Ok(seats.map(|seat| seat.community).collect())
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
        if !self.own_communities(caller).await?.contains(&id) {
            return Err(PeopleError::Forbidden(
                "Only the elders of a community change its protocol.",
            ));
        }
        protocol.check()?;
        let tenant = &caller.tenant;
        let place = key(RecordKind::Protocol, tenant, &id);
        let known = self.records.get(place.clone()).await?;
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
        self.records.put(vec![recorded(record, Kind::ProtocolChange, public)]).await?;
        self.read_protocols_again(tenant).await;
        Ok(next)
    }
}
