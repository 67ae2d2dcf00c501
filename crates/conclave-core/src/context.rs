//! What a request says about its own circumstances.

use serde::{Deserialize, Serialize};

/// How a text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Everyday use.
    #[default]
    Normal,
    /// Engineering, where processes are killed every day.
    Technical,
    /// Children are reading.
    #[serde(alias = "child_safe")]
    ChildSafe,
    /// Fiction.
    Creative,
    /// Operators looking into the machine.
    Debug,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 5] =
        [Self::Normal, Self::Technical, Self::ChildSafe, Self::Creative, Self::Debug];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Technical => "technical",
            Self::ChildSafe => "child-safe",
            Self::Creative => "creative",
            Self::Debug => "debug",
        }
    }

    /// Finds the mode with this name; `child_safe` is the same as `child-safe`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Whose voice the system's own messages take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persona {
    /// Warm and careful.
    #[default]
    Guardian,
    /// Courteous and exact.
    Professional,
    /// Close and plain.
    Friend,
    /// Explains.
    Educator,
    /// Short.
    Direct,
}

impl Persona {
    /// Every persona.
    pub const ALL: [Self; 5] =
        [Self::Guardian, Self::Professional, Self::Friend, Self::Educator, Self::Direct];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guardian => "guardian",
            Self::Professional => "professional",
            Self::Friend => "friend",
            Self::Educator => "educator",
            Self::Direct => "direct",
        }
    }

    /// Finds the persona with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|persona| persona.as_str() == name)
    }
}

/// How carefully content must be handled.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// Ordinary.
    #[default]
    Low,
    /// Personal.
    Medium,
    /// Grave.
    High,
    /// Belongs to a community's protected knowledge.
    Sacred,
}

impl Sensitivity {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Sacred => "sacred",
        }
    }

    /// Finds the sensitivity with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High, Self::Sacred]
            .into_iter()
            .find(|sensitivity| sensitivity.as_str() == name)
    }
}

/// The circumstances a request states; each may only tighten what the tenant set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnContext {
    /// How the text is to be read.
    pub mode: Mode,
    /// ISO 3166 alpha-2, upper case; decides which resources are named.
    pub country: Option<String>,
    /// BCP 47, as stated; otherwise it is detected.
    pub language: Option<String>,
    /// Whose voice the system's own messages take.
    pub persona: Persona,
    /// How carefully content must be handled.
    pub sensitivity: Sensitivity,
    /// Communities the content belongs to.
    pub affiliations: Vec<String>,
    /// Labels that stand on the content, such as `tk_ss`.
    pub labels: Vec<String>,
    /// Who would read it, as protocols name audiences.
    pub audience: Option<String>,
    /// Whether the person is known to be a minor.
    pub minor: bool,
    /// Whether the person is known to be vulnerable: ill, grieving, dependent on somebody.
    pub vulnerable: bool,
}
