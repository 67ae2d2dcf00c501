//! What people decide and are told, as use-cases over ports: reviews, communities and their protocols,
//! consents, webhooks, a decision read back in plain words, and appeals against it.
//!
//! **Invariant:** nothing here asks a model. The engine sees these use-cases through ports only.

mod appeals;
mod communities;
mod consents;
mod explain;
mod people;
mod records;
mod reviews;
mod webhooks;
mod why;

pub use appeals::{
    AppealEstimates, AppealFilter, AppealRecord, AppealStanding, AppealView, Appeals,
    CorrectedReply, ErrorRate, FiledAppeals, NewAppeal, NoAppeal, RulingView,
};
pub use communities::{CommunityElders, Elder, ElderProposal, ProtocolVersion};
pub use explain::{
    Concern, Contribution, ContributorKind, Correction, Explanation, ExportPage, LearningProposal,
    PanelVote, SafetyVerification, corrections, decision_view, explain, export_page,
    note_subject_export, panel_votes,
};
pub use people::{People, PeopleError, Staff, StaffMember};
pub use reviews::{
    DecisionReader, GuardedHandOut, HeldText, HeldWords, MissingReviews, ReviewFilter,
    ReviewRecord, ReviewResult, ReviewStanding, VisibleReview, held_words, standing_without_review,
};
pub use webhooks::{EventRecord, EventState, NewWebhook, QueuedEvent, Webhook, webhook_signature};
pub use why::{WhyLink, WhyLinkError};
