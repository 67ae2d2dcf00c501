//! One directive: its number, its core, what it is about and its text in two languages.
//!
//! **Invariant:** a directive is never about a crisis: distress is answered with a duty of care, it
//! is no harm that could be forbidden.

use conclave_core::{Category, DirectiveId, Reason};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

macro_rules! names {
    (
        $(#[$of:meta])* $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$of])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum $kind {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl $kind {
            /// Every one, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// The five cores, and the duties beside them.
    Core {
        /// Protect innocent life.
        ProtectLife = "protect_life",
        /// Respect one's own life.
        OwnLife = "own_life",
        /// No terrorism.
        NoTerrorism = "no_terrorism",
        /// No mass harm.
        NoMassHarm = "no_mass_harm",
        /// No override of these directives.
        NoOverride = "no_override",
        /// What is owed to the people who use the system.
        Duty = "duty",
    }
}

names! {
    /// What is owed to the people who use the system.
    Duty {
        /// To tell the truth, also about oneself.
        Honesty = "honesty",
        /// To ask, and to heed a no.
        Consent = "consent",
        /// To keep what is confided.
        PrivacyDuty = "privacy_duty",
        /// To respect what belongs to a community.
        Culture = "culture",
        /// To respect the person.
        Dignity = "dignity",
        /// To be there for someone in need.
        Care = "care",
        /// To treat alike.
        Fairness = "fairness",
        /// To give reasons and keep records.
        Transparency = "transparency",
        /// To let decisions be contested.
        Appeal = "appeal",
    }
}

/// What a directive is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// A category of harm; as the basis of a block also a crisis.
    Hazard(Category),
    /// A duty towards users.
    Duty(Duty),
}

impl Topic {
    /// Every topic a block can rest on: all categories, then all duties.
    pub fn all() -> impl Iterator<Item = Self> {
        let hazards = Category::ALL.iter().copied().map(Self::Hazard);
        hazards.chain(Duty::ALL.iter().copied().map(Self::Duty))
    }

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hazard(category) => category.as_str(),
            Self::Duty(duty) => duty.as_str(),
        }
    }

    /// Finds the topic with this stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::all().find(|topic| topic.as_str() == name)
    }

    const fn is_about_crisis(self) -> bool {
        matches!(self, Self::Hazard(category) if category.is_about_crisis())
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Topic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Topic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| {
            serde::de::Error::custom(format!("`{name}` is neither a category nor a duty"))
        })
    }
}

/// One directive of the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directive {
    /// Its number.
    pub id: DirectiveId,
    /// The core it unfolds.
    pub core: Core,
    /// What it is about.
    #[serde(rename = "category", deserialize_with = "no_crisis")]
    pub topic: Topic,
    /// The topics whose blocks rest on it.
    #[serde(default)]
    pub basis_for: Vec<Topic>,
    /// The objections of verifiers that rest on it.
    #[serde(default)]
    pub objections: Vec<Reason>,
    /// Its text in English.
    pub en: String,
    /// Its text in Japanese.
    pub ja: String,
}

impl Directive {
    /// Its text in this language (BCP 47); English unless the language is Japanese.
    #[must_use]
    pub fn text(&self, language: &str) -> &str {
        if is_japanese(language) { &self.ja } else { &self.en }
    }

    /// Whether a block of this topic may rest on it: it is about that topic, or it is the care owed
    /// to a person in that crisis.
    pub(crate) fn can_support(&self, topic: Topic) -> bool {
        topic == self.topic || (topic.is_about_crisis() && self.topic == Topic::Duty(Duty::Care))
    }
}

/// Whether a BCP 47 tag names Japanese, whatever its region, script or letter case.
pub(crate) fn is_japanese(language: &str) -> bool {
    let primary = language.split(['-', '_']).next().unwrap_or_default();
    primary.eq_ignore_ascii_case("ja")
}

fn no_crisis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Topic, D::Error> {
    let topic = Topic::deserialize(deserializer)?;
    if topic.is_about_crisis() {
        return Err(serde::de::Error::custom(format!(
            "`{topic}` is a crisis, not a harm: write the duty as `care` and name it in `basis_for`"
        )));
    }
    Ok(topic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn topic_names_round_trip_and_are_unique() {
        let names: BTreeSet<_> = Topic::all().map(Topic::as_str).collect();
        assert_eq!(names.len(), Category::ALL.len() + Duty::ALL.len());
        for topic in Topic::all() {
            assert_eq!(Topic::parse(topic.as_str()), Some(topic));
        }
        assert_eq!(Topic::parse("gossip"), None);
    }

    #[test]
    fn japanese_is_known_by_its_primary_subtag_alone() {
        for tag in ["ja", "JA", "ja-JP", "ja_JP", "ja-Hira"] {
            assert!(is_japanese(tag), "{tag}");
        }
        for tag in ["", "en", "jam", "jav-ID", "de-ja", "und", "日本語"] {
            assert!(!is_japanese(tag), "{tag}");
        }
    }
}
