//! The governed parts of a house; each may be absent where Conclave is used as a library.
//!
//! **Invariant:** absent means that nobody set it up; trouble with a part that is there is an error.

use crate::people::People;
use conclave_ports::KeyDesk;
use conclave_ports::Post;
use conclave_ports::Records;
use conclave_ports::{Governance, Purse};
use std::sync::Arc;

/// Who may what, as far as it is set up.
#[derive(Clone, Default)]
pub struct Governed {
    /// Knows what people and communities have said.
    pub governance: Option<Arc<dyn Governance>>,
    /// Keeps the money.
    pub purse: Option<Arc<dyn Purse>>,
    /// Keeps records.
    pub records: Option<Arc<dyn Records>>,
    /// Consents, protocols, reviews and webhooks, for those who change them.
    pub people: Option<Arc<People>>,
    /// Sends to places outside, under guard.
    pub post: Option<Arc<dyn Post>>,
    /// Makes and withdraws API keys.
    pub keys: Option<Arc<dyn KeyDesk>>,
}

impl Governed {
    /// Everything that people decide, kept in these records.
    #[must_use]
    pub fn by(people: Arc<People>, records: Arc<dyn Records>, post: Arc<dyn Post>) -> Self {
        let governance: Arc<dyn Governance> = people.clone();
        Self {
            governance: Some(governance),
            purse: None,
            records: Some(records),
            people: Some(people),
            post: Some(post),
            keys: None,
        }
    }
}
