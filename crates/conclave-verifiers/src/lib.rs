//! The built-in verifiers: a reply judged in the light of its conversation.
//!
//! **Invariant:** pure: the same case gives the same opinion.
//! **Invariant:** a verifier sees the case and nothing else; none can know how another votes.

mod actions;
mod acts;
mod attachment;
mod call;
mod carried;
mod case;
mod classifier;
mod content;
mod counterfactual;
mod crisis;
mod floor;
mod higher_self;
mod manner;
mod objection;
mod passages;
mod shadow;
mod wisdom;

pub use actions::{Action, ActionJudge, Consequence, Consequences, Reach, Undo};
pub use acts::VerifierDataError;
pub use carried::words;
pub use case::{Case, ToolDescription};
pub use counterfactual::Counterfactual;
pub use floor::ballot as floor_ballot;

use acts::Lexicon;
use conclave_core::{Opinion, Seat};
use passages::Closely;
use std::sync::Arc;

/// A verifier that needs nothing but the case.
pub trait Judge: Send + Sync {
    /// Its place on the panel.
    fn seat(&self) -> Seat;
    /// Its opinion, or `None` when there is nothing in its field to judge.
    fn judge(&self, case: &Case) -> Option<Opinion>;
}

/// The seven built-in verifiers, in the order of the specification.
///
/// # Errors
/// When a built-in data file is broken.
pub fn builtin() -> Result<Vec<Box<dyn Judge>>, VerifierDataError> {
    builtin_with(Arc::new(Consequences::builtin()?))
}

/// The seven built-in verifiers, with another engine behind the Counterfactual one.
///
/// # Errors
/// When a built-in data file is broken.
pub fn builtin_with(
    engine: Arc<dyn ActionJudge>,
) -> Result<Vec<Box<dyn Judge>>, VerifierDataError> {
    let lexicon = Lexicon::shared()?;
    let shared = || Arc::clone(&lexicon);
    Ok(vec![
        Box::new(Closely::of_words(crisis::Crisis::new(shared()))),
        Box::new(Closely::of_words(higher_self::HigherSelf::new(shared()))),
        Box::new(Closely::of_words(wisdom::Wisdom::new(shared()))),
        Box::new(Closely::of_words(shadow::Shadow::new(shared()))),
        Box::new(Closely::of_words(attachment::Attachment::new(shared()))),
        Box::new(Counterfactual::new(engine)),
        Box::new(Closely::of_words_and_actions(classifier::Classifier::new(shared()))),
    ])
}
