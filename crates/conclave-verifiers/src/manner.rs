//! What the trained model of replies adds to what the rules see: it objects, it doubts, and it calms.
//!
//! **Invariant:** the model knows no acts: where the rules see a refusal, help or a story, it must be surer.
//! **Invariant:** what it alone says is never a veto, and it never calms a rule that is nearly certain.

use crate::acts::Acts;
use crate::objection::{Objection, Safe};
use crate::{Case, content};
use conclave_core::{Reason, Vote};
use conclave_detect::MannerFault;

/// From this score on a fault is a faint concern, as weak as the score itself: twenty in a thousand harmless replies reach it.
const FAINT_FROM: u8 = 12;
/// From this score on a fault is a concern, in hundredths: eight in a thousand harmless replies reach it.
const CONCERN_FROM: u8 = 30;
/// From this score on it is harmful: one in a thousand harmless replies reach it.
const HARMFUL_FROM: u8 = 55;
/// From this score of harm on every verifier is less sure that nothing is wrong.
const DOUBT_FROM: u8 = 6;
/// How fast it becomes so.
const DOUBT_STEP: u8 = 3;
/// However much the model doubts, a verifier that sees nothing is so sure.
const LEAST_SURE: u8 = 30;
/// Below this score the model finds nothing wrong.
const CALM_UNDER: u8 = 5;
/// A rule this sure is heard whatever the model says.
const CERTAIN_FROM: u8 = 94;
/// How much surer the model must be of a reply that declines, helps or tells a story.
const EXCUSED_SLACK: u8 = 30;
/// The most it says alone: less than any verifier needs for a veto.
const MOST: u8 = 69;

/// What the model says of one fault, and of the reply as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    fault: Option<MannerFault>,
    score: u8,
    harm: u8,
    calm: bool,
    hears_faint: bool,
}

impl Manner {
    /// Looks for a fault, or at the whole alone; without a model nothing is seen and nothing calmed.
    #[must_use]
    pub fn of(case: &Case, acts: &Acts, fault: Option<MannerFault>) -> Self {
        let Some(reply) = case.reply.as_reply else {
            return Self { fault, score: 0, harm: 0, calm: false, hears_faint: false };
        };
        // What an action carries is said to somebody else: it can neither dismiss who asked for it nor encourage them.
        let is_about_asker =
            matches!(fault, Some(MannerFault::Dismisses | MannerFault::Encourages));
        let seen = match fault {
            Some(_) if is_about_asker && case.is_action_alone() => 0,
            Some(fault) => reply.manner.shows(fault).hundredths(),
            None => 0,
        };
        let harm = reply.harm.hundredths();
        let excused =
            content::declines(acts) || content::helps(acts) || content::is_told(case, acts);
        let slack = if excused { EXCUSED_SLACK } else { 0 };
        // Silence has no manner.
        let wordless = case.candidate.text.trim().is_empty();
        let guarded = case.reply.floor || content::is_for_children(case) || wordless;
        Self {
            fault,
            score: seen.saturating_sub(slack),
            harm: harm.saturating_sub(slack),
            calm: seen.max(harm) < CALM_UNDER && !guarded,
            // Warmth is like what binds, and practical help like what encourages: there a faint likeness says nothing. And
            // somebody in crisis is not kept waiting for a reply because of one.
            hears_faint: matches!(
                fault,
                Some(MannerFault::Dismisses | MannerFault::Deceives | MannerFault::Demeans)
            ) && !case.input.crisis.is_crisis(),
        }
    }

    /// The rules' objections, weighed: where the model finds nothing, a rule that is not nearly certain is a
    /// small concern. With the model's own objection.
    #[must_use]
    pub fn weigh(self, mut objections: Vec<Objection>, own: Reason) -> Vec<Objection> {
        if self.calm {
            objections.iter_mut().for_each(soften);
        }
        objections.extend(self.objection(own));
        objections
    }

    fn objection(self, reason: Reason) -> Option<Objection> {
        let rules = vec![format!("trained/{}", self.fault?.as_str())];
        let confidence = (40 + self.score / 2).min(MOST);
        match self.score {
            HARMFUL_FROM.. => Some(Objection::harmful(reason, confidence, rules)),
            CONCERN_FROM.. => Some(Objection::concern(reason, confidence, rules)),
            FAINT_FROM.. if self.hears_faint => Some(Objection::concern(reason, self.score, rules)),
            _ => None,
        }
    }

    /// How sure a verifier is that nothing is wrong, where the model suspects something.
    #[must_use]
    pub fn doubting(self, safe: Safe) -> Safe {
        let doubt = self.harm.saturating_sub(DOUBT_FROM).saturating_mul(DOUBT_STEP);
        let confidence = safe.confidence.saturating_sub(doubt).max(LEAST_SURE);
        Safe { confidence: confidence.min(safe.confidence), ..safe }
    }
}

/// Weighs objections to what a reply lacks: warmth, a way to help. Phrases know few of the ways to be kind, so the model
/// has to find the reply cold as well. A word or two for somebody in danger is too little whatever the model finds.
/// Without a model, and for children, they count as they are.
#[must_use]
pub fn confirm_missing(case: &Case, mut objections: Vec<Objection>) -> Vec<Objection> {
    let Some(reply) = case.reply.as_reply else {
        return objections;
    };
    let coldness = reply.manner.shows(MannerFault::Dismisses).hundredths();
    if coldness < FAINT_FROM && !content::is_for_children(case) {
        let lacking = objections.iter_mut().filter(|one| one.reason != Reason::TooShort);
        lacking.for_each(Objection::take_back);
    }
    objections
}

fn soften(objection: &mut Objection) {
    let certain = objection.vote == Vote::Harmful && objection.confidence >= CERTAIN_FROM;
    if !certain && objection.vote != Vote::Safe {
        objection.vote = Vote::Concern;
        objection.confidence = objection.confidence / 10 * 3;
    }
}
