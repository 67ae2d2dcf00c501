//! The rules: every domain type and every decision of Conclave.
//!
//! **Invariant:** nothing here does IO, reads a clock, draws randomness or awaits. The same input gives
//! the same answer for ever, which is what lets a ledger entry be replayed.
//!
//! **Invariant:** decisions are made in integers (hundredths); floating point only ever enters at the
//! edges and is quantised on the way in.

mod action;
mod ballot;
mod candidate;
mod category;
mod consensus;
mod context;
mod deliberation;
mod directive;
mod guard;
mod id;
mod message;
mod money;
mod outcome;
mod reason;
mod score;
mod scrutiny;
mod sentence;
mod threshold;

pub use action::Action;
pub use ballot::{Abstention, Ballot, Cast, Opinion, Priority, Seat, Vote, intake};
pub use candidate::{Candidate, FinishReason, StandIn, ToolCall, Usage};
pub use category::Category;
pub use consensus::{Consensus, Shortfall, decide};
pub use context::{Mode, Persona, Sensitivity, TurnContext};
pub use deliberation::{
    Attempt, Deliberation, GenerationFailure, Limits, PanelRun, Step, Verdict, Withheld,
};
pub use directive::DirectiveId;
pub use guard::{
    Disposition, Finding, GuardAction, GuardCode, GuardKind, GuardRule, Passage, Phase,
};
pub use id::{AuditId, InvalidId, KeyId, SessionId, TenantId, UserId};
pub use message::{Content, Message, Part, Role};
pub use money::MicroUsd;
pub use outcome::Outcome;
pub use reason::Reason;
pub use score::{Confidence, Score};
pub use scrutiny::{Bars, Scrutiny};
pub use sentence::sentence_end;
pub use threshold::{BelowFloor, FLOOR, Threshold};
