//! What became of a reply after its decision.
//!
//! **Invariant:** every decision in the log gets exactly one delivery entry: dropping the promise
//! keeps it.

use conclave_ledger::{Body, Draft, Kind, Value};
use conclave_ports::Ledger;
use std::sync::Arc;

/// The promise to note how much of a reply left. Dropped before [`Delivery::complete`], it notes that
/// the client went away.
pub struct Delivery {
    ledger: Arc<dyn Ledger>,
    draft: Option<Draft>,
    bytes: u64,
    complete: bool,
}

impl Delivery {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, decision: Draft) -> Self {
        let draft = Draft { kind: Kind::Delivery, public: Value::Null, ..decision };
        Self { ledger, draft: Some(draft), bytes: 0, complete: false }
    }

    /// Of a decision that is not in the log nothing can be noted: an entry would follow from nothing.
    pub(crate) fn unrecorded(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, draft: None, bytes: 0, complete: false }
    }

    /// So many bytes more were handed to the connection.
    pub const fn sent(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether any byte was handed to the connection.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// Everything was handed over.
    pub const fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let Some(mut draft) = self.draft.take() else {
            return;
        };
        let status = if self.complete { "sent" } else { "aborted" };
        draft.public =
            Value::map([("status", Value::from(status)), ("bytes", Value::Uint(self.bytes))]);
        self.ledger.append_soon(draft, Body::empty());
    }
}
