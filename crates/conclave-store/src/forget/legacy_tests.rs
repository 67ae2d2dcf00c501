//! A data directory from before people had keys goes on working.

use crate::db::{LogState, SqliteLog};
use crate::drain::{DrainError, LogDatabase, Supply, TakeEntry};
use crate::keys::Pepper;
use crate::options::StoreOptions;
use crate::{Inspection, Store, inspect};
use conclave_core::{AuditId, SessionId, TenantId, UserId};
use conclave_engine::{Clock, Entropy, pseudonym};
use conclave_ledger::{Body, Draft, EntryId, Kind, Leaf, StoredBody, Value, tenant_number};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Frozen;
impl Clock for Frozen {
    fn now_ms(&self) -> u64 {
        1_800_000_000_000
    }
}

struct Counting(AtomicU64);
impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            chunk.copy_from_slice(&drawn.to_be_bytes()[..chunk.len()]);
        }
    }
}

fn open(dir: &Path, seed: u64) -> Store {
    let entropy = Arc::new(Counting(AtomicU64::new(seed << 32)));
    Store::open(StoreOptions::new(dir, Arc::new(Frozen), entropy)).unwrap()
}

fn audit() -> AuditId {
    AuditId::from_parts(1_700_000_000_000, [3; 10])
}

/// A batch of one entry.
struct One(EntryId, Vec<u8>, Vec<u8>);

impl Supply for One {
    fn meet(&mut self, _log: &LogState, _awaited: u64) -> Result<(), DrainError> {
        Ok(())
    }

    fn review(&mut self, _first: u64, _log: &LogState) -> Result<(), DrainError> {
        Ok(())
    }

    fn hand_over(&mut self, take: &mut TakeEntry<'_>) -> Result<usize, DrainError> {
        take(self.0, &self.1, &self.2).map(|()| 1)
    }

    fn state_gap(&mut self, _: crate::db::Hole) -> Result<(), DrainError> {
        Ok(())
    }
}

/// One decision as an earlier version wrote it: a keyed pseudonym, and words that are not sealed.
fn legacy_directory(dir: &Path) -> [u8; 16] {
    let pepper = Pepper::load(dir, &Counting(AtomicU64::new(7))).unwrap();
    let subject = pseudonym(&pepper.digest(crate::backing::PSEUDONYMS), b"subject", "acme", "ana");
    let mut body = Body::empty();
    body.push("request", [3; 32], "words of before");
    let draft = Draft {
        audit: Some(audit().0.into_bytes()),
        subject: Some(subject),
        session: Some([4; 16]),
        public: Value::map([("outcome", "delivered".into()), ("action", "deliver".into())]),
        ..Draft::new(Kind::Decision, tenant_number("acme"))
    };
    let id = EntryId { replica: [1; 8], epoch: 1, n: 1 };
    let leaf = Leaf { id, ts_ms: 1_700_000_000_000, draft, commitments: body.commitments() };
    let mut log =
        SqliteLog::open(&dir.join("ledger.db"), Arc::default(), &Counting(AtomicU64::new(9)))
            .unwrap();
    log.append(&mut One(id, leaf.encode(), body.encode())).unwrap();
    subject
}

async fn words(store: &Store) -> Option<Vec<u8>> {
    let found = store.archive().find(tenant_number("acme"), audit()).await.unwrap();
    StoredBody::decode(found[0].body.as_deref()?).unwrap().open("request")
}

#[tokio::test]
async fn words_of_before_are_read_kept_under_their_name_and_erased() {
    let dir = tempfile::tempdir().unwrap();
    let subject = legacy_directory(dir.path());
    let (acme, ana) = (TenantId::new("acme").unwrap(), UserId::new("ana").unwrap());
    let talk = SessionId::new("talk").unwrap();
    let store = open(dir.path(), 1);
    assert_eq!(words(&store).await.as_deref(), Some(b"words of before".as_slice()));
    assert_eq!(store.subjects().find(&acme, &ana).await.unwrap(), Some(subject));
    let named = store.subjects().name(&acme, Some(&ana), &talk).await.unwrap();
    assert_eq!(named.subject, Some(subject), "whoever was here before is who they were");
    let ben = UserId::new("ben").unwrap();
    let named = store.subjects().name(&acme, Some(&ben), &talk).await.unwrap();
    let keyed = pseudonym(&store.key_book().digest("x"), b"subject", "acme", "ben");
    assert_ne!(named.subject, Some(keyed));

    let receipt = store.subjects().erase(&acme, &ana).await.unwrap().unwrap();
    assert_eq!((receipt.subject, receipt.bodies), (subject, 1));
    assert_eq!(words(&store).await, None);
    assert_eq!(store.subjects().find(&acme, &ana).await.unwrap(), None);
    let again = store.subjects().name(&acme, Some(&ana), &talk).await.unwrap();
    assert_ne!(again.subject, Some(subject), "an erased name is not given again");
    store.shutdown();
    for file in ["ledger.db", "ledger.db-wal"] {
        let bytes = std::fs::read(dir.path().join(file)).unwrap_or_default();
        let found = bytes.windows(15).any(|window| window == b"words of before");
        assert!(!found, "{file} still holds the words");
    }
    let report = inspect(dir.path(), Inspection::default()).unwrap();
    assert!(report.ok, "{:?}", report.first_bad);
    assert_eq!(report.forgotten, 1);
}

/// Somebody of before who has not been back is erased all the same.
#[tokio::test]
async fn somebody_who_never_came_back_can_be_erased() {
    let dir = tempfile::tempdir().unwrap();
    legacy_directory(dir.path());
    let (acme, ana) = (TenantId::new("acme").unwrap(), UserId::new("ana").unwrap());
    let store = open(dir.path(), 2);
    assert_eq!(store.subjects().erase(&acme, &ana).await.unwrap().unwrap().bodies, 1);
    assert_eq!(store.subjects().erase(&acme, &ana).await.unwrap(), None);
}
