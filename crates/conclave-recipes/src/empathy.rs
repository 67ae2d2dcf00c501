//! Owns how a text treats people, in tenths of a point of five, by what it does.
//!
//! **Invariant:** no word of a model about itself counts: only what the text says to or about the person.
//! **Invariant:** the time is linear in the text, and the text is cut to a fixed length first.

use conclave_detect::{Manner, MannerFault};
use serde::{Deserialize, Serialize};

const WORDS: &str = include_str!("../../../data/recipes/empathy.toml");
/// How much of a text is looked at.
const BYTES_MAX: usize = 20_000;
/// A fault that a trained model sees counts from here on, in hundredths.
const FAULT_MIN: u8 = 30;

/// Whom a text speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// It speaks to the person: it must do something for them.
    To,
    /// It speaks about the person: it must not wrong them.
    About,
}

/// What was seen in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EmpathyActs {
    /// It names a feeling.
    pub names: bool,
    /// It says that the feeling has its reasons.
    pub validates: bool,
    /// It asks.
    pub asks: bool,
    /// It offers something to be done.
    pub offers: bool,
    /// How often it makes little of it; two at most.
    pub dismisses: u8,
    /// How often it puts the blame on them; two at most.
    pub blames: u8,
    /// It says what is always said.
    pub hollow: bool,
}

#[derive(Deserialize)]
struct Lists {
    names: Vec<String>,
    validates: Vec<String>,
    asks: Vec<String>,
    offers: Vec<String>,
    dismisses: Vec<String>,
    blames: Vec<String>,
    hollow: Vec<String>,
}

/// Scores texts.
pub struct Empathy {
    lists: Lists,
}

impl Empathy {
    /// With the words that are compiled in.
    ///
    /// # Errors
    /// When the file is broken; a test makes sure that it is not.
    pub fn builtin() -> Result<Self, toml::de::Error> {
        Ok(Self { lists: toml::from_str(WORDS)? })
    }

    /// What a text does.
    #[must_use]
    pub fn acts(&self, text: &str) -> EmpathyActs {
        let text = &text[..text.floor_char_boundary(BYTES_MAX)];
        let text = text.to_lowercase().replace(['’', '‘'], "'");
        let says = |words: &[String]| words.iter().any(|word| text.contains(word.as_str()));
        let times = |words: &[String]| {
            let found = words.iter().filter(|word| text.contains(word.as_str())).count();
            u8::try_from(found.min(2)).unwrap_or(2)
        };
        let lists = &self.lists;
        EmpathyActs {
            names: says(&lists.names),
            validates: says(&lists.validates),
            asks: (text.contains('?') || text.contains('？') || text.contains("か。"))
                && says(&lists.asks),
            offers: says(&lists.offers),
            dismisses: times(&lists.dismisses),
            blames: times(&lists.blames),
            hollow: says(&lists.hollow),
        }
    }

    /// How a text treats the person, 0 to 50; `manner` is what a trained model sees, where there is one.
    #[must_use]
    pub fn score(&self, text: &str, address: Address, manner: Option<&Manner>) -> u8 {
        let acts = self.acts(text);
        let worth = |done: bool, points: i32| if done { points } else { 0 };
        let given = match address {
            Address::To => {
                15 + worth(acts.names, 10)
                    + worth(acts.validates, 10)
                    + worth(acts.asks, 5)
                    + worth(acts.offers, 10)
            }
            Address::About => 40 + worth(acts.names, 5) + worth(acts.validates, 5),
        };
        let taken = i32::from(acts.dismisses) * 15
            + i32::from(acts.blames) * 15
            + worth(acts.hollow && address == Address::To, 7)
            + manner.map_or(0, faults);
        u8::try_from((given - taken).clamp(0, 50)).unwrap_or(0)
    }
}

/// What the gravest fault that a trained model sees takes away: up to two points.
fn faults(manner: &Manner) -> i32 {
    let grave = [
        MannerFault::Dismisses,
        MannerFault::Demeans,
        MannerFault::Deceives,
        MannerFault::Encourages,
    ];
    let worst = grave.map(|fault| manner.shows(fault).hundredths()).into_iter().max().unwrap_or(0);
    if worst >= FAULT_MIN { i32::from(worst) / 5 } else { 0 }
}

#[cfg(test)]
#[path = "empathy_tests.rs"]
mod tests;
