//! How a person moves over days and sessions: four slow movements, each with its evidence.
//!
//! **Invariant:** constant memory and constant time per message, however long somebody has been here.
//! **Invariant:** an alert quotes at least three messages that really were said; one sentence is no drift.
//! **Invariant:** whole numbers only, so that the same messages come to the same state everywhere.

mod course;

pub use course::{Course, Observed};

use conclave_core::Score;
use serde::{Deserialize, Serialize};

/// What somebody slowly moves towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftKind {
    /// Away from other people.
    Isolation,
    /// From irritation to threats, or from tiredness to despair.
    Escalation,
    /// Working on the assistant until it drops its rules.
    Manipulation,
    /// Leaning on the assistant for everything.
    Dependency,
}

impl DriftKind {
    /// Every kind, in the order of the stored state.
    pub const ALL: [Self; 4] =
        [Self::Isolation, Self::Escalation, Self::Manipulation, Self::Dependency];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Isolation => "isolation",
            Self::Escalation => "escalation",
            Self::Manipulation => "manipulation",
            Self::Dependency => "dependency",
        }
    }
}

/// How strongly one message shows each kind, in the order of [`DriftKind::ALL`].
pub type DriftMarks = [Score; 4];

/// How far it has gone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum DriftState {
    /// Nothing to see.
    #[default]
    Green,
    /// Worth a closer look.
    Yellow,
    /// Clear.
    Red,
}

impl DriftState {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

/// What should be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftAction {
    /// Ask how they are.
    GentleCheckIn,
    /// Say where help and company can be found.
    ResourceOffer,
    /// Let a person look.
    Escalate,
}

impl DriftAction {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GentleCheckIn => "gentle_check_in",
            Self::ResourceOffer => "resource_offer",
            Self::Escalate => "escalate",
        }
    }
}

/// One message that an alert rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftEvidence {
    /// The decision in which it was said.
    pub audit_id: String,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// Where in the message it stands, in Unicode scalar values.
    pub start: usize,
    /// Where it ends, exclusive.
    pub end: usize,
    /// What was said there.
    pub quote: String,
}

/// A drift that was noticed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftAlert {
    /// Towards what.
    pub pattern: DriftKind,
    /// How far.
    pub state: DriftState,
    /// How sure, 0 to 1.
    pub confidence: Score,
    /// The messages it rests on, oldest first.
    pub historical_evidence: Vec<DriftEvidence>,
    /// What should be done.
    pub recommended_action: DriftAction,
}
