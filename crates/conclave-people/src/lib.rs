//! What people decide and are told, as use-cases over ports: reviews, communities and their protocols,
//! consents, webhooks, tenants, and a decision read back in plain words.
//!
//! **Invariant:** nothing here asks a model. The engine sees these use-cases as the port `Governance` only.

mod consents;
mod correction;
mod explanation;
mod hand_out;
mod influence;
mod known_protocols;
mod people;
mod protocols;
mod reviews;
mod subject;
mod unasked;
mod view;
mod webhooks;

pub use correction::{Concern, Correction, LearningProposal, corrections};
pub use explanation::{Explanation, SafetyVerification, explain};
pub use hand_out::{GuardedHandOut, HeldWords, ReviewResult, held_words};
pub use influence::{Contribution, Part};
pub use people::{People, PeopleError, Staff};
pub use protocols::Elder;
pub use reviews::{Held, ReviewFilter};
pub use subject::{ExportPage, export_page, note_subject_export};
pub use unasked::Unasked;
pub use view::view;
pub use webhooks::{Letter, Webhook, webhook_signature};
