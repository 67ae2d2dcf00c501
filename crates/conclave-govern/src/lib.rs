//! Who may what: consent, culture, money and the people who decide.
//!
//! **Invariant:** pure: no clock, no file, no network. Every rule here takes the time it is asked at.

mod consent;
mod culture;
mod money;
mod review;

pub use consent::{ConsentAsk, ConsentState};
pub use culture::{CulturalAsk, CulturalFinding, Issue};
pub use money::{Reserve, Scope, Scopes};
pub use review::{NewReview, Priority, ReviewKind};
