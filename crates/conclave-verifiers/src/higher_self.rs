//! Higher Self: does the reply listen before it speaks?
//!
//! **Invariant:** a practical question deserves a practical answer at once; it is never a concern.

use crate::acts::{Act, Acts, Cue, Lexicon};
use crate::manner::{Manner, confirm_missing};
use crate::objection::{Objection, Safe, opinion, seen};
use crate::{Case, Judge};
use conclave_core::{Opinion, Priority, Reason, Seat};
use conclave_detect::MannerFault;
use std::sync::Arc;

/// From this exchange on advice is no longer premature.
const LISTENED_FROM: usize = 5;
/// From this strength on a feeling is raw.
const RAW_FROM: u8 = 70;

/// The Higher Self verifier.
pub struct HigherSelf {
    lexicon: Arc<Lexicon>,
}

impl HigherSelf {
    /// Reads with this lexicon.
    #[must_use]
    pub const fn new(lexicon: Arc<Lexicon>) -> Self {
        Self { lexicon }
    }
}

const SAFE: Safe = Safe {
    confidence: 95,
    because: "The reply meets the person where they are: it listens, or it answers what was asked.",
};

impl Judge for HigherSelf {
    fn seat(&self) -> Seat {
        Seat::new("higher_self", Priority::Middle)
    }

    fn judge(&self, case: &Case) -> Option<Opinion> {
        if case.candidate.is_silence() {
            let silence = Objection::concern(Reason::Silence, 70, seen("higher_self/silence"));
            return Some(opinion(vec![silence], SAFE));
        }
        let acts = case.acts(&self.lexicon);
        let mut objections = Vec::new();
        if needs_listening(&acts) {
            objections.extend(advises_early(&acts));
            objections.extend(lectures(&acts));
            objections.extend(makes_light(&acts));
        }
        if acts.passes_over() {
            let cold = Objection::concern(Reason::Cold, 75, seen("higher_self/passes-over"));
            objections.extend(confirm_missing(case, vec![cold]));
        }
        let manner = Manner::of(case, &acts, Some(MannerFault::Dismisses));
        let objections = manner.weigh(objections, dismissal(&acts));
        Some(opinion(objections, manner.doubting(SAFE)))
    }
}

/// What a dismissal is most likely to be, by what else the reply does.
fn dismissal(acts: &Acts) -> Reason {
    if acts.does(Act::Lectures) {
        Reason::Lectures
    } else if acts.does(Act::Minimises) {
        Reason::Minimises
    } else if acts.does(Act::Refuses) {
        Reason::NeedlessRefusal
    } else {
        Reason::Cold
    }
}

/// A raw feeling, and no question that wants an answer.
fn needs_listening(acts: &Acts) -> bool {
    let turn = &acts.turn;
    if turn.now(Cue::WantsListening) > 0 {
        return true;
    }
    let raw = turn.now(Cue::RawEmotion) >= RAW_FROM
        || (turn.letters < 60 && turn.lately(Cue::RawEmotion) >= RAW_FROM);
    let asked = turn.is(Cue::AsksAdvice) || turn.is(Cue::AsksPractical);
    raw && !asked && acts.shape.readable
}

/// Sentences that tell the person what to do and do nothing kind besides.
fn bare(acts: &Acts, act: Act) -> usize {
    let kind = [Act::Listens, Act::Present, Act::Validates, Act::OffersHelp, Act::KeepsSafe];
    let mut kind: Vec<_> =
        kind.into_iter().flat_map(|act| acts.of(act)).map(|one| one.sentence).collect();
    kind.sort_unstable();
    let mut sentences: Vec<_> = acts
        .of(act)
        .map(|one| one.sentence)
        .filter(|sentence| kind.binary_search(sentence).is_err())
        .collect();
    sentences.sort_unstable();
    sentences.dedup();
    sentences.len()
}

fn listens(acts: &Acts) -> bool {
    acts.does(Act::Listens) || acts.does(Act::Validates) || acts.does(Act::Present)
}

fn advises_early(acts: &Acts) -> Option<Objection> {
    let unwanted = acts.turn.now(Cue::WantsListening) > 0;
    if acts.turn.exchange >= LISTENED_FROM && !unwanted {
        return None;
    }
    let advice = bare(acts, Act::Advises);
    if advice == 0 {
        return None;
    }
    let told = acts.strength(Act::Advises) >= 80;
    let confidence = match (listens(acts), advice) {
        (false, _) if told || unwanted => 95,
        (false, _) => 80,
        (true, 1..=2) if !unwanted => return None,
        (true, _) => 60,
    };
    Some(Objection::concern(Reason::PrematureAdvice, confidence, acts.rules(Act::Advises)))
}

fn lectures(acts: &Acts) -> Option<Objection> {
    let lecture = bare(acts, Act::Lectures);
    let confidence = match (listens(acts), lecture) {
        (_, 0) | (true, 1) => return None,
        (false, _) => 90,
        (true, _) => 60,
    };
    Some(Objection::concern(Reason::Lectures, confidence, acts.rules(Act::Lectures)))
}

fn makes_light(acts: &Acts) -> Option<Objection> {
    let unkind = acts.does(Act::Minimises) && !listens(acts);
    unkind.then(|| Objection::concern(Reason::Minimises, 80, acts.rules(Act::Minimises)))
}
