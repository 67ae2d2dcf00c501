//! The use-cases: what happens to a turn, run through ports.
//!
//! **Invariant:** rules live in the pure crates; here they are only put in order and given time,
//! storage and models.

mod agreed;
mod books;
mod check;
mod check_line;
mod contact;
mod decision;
mod deliver;
mod delivery;
mod embed;
mod engine;
mod execute;
mod governed;
mod guard_budget;
mod guard_culture;
mod guards;
mod handing_out;
mod holding;
mod latency;
mod long_text;
mod memory;
mod moderate;
mod off_thread;
mod panel;
mod permission;
mod preflight;
mod recipe_calls;
mod record;
mod release;
mod rests_on;
mod run_model;
mod run_panel;
mod run_record;
mod running;
mod runs;
mod sentinel;
mod settings;
mod spans;
mod spend;
mod transcript;
mod turn;
mod unread;
mod verdicts;
mod windows;
mod workshop;

/// What texts were read as; part of a [`Case`].
pub use conclave_detect::Reading;

pub use check::{Answer, Checker, PiiLine, Question, VoteLine};
pub use check_line::LineError;
pub use decision::{Choice, Decision, Delivered, Terms, Window};
pub use deliver::{DeliverError, Reply};
pub use delivery::Delivery;
pub use embed::Vectors;
pub use engine::Engine;
pub use execute::{Ending, ExecuteError, Executed};
pub use governed::Governed;
pub use handing_out::FetchedRun;
pub use memory::{Memory, Remembered};
pub use panel::{BuiltIn, Panel};
pub use permission::{Interface, Refusal};
pub use recipe_calls::{InterviewFocus, PlaybookBrief, RecipeCaller, ThreadMessage};
pub use release::{Progress, ReleasedWindow};
pub use running::Run;
pub use settings::{AuditFailure, Settings, StreamPolicy};
pub use turn::Turn;
pub use verdicts::Verdicts;
pub use workshop::{RecipeSettings, Workshop, WorkshopError};

pub use conclave_ports::*;
