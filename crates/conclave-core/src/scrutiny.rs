//! How strictly a turn is treated, and the bars that follow from it.

use serde::{Deserialize, Serialize};

/// Three levels; a tenant or a request may only raise.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Scrutiny {
    /// The default.
    #[default]
    Normal,
    /// First turns of a known user, yellow drift, injection seen, high sensitivity.
    Raised,
    /// Crisis, red drift, minors, vulnerable people, sacred content.
    Strict,
}

/// The most votes that anybody may ask for.
const QUORUM_MAX: u8 = 16;

/// What a consensus must reach to deliver, in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bars {
    /// Votes that must be cast.
    pub quorum: u8,
    /// The least safety score.
    pub score: u8,
    /// The least assurance.
    pub assurance: u8,
}

impl Scrutiny {
    /// The bars of this level.
    #[must_use]
    pub const fn bars(self) -> Bars {
        match self {
            Self::Normal => Bars { quorum: 3, score: 80, assurance: 50 },
            Self::Raised => Bars { quorum: 4, score: 85, assurance: 60 },
            Self::Strict => Bars { quorum: 5, score: 90, assurance: 70 },
        }
    }

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Raised => "raised",
            Self::Strict => "strict",
        }
    }
}

impl Bars {
    /// Bars of a tenant on top of these: each may only be raised.
    #[must_use]
    pub fn raised_to(self, other: Self) -> Self {
        Self {
            quorum: self.quorum.max(other.quorum),
            score: self.score.max(other.score),
            assurance: self.assurance.max(other.assurance),
        }
    }

    /// Why these cannot be anybody's bars: nothing could ever reach them.
    #[must_use]
    pub const fn fault(self) -> Option<&'static str> {
        if self.quorum > QUORUM_MAX {
            return Some("a quorum of more than 16 votes could never be reached");
        }
        if self.score > 100 || self.assurance > 100 {
            return Some("score and assurance are hundredths, at most 100");
        }
        None
    }
}
