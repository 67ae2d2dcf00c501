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
pub enum Ruling {
    /// It may go there.
    Allowed,
    /// It may not.
    Forbidden,
    /// Nobody knows: a person must decide.
    Unknown(&'static str),
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
    pub fn rule(&self, asked: &Transfer<'_>) -> Ruling {
        let Some(from) = asked.subject else { return Ruling::Unknown("subject_country") };
        let mut places: Vec<&str> = asked.regions.iter().map(String::as_str).collect();
        match asked.provider {
            Some(Some(place)) => places.push(place),
            Some(None) => return Ruling::Unknown("provider_region"),
            None => {}
        }
        let rulings: Vec<_> = places.iter().map(|to| self.passage(from, to)).collect();
        if rulings.contains(&Ruling::Forbidden) {
            return Ruling::Forbidden;
        }
        let unknown = rulings.into_iter().find(|ruling| *ruling != Ruling::Allowed);
        unknown.unwrap_or(Ruling::Allowed)
    }

    fn passage(&self, from: &str, to: &str) -> Ruling {
        if from.eq_ignore_ascii_case(to) {
            return Ruling::Allowed;
        }
        let Some(rule) = self.rules.iter().find(|rule| self.is_in(from, &rule.from)) else {
            return Ruling::Unknown("no_rule");
        };
        let names = |places: &[String]| {
            places.iter().any(|place| place == ANYWHERE || self.is_in(to, place))
        };
        if names(&rule.never) {
            Ruling::Forbidden
        } else if names(&rule.to) {
            Ruling::Allowed
        } else {
            Ruling::Unknown("no_rule")
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
            (Some("DE"), &eu[..], None, Ruling::Allowed),
            (Some("FR"), &eu[..], Some(Some("US")), Ruling::Allowed),
            (Some("FR"), &eu[..], Some(Some("RU")), Ruling::Forbidden),
            (Some("CN"), &none[..], Some(Some("US")), Ruling::Forbidden),
            (Some("CN"), &none[..], Some(Some("CN")), Ruling::Allowed),
            (Some("cn"), &none[..], None, Ruling::Allowed),
            (Some("AU"), &none[..], Some(Some("US")), Ruling::Unknown("no_rule")),
            (Some("DE"), &none[..], Some(None), Ruling::Unknown("provider_region")),
            (None, &eu[..], None, Ruling::Unknown("subject_country")),
            (Some("ZZ"), &eu[..], None, Ruling::Unknown("no_rule")),
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
        assert_eq!(rules.rule(&asked), Ruling::Forbidden);
    }
}
