//! The use-cases: what happens to a turn, run through ports.
//!
//! **Invariant:** rules live in the pure crates; here they are only put in order and given time,
//! storage and models.

mod accounts;
mod accounts_in_memory;
mod agreed;
mod books;
mod check;
mod check_line;
mod consents;
mod contact;
mod correction;
mod cost;
mod decision;
mod deliver;
mod delivery;
mod embed;
mod engine;
mod execute;
mod explanation;
mod governed;
mod guard_budget;
mod guard_culture;
mod guards;
mod handing_out;
mod holding;
mod influence;
mod known_protocols;
mod latency;
mod long_text;
mod memory;
mod moderate;
mod off_thread;
mod panel;
mod people;
mod permission;
mod policies;
mod preflight;
mod protocols;
mod recipe_calls;
mod record;

mod release;
mod rests_on;
mod reviews;
mod run_model;
mod run_panel;
mod run_record;
mod running;
mod runs;
mod sentinel;
mod settings;
mod spans;
mod spend;
mod steward;
mod subject;
mod transcript;
mod turn;
mod unasked;
mod unread;
mod verdicts;
mod view;
mod webhooks;
mod windows;
mod workshop;

/// What texts were read as; part of a [`Case`].
pub use conclave_detect::Reading;

pub use accounts::{Accounts, AccountsError, HoldAnswer, Unsettled};
pub use accounts_in_memory::AccountsInMemory;
pub use check::{Answer, Checker, PiiLine, Question, VoteLine};
pub use check_line::LineError;
pub use correction::{Concern, Correction, LearningProposal, corrections};
pub use decision::{Choice, Decision, Delivered, Terms, Window};
pub use deliver::{DeliverError, Reply};
pub use delivery::Delivery;
pub use embed::Vectors;
pub use engine::Engine;
pub use execute::{Ending, ExecuteError, Executed};
pub use explanation::{Explanation, SafetyVerification, explain};
pub use governed::Governed;
pub use handing_out::FetchedRun;
pub use holding::{HeldWords, Released, held_words};
pub use influence::{Contribution, Part};
pub use memory::{Memory, Remembered};
pub use panel::{BuiltIn, Panel};
pub use people::{People, PeopleError, RecordedGovernance, Staff};
pub use permission::{Interface, Refusal};
pub use policies::{KnownPolicy, Policies, TenantsError};
pub use protocols::{Caller, Elder};
pub use recipe_calls::{InterviewFocus, PlaybookBrief, RecipeCaller, ThreadMessage};
pub use release::{Progress, ReleasedWindow};
pub use reviews::{Held, ReviewFilter, review_id_of};
pub use running::Run;
pub use settings::{AuditFailure, Settings, StreamPolicy};
pub use spend::tokens_at_most;
pub use steward::{Fee, Steward, StewardState, Unpaid, resets_ms};
pub use subject::{ExportPage, export_page};
pub use turn::Turn;
pub use unasked::Unasked;
pub use verdicts::Verdicts;
pub use view::view;
pub use webhooks::{Letter, Webhook, webhook_signature};
pub use workshop::{RecipeSettings, Workshop, WorkshopError};

pub use conclave_ports::*;
