//! The shape of a pattern file.

use conclave_core::Score;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternFile {
    /// `en`, `ja`, ..., or `any`: where its names live.
    pub(crate) language: String,
    /// The category of rules that name none.
    #[serde(default)]
    pub(crate) category: Option<String>,
    #[serde(default)]
    pub(crate) concept: BTreeMap<String, ConceptSpec>,
    #[serde(default)]
    pub(crate) reading: Vec<ItemSpec>,
    #[serde(default)]
    pub(crate) rule: Vec<ItemSpec>,
}

/// A set of words.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConceptSpec {
    /// Adds to a concept of another file instead of making one.
    #[serde(default)]
    pub(crate) extend: bool,
    /// Words and phrases as they stand; `*` at an end matches inside longer words.
    #[serde(default)]
    pub(crate) words: Vec<String>,
    /// English verbs; their forms become `name`, `name.s`, `name.ing`, `name.ed`.
    #[serde(default)]
    pub(crate) verbs: Vec<String>,
    /// Other concepts whose words count here too.
    #[serde(default)]
    pub(crate) include: Vec<String>,
    /// Takes the included words with this ending instead of as they stand, e.g. `'s`.
    #[serde(default)]
    pub(crate) suffix: Option<String>,
    /// A harmless meaning: dangerous words inside these phrases are not seen.
    #[serde(default)]
    pub(crate) mask: Option<String>,
    /// A frame that relaxes the line.
    #[serde(default)]
    pub(crate) frame: Option<FrameName>,
    /// A part the words play in the engine itself.
    #[serde(default)]
    pub(crate) role: Option<RoleName>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FrameName {
    Fiction,
    News,
    Academic,
    Technical,
    Medical,
    Game,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleName {
    /// Asking how something is done.
    Howto,
    /// Common words as rot13 writes them.
    Rot13,
    /// Common words from end to start.
    Reversed,
    /// Talk of a cipher.
    Cipher,
    /// Somebody is to speak in a story or a part.
    Scene,
    /// It is about protection, or wants no method.
    Careful,
}

/// How much a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    /// Below every line; only the movement of a conversation sees it.
    Trace,
    Low,
    Medium,
    High,
    Critical,
}

impl Class {
    /// The weight of a single signal of this class.
    pub(crate) fn weight(self) -> Score {
        Score::from_hundredths(match self {
            Self::Trace => 10,
            Self::Low => 20,
            Self::Medium => 30,
            Self::High => 60,
            Self::Critical => 100,
        })
    }
}

/// One value or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Several<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Several<T> {
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// A rule or a reading: where concepts must stand to each other, and what that means. A slot is
/// `concept`, `one|other`, `@start` or `@end` (the edges of a sentence).
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemSpec {
    pub(crate) id: String,
    /// Of a rule: how much it says.
    #[serde(default)]
    pub(crate) class: Option<Class>,
    /// Of a rule: what it is about.
    #[serde(default)]
    pub(crate) category: Option<Several<String>>,
    /// Of a reading: `technical`, `figurative`, `negated`, `reporting`, `quoting`, ...
    #[serde(default)]
    pub(crate) kind: Option<String>,
    /// Of a reading: the slots whose words are then not seen; all slots when absent.
    #[serde(default)]
    pub(crate) replaces: Vec<String>,
    /// Any one occurrence of these.
    #[serde(default)]
    pub(crate) any: Vec<String>,
    /// In this order, each at most `gap` words (or unspaced characters) after the one before.
    #[serde(default)]
    pub(crate) seq: Vec<String>,
    /// In any order, all within `window` of the first.
    #[serde(default)]
    pub(crate) all: Vec<String>,
    #[serde(default)]
    pub(crate) gap: Option<Several<u16>>,
    #[serde(default)]
    pub(crate) window: Option<u16>,
    /// Not when one of these stands inside, or within `reach` of, the match.
    #[serde(default)]
    pub(crate) unless: Vec<String>,
    #[serde(default)]
    pub(crate) reach: Option<u16>,
    /// Not when one of these ends within `reach` before the match.
    #[serde(default)]
    pub(crate) unless_before: Vec<String>,
    /// Not when one of these starts within `reach` after the match.
    #[serde(default)]
    pub(crate) unless_after: Vec<String>,
    /// Not when one of these stands anywhere.
    #[serde(default)]
    pub(crate) unless_text: Vec<String>,
    /// Only when each of these stands somewhere.
    #[serde(default)]
    pub(crate) needs_text: Vec<String>,
    /// Only in texts of at most this many words.
    #[serde(default)]
    pub(crate) units_max: Option<u32>,
    /// Only inside quotation marks.
    #[serde(default)]
    pub(crate) quoted: bool,
    /// Of a rule: ordinary texts show it too, so it never decides by itself.
    #[serde(default)]
    pub(crate) hint: bool,
}
