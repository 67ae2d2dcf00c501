//! Who may what: consent, culture, money and the people who decide.
//!
//! **Invariant:** pure: no clock, no file, no network. Every rule here takes the time it is asked at.

mod consent;
mod culture;
mod labels;
mod looking;
mod money;
mod names;
mod protocol;
mod review;
mod review_steps;
mod season;
mod spelling;
mod telling;

pub use consent::{
    ConsentAsk, ConsentRecord, ConsentState, Evidence, EvidenceKind, Withdrawal,
    check as check_consent,
};
pub use culture::{CulturalAsk, CulturalFinding, Issue};
pub use labels::{LABELS, Label, LabelEffect};
pub use looking::{Protocols, look};
pub use money::{Reserve, Scope, Scopes};
pub use names::{NAME_BYTES_MAX, Unfit};
pub use protocol::{Mention, Protocol, Restriction, Term, community_id};
pub use review::{NewReview, Priority, ReviewKind};
pub use review_steps::{
    Claim, Decider, Given, LEASE_MS, Notice, Refusal, Review, ReviewStatus, Ruling, Said,
};
pub use season::{Season, SeasonKind, YearDay};
