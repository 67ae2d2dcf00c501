//! The closed list of what can be wrong with, or worrying in, a text.

use serde::{Deserialize, Serialize};

macro_rules! categories {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What a signal is about. Names are stable: they stand in ledgers, files and APIs.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Category {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Category {
            /// Every category, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

categories! {
    /// Killing, hurting or threatening people or animals.
    Violence = "violence",
    /// Making or getting weapons and explosives.
    Weapons = "weapons",
    /// Chemical, biological, radiological, nuclear: harm to very many.
    MassHarm = "mass_harm",
    /// Terrorism and violent extremism.
    Extremism = "extremism",
    /// Making or dealing in illegal drugs.
    Drugs = "drugs",
    /// Means and methods of hurting or killing oneself.
    SelfHarm = "self_harm",
    /// Sexual content about minors.
    SexualMinors = "sexual_minors",
    /// Sexual content or violence without consent.
    Sexual = "sexual",
    /// Hatred of people for what they are.
    Hate = "hate",
    /// Harassment, stalking, intimidation of a person.
    Harassment = "harassment",
    /// Manipulation, coercion, gaslighting of a person.
    Manipulation = "manipulation",
    /// Making someone dependent or cutting them off from others.
    Dependency = "dependency",
    /// Fraud, theft, forgery, laundering.
    Fraud = "fraud",
    /// Breaking into or damaging computers.
    Cyber = "cyber",
    /// Exposing or hunting for personal data.
    Privacy = "privacy",
    /// Lies meant to mislead the public.
    Disinformation = "disinformation",
    /// Talking a model out of its rules.
    Jailbreak = "jailbreak",
    /// Instructions smuggled in where data was expected.
    Injection = "injection",
    /// A person who may be about to hurt themselves.
    CrisisSuicide = "crisis_suicide",
    /// A person who hurts themselves, or starves.
    CrisisSelfHarm = "crisis_self_harm",
    /// A person who is being hurt by someone.
    CrisisAbuse = "crisis_abuse",
    /// A person overwhelmed: panic, despair.
    CrisisDistress = "crisis_distress",
    /// An action with wide or irreversible effects.
    DangerousAction = "dangerous_action",
}

impl Category {
    /// Whether this counts in `crisis` and never in `harm`.
    #[must_use]
    pub const fn is_about_crisis(self) -> bool {
        matches!(
            self,
            Self::CrisisSuicide | Self::CrisisSelfHarm | Self::CrisisAbuse | Self::CrisisDistress
        )
    }

    /// Whether this counts in `injection` and never in `harm`.
    #[must_use]
    pub const fn is_about_injection(self) -> bool {
        matches!(self, Self::Jailbreak | Self::Injection)
    }

    /// Finds the category with this stable name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|category| category.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_unique() {
        for &category in Category::ALL {
            assert_eq!(Category::parse(category.as_str()), Some(category));
            let json = serde_json::to_string(&category).unwrap();
            assert_eq!(json.trim_matches('"'), category.as_str());
        }
    }
}
