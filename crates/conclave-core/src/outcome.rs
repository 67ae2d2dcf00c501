//! How a turn ended.

use serde::{Deserialize, Serialize};

/// The nine ways a turn can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A verified reply left unchanged.
    Delivered,
    /// A verified reply left with parts replaced.
    Redacted,
    /// The system itself answered a person in crisis.
    SafeCompletion,
    /// The input was refused.
    Blocked,
    /// Waits for a person.
    Held,
    /// A person was called.
    Escalated,
    /// No attempt was good enough.
    Exhausted,
    /// No quorum of verifiers ever stood.
    GuardUnavailable,
    /// The model could not answer.
    Failed,
}

impl Outcome {
    /// All outcomes, for counters that must show zeroes too.
    pub const ALL: [Self; 9] = [
        Self::Delivered,
        Self::Redacted,
        Self::SafeCompletion,
        Self::Blocked,
        Self::Held,
        Self::Escalated,
        Self::Exhausted,
        Self::GuardUnavailable,
        Self::Failed,
    ];

    /// The stable name used on the wire and in the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Redacted => "redacted",
            Self::SafeCompletion => "safe_completion",
            Self::Blocked => "blocked",
            Self::Held => "held",
            Self::Escalated => "escalated",
            Self::Exhausted => "exhausted",
            Self::GuardUnavailable => "guard_unavailable",
            Self::Failed => "failed",
        }
    }

    /// Finds the outcome with this stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// Whether the text the person got had been passed by the panel.
    #[must_use]
    pub const fn is_verified(self) -> bool {
        matches!(self, Self::Delivered | Self::Redacted)
    }

    /// How strict the outcome is for the person: a turn with several choices reports the strictest.
    #[must_use]
    pub const fn severity(self) -> u8 {
        match self {
            Self::Delivered => 0,
            Self::Redacted => 1,
            Self::SafeCompletion => 2,
            Self::Exhausted => 3,
            Self::GuardUnavailable => 4,
            Self::Escalated => 5,
            Self::Held => 6,
            Self::Failed => 7,
            Self::Blocked => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
        }
        assert_eq!(Outcome::parse("unheard_of"), None);
    }
}
