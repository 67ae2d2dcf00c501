//! What waits for a person.

use crate::Issue;
use conclave_core::{AuditId, TenantId};
use serde::{Deserialize, Serialize};

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewKind {
    /// A reply that the panel would not decide alone.
    Escalation,
    /// Something that belongs to a community.
    ElderReview,
    /// A draft of a recipe with a person in its loop.
    Draft,
    /// Somebody disagrees with a decision.
    Appeal,
    /// A pattern that was learned and is proposed.
    Pattern,
}

impl ReviewKind {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Escalation => "escalation",
            Self::ElderReview => "elder_review",
            Self::Draft => "draft",
            Self::Appeal => "appeal",
            Self::Pattern => "pattern",
        }
    }
}

/// How soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewPriority {
    /// Routine: within fourteen days.
    Low,
    /// Important: within seven days.
    Medium,
    /// Urgent: within three days.
    High,
    /// Critical: within a day.
    Urgent,
}

impl ReviewPriority {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }

    /// Larger ones come first.
    #[must_use]
    pub const fn rank(self) -> u32 {
        match self {
            Self::Low => 1,
            Self::Medium => 2,
            Self::High => 3,
            Self::Urgent => 4,
        }
    }

    /// How long a review may wait.
    #[must_use]
    pub const fn due_in_ms(self) -> u64 {
        const DAY_MS: u64 = 86_400_000;
        match self {
            Self::Low => 14 * DAY_MS,
            Self::Medium => 7 * DAY_MS,
            Self::High => 3 * DAY_MS,
            Self::Urgent => DAY_MS,
        }
    }
}

/// Something that shall wait for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewReview {
    /// Why.
    pub kind: ReviewKind,
    /// Whose.
    pub tenant: TenantId,
    /// What it is, such as `recipe:interview-analyzer` or `chat`.
    pub content_type: String,
    /// The community whose elders decide; nobody else may then.
    pub community: Option<String>,
    /// Further communities that it belongs to; an elder of each must say yes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// What is the matter.
    pub issues: Vec<Issue>,
    /// How soon.
    pub priority: ReviewPriority,
    /// The decision whose sealed words are held; they stand nowhere else.
    pub audit_id: Option<AuditId>,
    /// The key or person that is told of the ruling.
    pub author: Option<String>,
    /// The pseudonym of the person it is about.
    pub subject: Option<[u8; 16]>,
    /// Whether two people must agree.
    pub four_eyes: bool,
}
