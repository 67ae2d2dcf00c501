//! The use-cases: what happens to a turn, run through ports.
//!
//! **Invariant:** rules live in the pure crates; here they are only put in order and given time,
//! storage and models.

mod check;
mod check_line;
mod correction;
mod decision;
mod deliver;
mod delivery;
mod engine;
mod execute;
mod explanation;
mod governance;
mod governed;
mod guard_budget;
mod guards;
mod influence;
mod memory;
mod off_thread;
mod panel;
mod ports;
mod preflight;
mod proofs;
mod pseudonym;
mod recipe_calls;
mod record;
mod records;
mod records_in_memory;
mod run_model;
mod run_panel;
mod run_record;
mod running;
mod runs;
mod settings;
mod stored;
mod subject;
mod transcript;
mod turn;
mod verdicts;
mod view;
mod workshop;

pub use check::{Answer, Checker, PiiLine, Question, VoteLine};
pub use check_line::LineError;
pub use correction::{Concern, Correction, LearningProposal, corrections};
pub use decision::{Choice, Decision, Delivered};
pub use deliver::{DeliverError, Reply};
pub use delivery::Delivery;
pub use engine::Engine;
pub use execute::{Ending, ExecuteError, Executed};
pub use explanation::{Explanation, SafetyVerification, explain};
pub use governance::{GovernError, Governance, Purse, PurseError};
pub use governed::Governed;
pub use influence::{Contribution, Part};
pub use memory::{Memory, Remembered};
pub use panel::{BuiltIn, Panel};
pub use ports::{
    AppendError, Appended, Archive, ArchiveError, Clock, DecisionFilter, DecisionRow, Entropy,
    ErasureReceipt, KeyRecord, KeyRing, KeyRole, Ledger, LedgerAlert, LedgerState, Model,
    ModelDirectory, ModelError, ModelRequest, OfferedModel, Pseudonyms, StoredEntry, Subjects,
    SubjectsError, Tally, Verifier, VerifierError, Whose,
};
pub use proofs::{Consistency, Proofs, ReceiptState};
pub use pseudonym::{KeyedSubjects, pseudonym};
pub use recipe_calls::{Caller, InterviewFocus, PlaybookBrief, ThreadMessage};
pub use records::{
    RECORD_BYTES_MAX, RECORD_ID_BYTES_MAX, Record, RecordChange, RecordKey, RecordKind,
    RecordQuery, Records, RecordsError,
};
pub use records_in_memory::RecordsInMemory;
pub use running::Run;
pub use runs::FetchedRun;
pub use settings::{AuditFailure, Settings};
pub use stored::{StoredDecision, StoredError, replay};
pub use subject::{ExportPage, export_page};
pub use turn::Turn;
pub use verdicts::Verdicts;
pub use view::view;
pub use workshop::{RecipeSettings, Workshop, WorkshopError};
