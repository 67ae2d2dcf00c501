//! Shadow: does the reply look down on anyone?
//!
//! **Invariant:** naming a feeling with the person is listening; telling them what they are is not.

use crate::acts::{Act, Acts, Cue, Lexicon};
use crate::manner::Manner;
use crate::objection::{Objection, Safe, opinion};
use crate::{Case, Judge, content};
use conclave_core::{Category, Opinion, Priority, Reason, Seat};
use conclave_detect::MannerFault;
use std::sync::Arc;

/// What despises.
const FIELD: [Category; 2] = [Category::Hate, Category::Harassment];
/// Agreement longer than this says more than yes.
const SHORT_AGREEMENT: usize = 140;

/// The Shadow verifier.
pub struct Shadow {
    lexicon: Arc<Lexicon>,
}

impl Shadow {
    /// Reads with this lexicon.
    #[must_use]
    pub const fn new(lexicon: Arc<Lexicon>) -> Self {
        Self { lexicon }
    }
}

const SAFE: Safe = Safe {
    confidence: 96,
    because: "The reply speaks with respect and does not tell the person who they are.",
};

impl Judge for Shadow {
    fn seat(&self) -> Seat {
        Seat::new("shadow", Priority::Low)
    }

    fn judge(&self, case: &Case) -> Option<Opinion> {
        let acts = case.acts(&self.lexicon);
        let mut objections: Vec<_> = [
            (Act::Projects, Reason::Projects),
            (Act::Shames, Reason::Shames),
            (Act::Contempt, Reason::Contempt),
        ]
        .into_iter()
        .filter(|(act, _)| acts.does(*act))
        .map(|(act, reason)| Objection::graded(reason, acts.tempered(act), acts.rules(act)))
        .collect();
        objections.extend(joins_in(case, &acts));
        objections.extend(content::objection(case, &acts, &FIELD, Reason::Contempt, 60));
        let manner = Manner::of(case, &acts, Some(MannerFault::Demeans));
        let objections = manner.weigh(objections, Reason::Contempt);
        Some(opinion(objections, manner.doubting(SAFE)))
    }
}

/// Agreement in a few words is agreement with what was just said; when that was contempt, it is
/// shared.
fn joins_in(case: &Case, acts: &Acts) -> Option<Objection> {
    let seen = FIELD.iter().filter_map(|field| case.input.categories.get(field));
    let hateful = seen.map(|score| score.hundredths()).max().unwrap_or(0) >= 30;
    let contempt = hateful || acts.turn.now(Cue::Hostile) >= 70;
    let joins = acts.does(Act::Agrees)
        && acts.shape.size < SHORT_AGREEMENT
        && !content::declines(acts)
        && acts.strength(Act::Listens) < 80;
    let strength = if hateful { 80 } else { 72 };
    (contempt && joins)
        .then(|| Objection::graded(Reason::Contempt, strength, acts.rules(Act::Agrees)))
}
