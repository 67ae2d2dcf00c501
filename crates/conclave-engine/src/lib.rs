//! The pipeline every request goes through: admit, guard, deliberate, guard, conclude.
//!
//! `matter` is what goes through, `guards` who looks at it, `deliberate` how a reply is written and
//! judged, `conclude` what is made of the result, `talk` the use-cases of a conversation. Recipes run
//! over the same parts from their own crate.
//!
//! **Invariant:** rules live in the pure crates; here they are only put in order and given time,
//! storage and models.

mod check;
mod conclude;
mod deliberate;
mod engine;
mod guards;
mod matter;
mod per_tenant;
mod settings;
mod shares;
mod talk;

/// What texts were read as; part of a [`Case`].
pub use conclave_detect::Reading;
pub use conclave_ports::*;

pub use check::{CheckAnswer, Checker, LineError, PiiLine, Question, VoteLine};
pub use conclude::{
    Choice, Decision, DecisionEntry, DecisionWords, DeliverError, Delivered, Delivery,
    RecordedDecision, Reply, Stop, Terms, Window, about_model, bars_value, guard_rows, panel_value,
    statements,
};
pub use deliberate::{BuiltIn, Panel, Progress, ReleasedWindow, Verdicts};
pub use engine::Engine;
pub use guards::{
    BUILTIN_MODEL, Examined, Guard, GuardEffect, GuardEntry, GuardError, Payment, PersonalData,
    Places, harm_of, is_unseen, read_words, refusal_sentence, standard_guards, within_patience,
};
pub use matter::{
    ConsentQuestion, ExcessTokens, HistoryOrigin, HistoryReading, HistoryText, Hold, KnownReadings,
    Matter, MatterContent, Memory, PriorApproval, Purpose, RefusedText, Remembered, Turn,
};
pub use per_tenant::PerTenant;
pub use settings::{AuditFailure, OnDoubt, Settings, StreamPolicy, UnjudgedParts};
pub use shares::{LONG_BYTES, OverShare, Sharer, Shares, off_workers};
pub use talk::Vectors;
