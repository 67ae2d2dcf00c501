//! Owns what this program does itself, without a model: intake, sentinel, steward, and extracts.
//!
//! **Invariant:** an extract holds only words that stand in the material, each with its place, and says of
//! itself that it is one.

mod insights;
mod intake;
mod interview;
mod playbook;
mod reply;
mod sentinel;
mod steward;
mod words;

pub use insights::{cluster_purity, extract_insights};
pub use intake::{Intake, intake};
pub use interview::extract_interview;
pub use playbook::extract_playbook;
pub use reply::extract_reply;
pub use sentinel::{Consent, Culture, SentinelReading, sentinel};
pub use steward::{Books, Offer, steward};
