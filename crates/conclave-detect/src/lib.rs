//! Text to signals: folding, patterns, scores.
//!
//! **Invariant:** pure: the same text gives the same reading, in linear time and bounded memory.

mod action;
mod care;
mod classifier;
mod combine;
mod conversation;
mod detector;
mod drift;
mod error;
mod explain;
mod fold;
mod language;
mod manner;
mod matching;
mod pattern;
mod reading;
mod scan;
mod sight;
mod trend;

pub use action::ActionClassifier;
pub use classifier::{
    CLASSIFIER_CAP, ClassifierError, Estimate, TextClassifier, TierCount, TierPart, TieredScore,
};
pub use conversation::ConversationReading;
pub use detector::{Detector, RuleSummary};
pub use drift::{
    Course, DriftAction, DriftAlert, DriftEvidence, DriftKind, DriftMarks, DriftState, Observed,
};
pub use error::DetectError;
pub use explain::{ReadingExplanation, Replacement, SignalContribution, ThresholdStep};
pub use fold::{WordTable, plain_form};
pub use manner::{AsReply, Manner, MannerFault};
pub use reading::{Frame, NamedCategory, Reading, Signal, SignalKind};
pub use trend::{Escalation, READ_TOGETHER, Trend};
