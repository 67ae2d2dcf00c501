//! Counterfactual: what would happen if the action were taken?
//!
//! **Invariant:** it sits only where there is an action, and the gravest action of a reply decides.

use crate::actions::{Action, ActionJudge, Consequence, Reach, Undo};
use crate::objection::{Objection, STRONG_FROM, Safe, opinion};
use crate::{Case, Judge};
use conclave_core::{Opinion, Priority, Reason, Seat};
use std::sync::Arc;

/// The Counterfactual verifier.
pub struct Counterfactual {
    engine: Arc<dyn ActionJudge>,
}

impl Counterfactual {
    /// Judges with this engine.
    #[must_use]
    pub fn new(engine: Arc<dyn ActionJudge>) -> Self {
        Self { engine }
    }
}

const SAFE: Safe =
    Safe { confidence: 95, because: "The action touches little and can be taken back." };

impl Judge for Counterfactual {
    fn seat(&self) -> Seat {
        Seat::new("counterfactual", Priority::High)
    }

    fn judge(&self, case: &Case) -> Option<Opinion> {
        let asked = case.last_user_text();
        let calls = case.candidate.tool_calls.iter();
        let gravest = calls
            .map(|call| {
                let about = case.description_of(&call.name);
                self.engine.weigh(Action::of(call).with_description(about).in_answer_to(&asked))
            })
            .max_by(|a, b| a.harm.get().total_cmp(&b.harm.get()))?;
        Some(judged(&gravest))
    }
}

fn judged(consequence: &Consequence) -> Opinion {
    let harm = consequence.harm.hundredths();
    let rules: Vec<String> = consequence.rules.iter().map(ToString::to_string).collect();
    let objection = match harm {
        STRONG_FROM.. => Objection::harmful(Reason::DangerousAction, harm, rules),
        _ if consequence.is_concern() => Objection::concern(Reason::DangerousAction, harm, rules),
        _ => return opinion(Vec::new(), SAFE),
    };
    Opinion { reasoning: told(consequence), ..opinion(vec![objection], SAFE) }
}

/// What it would do, to whom, to how many and whether it could be undone, with what that costs the reply.
fn told(consequence: &Consequence) -> String {
    let reach = match consequence.reach {
        Reach::One => "one person or thing",
        Reach::Some => "several people or things",
        Reach::Many => "many people or things",
    };
    let undo = match consequence.undo {
        Undo::Easy => "could be undone easily",
        Undo::Hard => "would be hard to undo",
        Undo::Never => "could not be undone",
    };
    format!(
        "This action would affect {}. It would reach {reach} and {undo} (penalty {:.2}). {}",
        consequence.harmed,
        consequence.penalty().get(),
        Reason::DangerousAction.guidance()
    )
}
