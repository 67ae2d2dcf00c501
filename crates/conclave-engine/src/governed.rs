//! The keepers of consent, culture, money and records, as far as they are configured.

use crate::governance::{Governance, Purse};
use crate::records::Records;
use std::sync::Arc;

/// Who can be asked. Absent means not configured, as in a library without a store; it never means that
/// somebody could not be reached.
#[derive(Clone, Default)]
pub struct Governed {
    /// Knows what people and communities have said.
    pub governance: Option<Arc<dyn Governance>>,
    /// Keeps the money.
    pub purse: Option<Arc<dyn Purse>>,
    /// Keeps records.
    pub records: Option<Arc<dyn Records>>,
}
