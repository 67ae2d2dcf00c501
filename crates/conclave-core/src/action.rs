//! What is done with a turn or a text; the strictest of several wins.

use serde::{Deserialize, Serialize};

/// Actions from mildest to strictest, so that `max` picks the one that wins.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Pass it on.
    #[default]
    Deliver,
    /// Pass it on, marked.
    Flag,
    /// Pass it on with parts replaced.
    Redact,
    /// Have it written again.
    Regenerate,
    /// Call a person; the reader gets a safe message.
    Escalate,
    /// Wait for a person.
    Hold,
    /// Stop it.
    Block,
}

impl Action {
    /// The stable name used on the wire and in the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::Flag => "flag",
            Self::Redact => "redact",
            Self::Regenerate => "regenerate",
            Self::Escalate => "escalate",
            Self::Hold => "hold",
            Self::Block => "block",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictest_wins() {
        let order = [
            Action::Block,
            Action::Hold,
            Action::Escalate,
            Action::Regenerate,
            Action::Redact,
            Action::Flag,
            Action::Deliver,
        ];
        assert!(order.is_sorted_by(|stricter, milder| stricter > milder));
        assert_eq!(order.into_iter().max(), Some(Action::Block));
    }
}
