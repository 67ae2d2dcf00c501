//! Governed records: what is neither a decision nor configuration, and may change while the house runs.
//!
//! **Invariant:** a change and the ledger entry that tells of it become durable together or not at all.
//! **Invariant:** of two writers who read the same version, one succeeds.

use conclave_core::TenantId;
use conclave_ledger::{Kind, Value as Public};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A tenant, with its users and projects.
    Tenant,
    /// What a tenant may do and spend.
    Policy,
    /// What somebody agreed to.
    Consent,
    /// What a community says about its knowledge.
    Protocol,
    /// Who is an elder of which community, and other standing of people.
    Standing,
    /// Something that waits for a person.
    Review,
    /// Somebody disagrees with a decision.
    Appeal,
    /// A recipe of a tenant's own.
    Recipe,
    /// One run of a recipe.
    Run,
    /// Where events are sent to.
    Webhook,
    /// An event that is to be sent.
    Event,
    /// A reply that is said again to whoever repeats the request.
    KeptReply,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Tenant,
        Self::Policy,
        Self::Consent,
        Self::Protocol,
        Self::Standing,
        Self::Review,
        Self::Appeal,
        Self::Recipe,
        Self::Run,
        Self::Webhook,
        Self::Event,
        Self::KeptReply,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Policy => "policy",
            Self::Consent => "consent",
            Self::Protocol => "protocol",
            Self::Standing => "standing",
            Self::Review => "review",
            Self::Appeal => "appeal",
            Self::Recipe => "recipe",
            Self::Run => "run",
            Self::Webhook => "webhook",
            Self::Event => "event",
            Self::KeptReply => "kept_reply",
        }
    }
}

/// The longest id of a record.
pub const RECORD_ID_BYTES_MAX: usize = 200;
/// The largest content of a record, as JSON.
pub const RECORD_BYTES_MAX: usize = 256 << 10;

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// What it is.
    pub kind: RecordKind,
    /// Whose.
    pub tenant: TenantId,
    /// Its id within both.
    pub id: String,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it stands.
    pub key: RecordKey,
    /// From 1; one more with each change. What is put brings the version that was read, 0 if new.
    pub version: u64,
    /// A word of a closed list of its kind, such as `pending`; looked for.
    pub state: String,
    /// Whom it concerns: a subject, a community, a record it belongs to; looked for.
    pub owner: String,
    /// Larger ones are listed first.
    pub rank: u32,
    /// When something is due; earlier ones are listed first among equals.
    pub due_ms: Option<u64>,
    /// When it was last changed.
    pub changed_ms: u64,
    /// The pseudonym of the person whose words are in it: it is sealed with their key then, and gone
    /// with it.
    pub subject: Option<[u8; 16]>,
    /// What it says.
    pub data: Value,
}

/// A change of one record.
#[derive(Clone, Debug)]
pub struct RecordChange {
    /// The record as it shall be, with the version that was read.
    pub record: Record,
    /// The entry that tells of it.
    pub entry: Option<(Kind, Public)>,
}

/// Which records to list: by rank, then by due date, then by id.
#[derive(Clone, Debug)]
pub struct RecordQuery {
    /// Which kind.
    pub kind: RecordKind,
    /// Only this tenant's; all tenants' where absent.
    pub tenant: Option<TenantId>,
    /// Only in one of these states; any where empty.
    pub states: Vec<String>,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Only what is due before this time.
    pub due_before_ms: Option<u64>,
    /// Leaves out so many.
    pub offset: u32,
    /// At most this many.
    pub limit: u32,
}

/// Why a record was not read or changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordsError {
    /// Somebody else changed it since it was read; nothing was changed.
    #[error("somebody else has changed this meanwhile; read it again")]
    Conflict,
    /// It cannot be a record.
    #[error("{0}")]
    Invalid(String),
    /// The database does not answer.
    #[error("the records cannot be reached: {0}")]
    Unavailable(String),
}

/// Keeps records.
pub trait Records: Send + Sync {
    /// The record at a place.
    fn get(&self, key: RecordKey) -> BoxFuture<'_, Result<Option<Record>, RecordsError>>;
    /// Makes changes, all or none; returns the records as they are now.
    fn put(&self, changes: Vec<RecordChange>) -> BoxFuture<'_, Result<Vec<Record>, RecordsError>>;
    /// A page of records.
    fn list(&self, query: RecordQuery) -> BoxFuture<'_, Result<Vec<Record>, RecordsError>>;
    /// Removes a record that nobody needs any more, if it has this version; the log keeps what was
    /// said of it.
    fn remove(&self, key: RecordKey, version: u64) -> BoxFuture<'_, Result<(), RecordsError>>;
}
