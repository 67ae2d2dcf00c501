//! From what a verifier objects to, its opinion.
//!
//! **Invariant:** reasoning is made of catalogue phrases and our own sentences, never of the
//! reply's words, so that a hostile reply cannot speak through its critics.

use conclave_core::{Opinion, Reason, Vote};

/// How many rules an opinion names at most.
const PATTERNS_MAX: usize = 8;
/// How many reasons an opinion gives at most.
const REASONS_MAX: usize = 3;
/// How many of them its reasoning spells out.
const SPELLED_OUT: usize = 2;
/// How sure a verifier is at most that nothing is wrong, where it has taken an objection back.
const TAKEN_BACK_MOST: u8 = 60;

/// One thing a verifier objects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What, in the catalogue's words.
    pub reason: Reason,
    /// How it votes for it.
    pub vote: Vote,
    /// How sure it is, in hundredths.
    pub confidence: u8,
    /// The rules that saw it.
    pub rules: Vec<String>,
}

impl Objection {
    /// Something is not right.
    #[must_use]
    pub fn concern(reason: Reason, confidence: u8, rules: Vec<String>) -> Self {
        Self { reason, vote: Vote::Concern, confidence, rules }
    }

    /// Somebody would be hurt.
    #[must_use]
    pub fn harmful(reason: Reason, confidence: u8, rules: Vec<String>) -> Self {
        Self { reason, vote: Vote::Harmful, confidence, rules }
    }

    /// Leaves of it no more than that the verifier is less sure. A faint concern would not do: under strict scrutiny
    /// a concern of `Crisis` withholds a reply however faint it is, because its weight is missing from the assurance.
    pub fn take_back(&mut self) {
        self.vote = Vote::Safe;
        self.confidence = TAKEN_BACK_MOST;
    }

    /// Harmful where the evidence is strong, a concern where it is not.
    #[must_use]
    pub fn graded(reason: Reason, strength: u8, rules: Vec<String>) -> Self {
        if strength >= STRONG_FROM {
            Self::harmful(reason, strength, rules)
        } else {
            Self::concern(reason, strength, rules)
        }
    }
}

/// The name of something seen in the reply's shape rather than in its words.
#[must_use]
pub fn seen(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

/// From which strength on something is harmful by itself.
pub const STRONG_FROM: u8 = 70;

/// An opinion from objections; none means safe.
#[must_use]
pub fn opinion(mut objections: Vec<Objection>, safe: Safe) -> Opinion {
    let was_taken_back = |one: &Objection| one.vote == Vote::Safe;
    if objections.iter().any(|one| !was_taken_back(one)) {
        objections.retain(|one| !was_taken_back(one));
    }
    objections.sort_by_key(|one| std::cmp::Reverse((one.vote, one.confidence)));
    let Some(gravest) = objections.first() else {
        return safe.into_opinion();
    };
    let (vote, confidence) = (gravest.vote, gravest.confidence);
    if vote == Vote::Safe {
        let flagged_patterns = patterns_of(&objections);
        let confidence = safe.confidence.min(TAKEN_BACK_MOST);
        return Opinion { flagged_patterns, ..Safe { confidence, ..safe }.into_opinion() };
    }
    let reasons = reasons_of(&objections);
    Opinion {
        vote,
        confidence: f64::from(confidence) / 100.0,
        reasoning: reasoning(&reasons),
        flagged_patterns: patterns_of(&objections),
        reasons,
    }
}

/// What a verifier says when it objects to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Safe {
    /// How sure it is, in hundredths.
    pub confidence: u8,
    /// Why, in one plain sentence.
    pub because: &'static str,
}

impl Safe {
    fn into_opinion(self) -> Opinion {
        Opinion {
            vote: Vote::Safe,
            confidence: f64::from(self.confidence) / 100.0,
            reasons: Vec::new(),
            reasoning: self.because.to_owned(),
            flagged_patterns: Vec::new(),
        }
    }
}

fn reasons_of(objections: &[Objection]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for objection in objections {
        if !reasons.contains(&objection.reason) && reasons.len() < REASONS_MAX {
            reasons.push(objection.reason);
        }
    }
    reasons
}

fn reasoning(reasons: &[Reason]) -> String {
    let what: Vec<_> = reasons.iter().take(SPELLED_OUT).map(|reason| reason.plain()).collect();
    let instead = reasons.first().map_or("", |reason| reason.guidance());
    format!("The reply {}. {instead}", what.join(", and it "))
}

fn patterns_of(objections: &[Objection]) -> Vec<String> {
    let mut patterns: Vec<String> = Vec::new();
    for rule in objections.iter().flat_map(|objection| &objection.rules) {
        if !patterns.contains(rule) && patterns.len() < PATTERNS_MAX {
            patterns.push(rule.clone());
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAFE: Safe = Safe { confidence: 95, because: "Nothing seen." };

    #[test]
    fn the_gravest_objection_leads() {
        let opinion = opinion(
            vec![
                Objection::concern(Reason::Cold, 99, vec!["a".into()]),
                Objection::harmful(Reason::Minimises, 80, vec!["b".into(), "a".into()]),
            ],
            SAFE,
        );
        assert_eq!(opinion.vote, Vote::Harmful);
        assert!((opinion.confidence - 0.8).abs() < 1e-9);
        assert_eq!(opinion.reasons, [Reason::Minimises, Reason::Cold]);
        assert_eq!(opinion.flagged_patterns, ["b", "a"]);
        assert!(opinion.reasoning.starts_with("The reply made light of"), "{}", opinion.reasoning);
    }

    #[test]
    fn no_objection_is_safe() {
        let opinion = opinion(Vec::new(), SAFE);
        assert_eq!((opinion.vote, opinion.reasons.len()), (Vote::Safe, 0));
        assert_eq!(opinion.reasoning, "Nothing seen.");
    }

    #[test]
    fn what_is_taken_back_leaves_a_verifier_less_sure_and_the_rule_on_record() {
        let mut cold = Objection::concern(Reason::Cold, 75, vec!["a".into()]);
        cold.take_back();
        let alone = opinion(vec![cold.clone()], SAFE);
        assert_eq!(alone.vote, Vote::Safe);
        assert!((alone.confidence - 0.6).abs() < 1e-9);
        assert_eq!((alone.reasons.len(), alone.flagged_patterns), (0, vec!["a".to_owned()]));
        let shames = Objection::harmful(Reason::Shames, 80, vec!["b".into()]);
        let beside = opinion(vec![cold, shames], SAFE);
        assert_eq!((beside.vote, beside.reasons), (Vote::Harmful, vec![Reason::Shames]));
    }

    #[test]
    fn grading_turns_strength_into_a_vote() {
        for (strength, vote) in [(69, Vote::Concern), (70, Vote::Harmful)] {
            assert_eq!(Objection::graded(Reason::Shames, strength, Vec::new()).vote, vote);
        }
    }
}
