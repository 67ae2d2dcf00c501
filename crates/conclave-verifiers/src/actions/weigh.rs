//! The built-in engine: rules over what a call says, and a trained classifier beside them.
//!
//! **Invariant:** the gravest rule decides; a harmless part never makes up for a harmful one.
//! **Invariant:** the classifier can only add harm. Alone it makes a concern, unless hardly any ordinary action looks
//! like this one.

use super::facts::Facts;
use super::rules::{Finding, View};
use super::words::Words;
use super::{Action, ActionJudge, CONCERN_FROM, Consequence, TRAINED, effect, programs};
use crate::VerifierDataError;
use conclave_core::Score;
use conclave_detect::ActionClassifier;
use std::sync::Arc;

/// From this score on the classifier is heard beside a rule, in hundredths: one in ten ordinary actions reach it.
const AGREES_FROM: u8 = 10;
/// From this score on it is a concern by itself.
const HEARD_FROM: u8 = 30;
/// From this score on it is harmful by itself.
const SURE_FROM: u8 = 70;
/// From this harm on a rule has seen something.
const SEEN_FROM: u8 = 25;
/// What a concern weighs that the classifier alone has. It withholds an action without words only under stricter
/// scrutiny.
const FAINT: u8 = 15;
/// What rule and classifier come to where they agree, at least.
const AGREED: u8 = 72;

/// Weighs actions by rules over their words, and by a trained classifier where one is installed.
pub struct Consequences {
    words: Words,
    classifier: Option<Arc<dyn ActionClassifier>>,
}

impl Consequences {
    /// With the built-in word lists.
    ///
    /// # Errors
    /// When the built-in data is broken.
    pub fn builtin() -> Result<Self, VerifierDataError> {
        Ok(Self { words: Words::builtin()?, classifier: None })
    }

    /// The same engine, with a trained classifier beside its rules.
    #[must_use]
    pub fn with_classifier(self, classifier: Arc<dyn ActionClassifier>) -> Self {
        Self { classifier: Some(classifier), ..self }
    }

    /// What the rules find, and what the classifier adds to it; the gravest first.
    fn findings(&self, action: Action<'_>) -> Vec<Finding> {
        let facts = Facts::of(action, &self.words.keys);
        let effect = effect::of(&self.words, &facts);
        let view = View { words: &self.words, facts: &facts, effect };
        let mut found = Self::recognised(action, &view);
        found.sort_by_key(|finding| std::cmp::Reverse(finding.0));
        if let Some(finding) = self.trained(action, &view, found.first()) {
            found.insert(0, finding);
        }
        found
    }

    /// What the classifier adds to the gravest finding of the rules.
    fn trained(
        &self,
        action: Action<'_>,
        view: &View<'_>,
        rule: Option<&Finding>,
    ) -> Option<Finding> {
        let classifier = self.classifier.as_ref()?;
        let danger = classifier.danger(&action.write_out(), action.asked).hundredths();
        let seen = rule.map_or(0, |finding| finding.0);
        let harm = match (danger, seen) {
            (..AGREES_FROM, _) => return None,
            (_, CONCERN_FROM..) | (SURE_FROM.., SEEN_FROM..) => AGREED,
            (SURE_FROM.., _) => danger,
            (_, SEEN_FROM..) => CONCERN_FROM,
            (HEARD_FROM.., _) => FAINT,
            _ => return None,
        };
        let agrees = rule.filter(|finding| finding.0 >= SEEN_FROM);
        let (affected, reach, undo) = agrees.map_or_else(
            || ("people or things that such actions often harm", view.reach(), view.undo()),
            |finding| (finding.1, finding.2, finding.3),
        );
        (harm > seen).then_some(Finding(harm, affected, reach, undo, TRAINED))
    }

    fn recognised(action: Action<'_>, view: &View<'_>) -> Vec<Finding> {
        // Of findings that weigh the same, the one that names people is told.
        let mut found: Vec<_> = [
            view.stops_lifeline(),
            view.overrides_safeguard(),
            view.opens_floodgate(),
            view.slips_number(),
            view.takes_from_people(),
            view.discloses(),
            view.leaves_out_care(),
            view.covers_up(),
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
        found.extend(programs::findings(action, view.facts));
        found
    }
}

impl ActionJudge for Consequences {
    fn weigh(&self, action: Action<'_>) -> Consequence {
        let found = self.findings(action);
        let is_named = |finding: &&Finding| finding.0 >= SEEN_FROM || finding.4 == TRAINED;
        let rules = found.iter().filter(is_named).map(|finding| finding.4).collect();
        match found.first() {
            Some(&Finding(harm, harmed, reach, undo, _)) => {
                Consequence { harm: Score::from_hundredths(harm), harmed, reach, undo, rules }
            }
            None => Consequence::NONE,
        }
    }
}
