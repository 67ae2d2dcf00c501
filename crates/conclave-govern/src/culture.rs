//! What a community has said about its knowledge, and what that means for a text.

use conclave_core::Sensitivity;
use serde::{Deserialize, Serialize};

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CulturalAsk {
    /// The texts: what is given, or what was made of it.
    pub texts: Vec<String>,
    /// How sensitive the caller says it is.
    pub sensitivity: Sensitivity,
    /// The communities it belongs to.
    pub affiliations: Vec<String>,
    /// Labels that stand on the content, such as `tk_ss`.
    pub labels: Vec<String>,
    /// Who would read it, as the protocols name audiences.
    pub audience: Option<String>,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// One thing that a person should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// One of a closed list.
    pub code: String,
    /// A sentence that quotes nothing of the text.
    pub detail: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum CulturalFinding {
    /// Nothing speaks against it.
    Clear,
    /// It may go on, and is marked.
    Flag {
        /// The community it concerns, where it is known.
        community: Option<String>,
        /// Why.
        issues: Vec<Issue>,
    },
    /// It waits for somebody of the community.
    Hold {
        /// The community whose elders decide, where it is known.
        community: Option<String>,
        /// Further communities that it belongs to as well: each of them must say yes.
        others: Vec<String>,
        /// Why.
        issues: Vec<Issue>,
        /// Whether it is sacred: two people must agree then.
        sacred: bool,
    },
}
