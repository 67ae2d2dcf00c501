//! A reference to one of the frozen directives.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a directive in the signed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DirectiveId(pub u16);

impl DirectiveId {
    /// The core that every other directive serves.
    pub const FIRST: Self = Self(1);
}

impl fmt::Display for DirectiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "D{:03}", self.0)
    }
}
