//! Records that are gone when the process ends: for a library without a store, and for tests.

use crate::records::{
    RECORD_BYTES_MAX, RECORD_ID_BYTES_MAX, Record, RecordChange, RecordKey, RecordQuery, Records,
    RecordsError,
};
use conclave_ledger::{Kind, Value as Public};
use futures_util::future::{BoxFuture, ready};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps records in memory, and the entries their changes would have made.
#[derive(Debug, Default)]
pub struct RecordsInMemory {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    records: BTreeMap<RecordKey, Record>,
    entries: Vec<(Kind, Public)>,
}

impl RecordsInMemory {
    /// What would stand in the ledger.
    #[must_use]
    pub fn entries(&self) -> Vec<(Kind, Public)> {
        self.lock().entries.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, changes: Vec<RecordChange>) -> Result<Vec<Record>, RecordsError> {
        changes.iter().try_for_each(|change| change.record.check())?;
        let mut kept = self.lock();
        for RecordChange { record, .. } in &changes {
            let now = kept.records.get(&record.key).map_or(0, |known| known.version);
            if now != record.version {
                return Err(RecordsError::Conflict);
            }
        }
        let mut changed = Vec::with_capacity(changes.len());
        for RecordChange { mut record, entry } in changes {
            record.version += 1;
            kept.records.insert(record.key.clone(), record.clone());
            kept.entries.extend(entry);
            changed.push(record);
        }
        Ok(changed)
    }

    fn page(&self, query: &RecordQuery) -> Vec<Record> {
        let kept = self.lock();
        let mut found: Vec<_> = match &query.tenant {
            // Those of one kind and tenant stand side by side.
            Some(tenant) => {
                let (kind, tenant) = (query.kind, tenant.clone());
                let first = RecordKey { kind, tenant, id: String::new() };
                let theirs = kept.records.range(&first..).map(|(_, record)| record);
                let theirs = theirs.take_while(|record| {
                    record.key.kind == kind && record.key.tenant == first.tenant
                });
                theirs.filter(|record| query.covers(record)).cloned().collect()
            }
            None => kept.records.values().filter(|record| query.covers(record)).cloned().collect(),
        };
        found.sort_by_key(|record| {
            let due_ms = record.due_ms.unwrap_or(u64::MAX);
            (Reverse(record.rank), due_ms, record.key.id.clone(), record.key.tenant.clone())
        });
        let (offset, limit) = (query.offset as usize, query.limit as usize);
        found.into_iter().skip(offset).take(limit).collect()
    }
}

impl Record {
    /// Whether it can be kept.
    ///
    /// # Errors
    /// When its id is empty or too long, or its content too large.
    pub fn check(&self) -> Result<(), RecordsError> {
        let id = self.key.id.len();
        if id == 0 || id > RECORD_ID_BYTES_MAX {
            let sentence = format!("an id has 1 to {RECORD_ID_BYTES_MAX} bytes, this one has {id}");
            return Err(RecordsError::Invalid(sentence));
        }
        let size = self.data.to_string().len();
        if size > RECORD_BYTES_MAX {
            let sentence = format!("{size} bytes are more than a record of {RECORD_BYTES_MAX}");
            return Err(RecordsError::Invalid(sentence));
        }
        Ok(())
    }
}

impl RecordQuery {
    /// Whether a record is asked for.
    #[must_use]
    pub fn covers(&self, record: &Record) -> bool {
        let due = self.due_before_ms.is_none_or(|end| record.due_ms.is_some_and(|due| due < end));
        record.key.kind == self.kind
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == record.key.tenant)
            && (self.states.is_empty() || self.states.contains(&record.state))
            && self.owner.as_ref().is_none_or(|owner| *owner == record.owner)
            && due
    }
}

impl Records for RecordsInMemory {
    fn get(&self, key: RecordKey) -> BoxFuture<'_, Result<Option<Record>, RecordsError>> {
        Box::pin(ready(Ok(self.lock().records.get(&key).cloned())))
    }

    fn put(&self, changes: Vec<RecordChange>) -> BoxFuture<'_, Result<Vec<Record>, RecordsError>> {
        Box::pin(ready(self.change(changes)))
    }

    fn list(&self, query: RecordQuery) -> BoxFuture<'_, Result<Vec<Record>, RecordsError>> {
        Box::pin(ready(Ok(self.page(&query))))
    }

    fn remove(&self, key: RecordKey, version: u64) -> BoxFuture<'_, Result<(), RecordsError>> {
        let mut kept = self.lock();
        let known = kept.records.get(&key).map(|record| record.version);
        let removed = match known {
            None => Ok(()),
            Some(known) if known == version => {
                kept.records.remove(&key);
                Ok(())
            }
            Some(_) => Err(RecordsError::Conflict),
        };
        Box::pin(ready(removed))
    }
}
