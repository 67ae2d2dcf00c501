//! Who may what: consent, culture, policies and the people who decide.
//!
//! **Invariant:** pure: no clock, no file, no network. Every rule here takes the time it is asked at.

mod allowance;
mod appeal;
mod consent;
mod culture;
mod dollars;
mod jurisdiction;
mod labels;
mod looking;
mod names;
mod period;
mod policy;
mod protocol;
mod rates;
mod review;
mod review_steps;
mod season;
mod spelling;
mod telling;
mod tenant_name;

pub use allowance::{AccountKey, AccountLimit, BudgetScope, Price, Scopes};
pub use appeal::{
    APPEAL_CHARS_MAX, Appeal, AppealAnswer, AppealConcern, AppealCorrection, AppealOutcome,
    AppealRuling, AppealTally, AppealedReply, RulingCount, appeal_words,
};
pub use consent::{
    ConsentAsk, ConsentEvidence, ConsentRecord, ConsentState, EvidenceKind, Withdrawal,
    check as check_consent,
};
pub use culture::{CulturalAsk, CulturalFinding, Issue};
pub use dollars::Usd;
pub use jurisdiction::{JurisdictionRuling, Jurisdictions, Transfer};
pub use labels::{LABELS, LabelEffect, TraditionalLabel};
pub use looking::{Protocols, look};
pub use names::{NAME_BYTES_MAX, Unfit};
pub use period::{Period, date_of, day_of, parse_date};
pub use policy::{
    Allowance, AuditFailure, Breaker, CareOffer, MessageData, OnDoubt, PersonalDataPolicy,
    PolicyError, ReplyData, TenantPolicy, UnjudgedParts,
};
pub use protocol::{Mention, Protocol, Restriction, Term, community_id};
pub use rates::{RATE_MAX, Rate, Rates};
pub use review::{NewReview, ReviewKind, ReviewPriority};
pub use review_steps::{
    Claim, Decider, Given, LEASE_MS, Notice, Review, ReviewRefusal, ReviewStatus, Ruling, Said,
};
pub use season::{Season, SeasonKind, YearDay};
pub use tenant_name::tenant_name_fault;
