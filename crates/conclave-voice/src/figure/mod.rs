//! The figure: the words the system itself says, by situation, voice and language.
//!
//! **Invariant:** a message is composed of parts that are chosen by the numbers of the voice's
//! vector: there is no text that belongs to a persona.
//!
//! **Invariant:** whatever is said to a person in crisis, or about a person's own danger, carries the
//! resources of their country exactly once; nobody else appends them to a message of our own.

mod parts;
#[cfg(test)]
mod tests;
mod vector;

pub use vector::Vector;

use crate::{Language, Resources, VoiceError, error};
use conclave_core::{Category, Persona};
use parts::{Query, Script};
use vector::Vectors;

const EN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/personas/en.toml"));
const JA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/personas/ja.toml"));
const VECTORS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/personas/vectors.toml"));

/// When the system speaks for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Situation {
    /// The input was blocked.
    Refusal,
    /// A person is in crisis and no reply of a model can be delivered.
    SafeCompletion,
    /// A person is in crisis: words of support beside a reply.
    CrisisSupport,
    /// The reply was withheld and, where people are on duty, goes to a person.
    EscalationNotice,
    /// The reply waits for a person's decision.
    HoldNotice,
    /// No attempt reached the bar.
    Exhausted,
    /// The panel could not decide.
    GuardUnavailable,
    /// The content belongs to a community that has no elders here.
    NoElders,
}

impl Situation {
    /// Every situation.
    pub const ALL: [Self; 8] = [
        Self::Refusal,
        Self::SafeCompletion,
        Self::CrisisSupport,
        Self::EscalationNotice,
        Self::HoldNotice,
        Self::Exhausted,
        Self::GuardUnavailable,
        Self::NoElders,
    ];

    /// The stable name, as the data files use it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refusal => "refusal",
            Self::SafeCompletion => "safe_completion",
            Self::CrisisSupport => "crisis_support",
            Self::EscalationNotice => "escalation_notice",
            Self::HoldNotice => "hold_notice",
            Self::Exhausted => "exhausted",
            Self::GuardUnavailable => "guard_unavailable",
            Self::NoElders => "no_elders",
        }
    }

    const fn speaks_to_crisis(self) -> bool {
        matches!(self, Self::SafeCompletion | Self::CrisisSupport)
    }
}

/// One thing to be said.
#[derive(Clone, Copy, Debug)]
pub struct Speech<'a> {
    /// When.
    pub situation: Situation,
    /// In whose voice.
    pub persona: Persona,
    /// BCP 47; what is not Japanese is said in English.
    pub language: &'a str,
    /// What it is about, where that is known.
    pub category: Option<Category>,
    /// Whether people are on duty; without them no message says that a person will look.
    pub staffed: bool,
    /// ISO 3166 alpha-2: which resources are named.
    pub country: Option<&'a str>,
    /// Whether the person is in crisis: then every message names where help is, whatever it is about.
    pub in_crisis: bool,
}

impl Speech<'_> {
    /// Whether the person themselves may be in danger.
    fn needs_resources(&self) -> bool {
        self.in_crisis
            || self.situation.speaks_to_crisis()
            || self.category.is_some_and(|category| {
                category.is_about_crisis() || category == Category::SelfHarm
            })
    }
}

/// Everything the system can say for itself.
#[derive(Clone, Debug)]
pub struct Voices {
    vectors: Vectors,
    english: Script,
    japanese: Script,
    resources: Resources,
}

impl Voices {
    /// The voices compiled in, naming these resources. They are an argument because an organisation may
    /// replace lines, and a line that was replaced must never be shown.
    ///
    /// # Errors
    /// When a data file is broken or a situation has no words.
    pub fn naming(resources: Resources) -> Result<Self, VoiceError> {
        Ok(Self {
            vectors: error::parse("personas/vectors.toml", VECTORS)?,
            english: Script::parse("personas/en.toml", EN)?,
            japanese: Script::parse("personas/ja.toml", JA)?,
            resources,
        })
    }

    /// The same voices with the words of a file of one's own in one language.
    ///
    /// # Errors
    /// When the file is broken or a situation has no words.
    pub fn with_script(
        mut self,
        language: Language,
        file: &str,
        text: &str,
    ) -> Result<Self, VoiceError> {
        let script = Script::parse(file, text)?;
        match language {
            Language::English => self.english = script,
            Language::Japanese => self.japanese = script,
        }
        Ok(self)
    }

    /// The same voices with other numbers for the personas.
    ///
    /// # Errors
    /// When the file is broken, leaves out a persona or has a number outside 0 to 1.
    pub fn with_vectors(mut self, file: &str, text: &str) -> Result<Self, VoiceError> {
        let vectors: Vectors = error::parse(file, text)?;
        if !vectors.are_in_range() {
            let what = "numbers from 0 to 1 for every persona".to_owned();
            return Err(VoiceError::Missing { file: file.to_owned(), what });
        }
        self.vectors = vectors;
        Ok(self)
    }

    /// The resources these voices name.
    #[must_use]
    pub const fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The vector of a persona.
    #[must_use]
    pub const fn vector(&self, persona: Persona) -> Vector {
        self.vectors.of(persona)
    }

    /// Says it in the persona's voice; never empty.
    #[must_use]
    pub fn say(&self, speech: &Speech<'_>) -> String {
        self.say_as(speech, self.vector(speech.persona))
    }

    /// Says it with a vector of one's own instead of the persona's.
    #[must_use]
    pub fn say_as(&self, speech: &Speech<'_>, vector: Vector) -> String {
        let message = self.compose(speech, vector);
        if speech.needs_resources() {
            self.resources.append(&message, speech.country, speech.language)
        } else {
            message
        }
    }

    /// The words without the resources.
    fn compose(&self, speech: &Speech<'_>, vector: Vector) -> String {
        let (script, joint) = match Language::of_tag(speech.language) {
            Language::English => (&self.english, " "),
            Language::Japanese => (&self.japanese, ""),
        };
        let query = Query { category: speech.category, staffed: speech.staffed, vector };
        script.of(speech.situation).compose(&query).join(joint)
    }
}
