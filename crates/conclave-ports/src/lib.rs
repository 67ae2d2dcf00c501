//! What the use-cases need from the outside world: traits, and the data that crosses them.
//!
//! Adapters (models, stores) implement these and see nothing else of the use-cases; the use-cases
//! (engine, money, people, recipes) call these and see nothing of the adapters.
//!
//! **Invariant:** every source of time, chance, text or storage is one of these, so that a test can
//! replace it and a decision can be replayed.

mod archive;
mod clock;
mod governance;
mod hand_out;
mod heard;
mod keys;
mod ledger;
mod model;
mod policies;
mod post;
mod proofs;
mod pseudonym;
mod records;
mod records_in_memory;
mod stamp;
mod stored;
mod subjects;
pub mod trace;
mod usage;
mod verifier;

pub use archive::{Archive, ArchiveError, DecisionFilter, DecisionRow, StoredEntry, Tally, Whose};
pub use clock::{Clock, Entropy};
/// What a verifier is shown; part of the [`Verifier`] port.
pub use conclave_verifiers::Case;
pub use governance::{Announcement, EventKind, GovernError, Governance, WHY_PATH, answer_in_time};
pub use hand_out::{
    CHAT_PURPOSE, CHAT_SCOPE, CONSENT_WORDS, ConsentBasis, ConsentGap, HELD_WORDS, HandOut,
    HandOutError, Hindrance, REVIEW_WORDS, review_id,
};
pub use heard::{MEMORY_WORDS, SensorShare, StandingOverTime};
pub use keys::{
    Caller, KEYS_MAX, KeyDesk, KeyDeskError, KeyOrder, KeyRecord, KeyRing, KeyRole,
    LABEL_BYTES_MAX, ListedKey, MadeKey,
};
pub use ledger::{AppendError, Appended, Ledger, LedgerAlert, LedgerState};
pub use model::{
    Embedded, Embedding, Model, ModelDirectory, ModelError, ModelRequest, OfferedModel,
    UpstreamRefusal,
};
pub use policies::{PolicyInForce, PolicySource};
pub use post::Post;
pub use proofs::{Consistency, Proofs, ReceiptState, TenantEntries};
pub use pseudonym::{KeyedSubjects, pseudonym};
pub use records::{
    RECORD_BYTES_MAX, RECORD_ID_BYTES_MAX, Record, RecordChange, RecordKey, RecordKind,
    RecordQuery, Records, RecordsError,
};
pub use records_in_memory::RecordsInMemory;
pub use stamp::Stamp;
pub use stored::{StoredDecision, StoredError, array, ballot_of, objections, replay, sums};
pub use subjects::{ErasureReceipt, Pseudonyms, Subjects, SubjectsError};
pub use usage::{UsageAsk, UsageBook, UsageBy, UsagePage, UsageRow, UsageSums};
pub use verifier::{Elsewhere, Hearing, Verifier, VerifierError, WhenFailing};
