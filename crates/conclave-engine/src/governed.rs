//! The governed parts of a house; each may be absent where Conclave is used as a library.
//!
//! **Invariant:** absent means that nobody set it up; trouble with a part that is there is an error.

use conclave_money::Purse;
use conclave_ports::{Governance, Records};
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
}
