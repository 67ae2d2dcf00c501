//! The built-in engine: rules over what a call says.
//!
//! **Invariant:** the gravest rule decides; a harmless part never makes up for a harmful one.

use super::facts::Facts;
use super::rules::{Finding, View};
use super::words::Words;
use super::{Action, ActionJudge, Consequence, effect, programs};
use crate::VerifierDataError;
use conclave_core::Score;

/// Weighs actions by rules over their words.
pub struct Consequences {
    words: Words,
}

impl Consequences {
    /// With the built-in word lists.
    ///
    /// # Errors
    /// When the built-in data is broken.
    pub fn builtin() -> Result<Self, VerifierDataError> {
        Ok(Self { words: Words::builtin()? })
    }

    fn findings(&self, action: Action<'_>, facts: &Facts) -> Vec<Finding> {
        let view = View { words: &self.words, facts, effect: effect::of(&self.words, facts) };
        let mut found: Vec<_> = [
            view.deletes(),
            view.pays(),
            view.tells_many(),
            view.grants(),
            view.lowers_guard(),
            view.opens(),
            view.switches_off(),
            view.moves_hazard(),
            view.leaks(),
            view.exposes_person(),
            view.touches_system(),
            view.hides(),
        ]
        .into_iter()
        .flatten()
        .collect();
        found.extend(programs::findings(action, facts));
        found
    }
}

impl ActionJudge for Consequences {
    fn weigh(&self, action: Action<'_>) -> Consequence {
        let facts = Facts::of(action, &self.words.keys);
        let mut found = self.findings(action, &facts);
        found.sort_by_key(|finding| std::cmp::Reverse(finding.0));
        let rules =
            found.iter().filter(|finding| finding.0 >= 30).map(|finding| finding.4).collect();
        match found.first() {
            Some(&Finding(harm, harmed, reach, undo, _)) => {
                Consequence { harm: Score::from_hundredths(harm), harmed, reach, undo, rules }
            }
            None => Consequence::NONE,
        }
    }
}
