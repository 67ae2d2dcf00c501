//! Owns where words may go: the person's country, the tenant's regions and the provider's place.
//!
//! **Invariant:** what is not known is held; a rule can only be found, never guessed.

use serde::Deserialize;
use std::collections::BTreeMap;

const RULES: &str = include_str!("../../../data/recipes/jurisdictions.toml");
/// Stands for every other country.
const ANYWHERE: &str = "*";

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// The person's country, ISO 3166.
    pub subject: Option<&'a str>,
    /// Where the tenant keeps what is made of it; empty where it has not said.
    pub regions: &'a [String],
    /// Where the model runs; `None` where nobody said, and not asked where no model is.
    pub provider: Option<Option<&'a str>>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JurisdictionRuling {
    /// It may go there.
    Allowed,
    /// It may not.
    Forbidden,
    /// Nobody knows: a person must decide.
    Unknown(&'static str),
}

impl JurisdictionRuling {
    /// The stricter of two: what is forbidden anywhere is forbidden, what is unknown anywhere unknown.
    #[must_use]
    pub const fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Forbidden, _) | (_, Self::Forbidden) => Self::Forbidden,
            (Self::Allowed, other) => other,
            (unknown, _) => unknown,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    from: String,
    #[serde(default)]
    to: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
}

/// The rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jurisdictions {
    blocs: BTreeMap<String, Vec<String>>,
    rules: Vec<Rule>,
}

impl Jurisdictions {
    /// The rules that are compiled in.
    ///
    /// # Errors
    /// When the file is broken; a test makes sure that it is not.
    pub fn builtin() -> Result<Self, toml::de::Error> {
        toml::from_str(RULES)
    }

    /// Whether words may go where they would go: everywhere they would, or the strictest wins.
    #[must_use]
    pub fn rule(&self, asked: &Transfer<'_>) -> JurisdictionRuling {
        let Some(from) = asked.subject else {
            return JurisdictionRuling::Unknown("subject_country");
        };
        let mut places: Vec<&str> = asked.regions.iter().map(String::as_str).collect();
        match asked.provider {
            Some(Some(place)) => places.push(place),
            Some(None) => return JurisdictionRuling::Unknown("provider_region"),
            None => {}
        }
        let rulings: Vec<_> = places.iter().map(|to| self.passage(from, to)).collect();
        if rulings.contains(&JurisdictionRuling::Forbidden) {
            return JurisdictionRuling::Forbidden;
        }
        let unknown = rulings.into_iter().find(|ruling| *ruling != JurisdictionRuling::Allowed);
        unknown.unwrap_or(JurisdictionRuling::Allowed)
    }

    fn passage(&self, from: &str, to: &str) -> JurisdictionRuling {
        if from.eq_ignore_ascii_case(to) {
            return JurisdictionRuling::Allowed;
        }
        let Some(rule) = self.rules.iter().find(|rule| self.is_in(from, &rule.from)) else {
            return JurisdictionRuling::Unknown("no_rule");
        };
        let names = |places: &[String]| {
            places.iter().any(|place| place == ANYWHERE || self.is_in(to, place))
        };
        if names(&rule.never) {
            JurisdictionRuling::Forbidden
        } else if names(&rule.to) {
            JurisdictionRuling::Allowed
        } else {
            JurisdictionRuling::Unknown("no_rule")
        }
    }

    /// Whether a place is this country, this bloc, or within it.
    fn is_in(&self, place: &str, whole: &str) -> bool {
        let same = place.eq_ignore_ascii_case(whole);
        let members = self.blocs.get(whole);
        same || members.is_some_and(|all| all.iter().any(|one| one.eq_ignore_ascii_case(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_country_and_provider_are_held_against_the_rules() {
        let rules = Jurisdictions::builtin().unwrap();
        let eu = ["DE".to_owned()];
        let none: [String; 0] = [];
        for (subject, regions, provider, expected) in [
            (Some("DE"), &eu[..], None, JurisdictionRuling::Allowed),
            (Some("FR"), &eu[..], Some(Some("US")), JurisdictionRuling::Allowed),
            (Some("FR"), &eu[..], Some(Some("RU")), JurisdictionRuling::Forbidden),
            (Some("CN"), &none[..], Some(Some("US")), JurisdictionRuling::Forbidden),
            (Some("CN"), &none[..], Some(Some("CN")), JurisdictionRuling::Allowed),
            (Some("cn"), &none[..], None, JurisdictionRuling::Allowed),
            (Some("AU"), &none[..], Some(Some("US")), JurisdictionRuling::Unknown("no_rule")),
            (Some("DE"), &none[..], Some(None), JurisdictionRuling::Unknown("provider_region")),
            (None, &eu[..], None, JurisdictionRuling::Unknown("subject_country")),
            (Some("ZZ"), &eu[..], None, JurisdictionRuling::Unknown("no_rule")),
        ] {
            let asked = Transfer { subject, regions, provider };
            assert_eq!(rules.rule(&asked), expected, "{asked:?}");
        }
    }

    #[test]
    fn forbidden_wins_over_unknown() {
        let rules = Jurisdictions::builtin().unwrap();
        let regions = ["ZZ".to_owned()];
        let asked = Transfer { subject: Some("FR"), regions: &regions, provider: Some(Some("RU")) };
        assert_eq!(rules.rule(&asked), JurisdictionRuling::Forbidden);
    }
}
