//! What people decide and are told, as use-cases over ports: reviews, communities and their protocols,
//! consents, webhooks, and a decision read back in plain words.
//!
//! **Invariant:** nothing here asks a model. The engine sees these use-cases through ports only.

mod communities;
mod consents;
mod explain;
mod people;
mod records;
mod reviews;
mod webhooks;

pub use communities::{CommunityElders, Elder, ElderProposal, ProtocolVersion};
pub use explain::{
    Concern, Contribution, ContributorKind, Correction, Explanation, ExportPage, LearningProposal,
    SafetyVerification, corrections, decision_view, explain, export_page, note_subject_export,
};
pub use people::{People, PeopleError, Staff};
pub use reviews::{
    DecisionReader, GuardedHandOut, HeldText, HeldWords, MissingReviews, ReviewFilter,
    ReviewRecord, ReviewResult, ReviewStanding, VisibleReview, held_words, standing_without_review,
};
pub use webhooks::{EventRecord, EventState, NewWebhook, QueuedEvent, Webhook, webhook_signature};
