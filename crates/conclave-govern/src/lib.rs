//! Who may what: consent, culture, money and the people who decide.
//!
//! **Invariant:** pure: no clock, no file, no network. Every rule here takes the time it is asked at.

mod budget;
mod consent;
mod culture;
mod dollars;
mod money;
mod period;
mod policy;
mod prices;
mod review;
mod runaway;

pub use budget::{
    ACCOUNT_NAME_BYTES_MAX, Account, AccountKey, Crossing, Grant, Hold, HoldAsk, LINES_MAX, Line,
    Page, Refusal, decode_lines, encode_lines,
};
pub use consent::{ConsentAsk, ConsentState};
pub use culture::{CulturalAsk, CulturalFinding, Issue};
pub use dollars::{USD_MAX, Usd};
pub use money::{Reserve, Scope, Scopes};
pub use period::{Period, date_of, day_of, parse_date};
pub use policy::{Allowance, Breaker, PolicyError, TenantPolicy};
pub use prices::{
    GUIDANCE_TOKENS_MAX, MESSAGE_TOKENS, OUTPUT_TOKENS_DEFAULT, PART_TOKENS_MAX, Price, PriceError,
    PriceTable, Size,
};
pub use review::{NewReview, Priority, ReviewKind};
pub use runaway::{RUNAWAY_WINDOW_MS, Runaway};
