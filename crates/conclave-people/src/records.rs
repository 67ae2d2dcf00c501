//! Records as the use-cases of people write and read them.
//!
//! **Invariant:** what cannot be read is an error that names the record, or stands in the log: it is never
//! taken for absent.

use crate::people::{People, PeopleError};
use conclave_core::TenantId;
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Record, RecordChange, RecordKey, RecordKind, RecordQuery};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

impl People {
    /// A record that is not stored yet and says nothing.
    pub(crate) fn new_record(&self, key: RecordKey, state: &str, owner: &str) -> Record {
        Record {
            key,
            version: 0,
            state: state.to_owned(),
            owner: owner.to_owned(),
            rank: 0,
            due_ms: None,
            changed_ms: self.clock.now_ms(),
            subject: None,
            data: Value::Null,
        }
    }

    /// Has a record say something else from now on.
    pub(crate) fn rewrite(
        &self,
        record: &mut Record,
        value: &impl Serialize,
    ) -> Result<(), PeopleError> {
        let written = serde_json::to_value(value);
        record.data = written.map_err(|error| malformed(record, &error))?;
        record.changed_ms = self.clock.now_ms();
        Ok(())
    }
}

/// A change that the ledger tells of.
pub(crate) fn recorded(record: Record, kind: Kind, public: Public) -> RecordChange {
    RecordChange { record, entry: Some((kind, public)) }
}

/// A change of our own bookkeeping.
pub(crate) fn unrecorded(record: Record) -> RecordChange {
    RecordChange { record, entry: None }
}

pub(crate) fn key(kind: RecordKind, tenant: &TenantId, id: &str) -> RecordKey {
    RecordKey { kind, tenant: tenant.clone(), id: id.to_owned() }
}

/// Everything of a kind, up to a limit: of one tenant, or of all.
pub(crate) fn query(kind: RecordKind, tenant: Option<&TenantId>, limit: u32) -> RecordQuery {
    RecordQuery {
        kind,
        tenant: tenant.cloned(),
        states: Vec::new(),
        owner: None,
        due_before_ms: None,
        offset: 0,
        limit,
    }
}

pub(crate) fn read<T: DeserializeOwned>(record: &Record) -> Result<T, PeopleError> {
    T::deserialize(&record.data).map_err(|error| malformed(record, &error))
}

/// The same where one bad record must not keep the others from people; the log names it.
pub(crate) fn read_or_report<T: DeserializeOwned>(record: &Record) -> Option<T> {
    read(record).inspect_err(|error| tracing::error!(%error, "a record is left out")).ok()
}

fn malformed(record: &Record, error: &serde_json::Error) -> PeopleError {
    PeopleError::Malformed { key: Box::new(record.key.clone()), why: error.to_string() }
}
