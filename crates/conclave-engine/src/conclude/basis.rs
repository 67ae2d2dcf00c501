//! Which directive a block, a hold or a refusal rests on.
//!
//! **Invariant:** whatever a person is not given for conscience's sake, a directive says why. A reply that
//! was delivered, a model that failed and a budget that is spent rest on none; a veto on an earlier draft
//! is the draft's own.

use super::Choice;
use crate::engine::Engine;
use crate::matter::{Matter, TurnContent};
use conclave_core::{
    Attempt, Ballot, Cast, Category, DirectiveId, Disposition, GuardCode, Outcome, Verdict, Vote,
};
use conclave_instinct::{Duty, Instinct};

impl Engine {
    /// What the strictest of a turn's choices rests on.
    pub(crate) fn directive_for(&self, matter: &Matter<TurnContent>) -> Option<DirectiveId> {
        let choices = matter.content.choices.iter();
        let strictest = choices
            .filter(|choice| choice.outcome != Outcome::Failed)
            .max_by_key(|choice| choice.outcome.severity())?;
        match strictest.outcome {
            Outcome::Delivered | Outcome::Redacted | Outcome::Failed => None,
            // The panel spoke last, unless it passed the reply or was never asked.
            _ if is_withheld_by_panel(strictest) => {
                Some(for_panel(&self.instinct, matter.crisis().is_crisis(), strictest))
            }
            _ => self.directive_for_guards(matter),
        }
    }

    /// What the strictest finding of the guards rests on.
    fn directive_for_guards(&self, matter: &Matter<TurnContent>) -> Option<DirectiveId> {
        let finding = matter.gravest().filter(|one| one.disposition >= Disposition::Held);
        let is_harm = finding.is_some_and(|one| one.code == Some(GuardCode::Harmful));
        if is_harm {
            let in_crisis = matter.crisis().is_crisis();
            let known = matter.reading.subject();
            let category = known.or_else(|| in_crisis.then_some(Category::SelfHarm));
            let named = category.map(|category| self.instinct.for_category(category));
            return Some(named.unwrap_or(DirectiveId::FIRST));
        }
        // The system answers a person in crisis itself, whatever else stood in the way.
        if matter.crisis().is_crisis() {
            return Some(self.instinct.for_duty(Duty::Care));
        }
        finding.and_then(|finding| self.instinct.for_finding(finding))
    }
}

/// Whether a panel judged the last draft and did not pass it.
fn is_withheld_by_panel(choice: &Choice) -> bool {
    matches!(choice.verdict, Some(Verdict::Withhold(_)))
}

/// What a panel objected to in the last draft: a veto first, then harm, then any objection. Where
/// none rests on a directive, nobody has judged the draft to be safe, and the person is told so.
fn for_panel(instinct: &Instinct, in_crisis: bool, choice: &Choice) -> DirectiveId {
    let mut drafts = choice.attempts.iter().rev();
    drafts.find_map(|draft| for_draft(instinct, draft)).unwrap_or_else(|| {
        instinct.for_duty(if in_crisis { Duty::Care } else { Duty::Transparency })
    })
}

fn for_draft(instinct: &Instinct, draft: &Attempt) -> Option<DirectiveId> {
    let is_harmful =
        |ballot: &Ballot| matches!(ballot.cast, Cast::Voted { vote: Vote::Harmful, .. });
    for_veto(instinct, draft)
        .or_else(|| first_objection(instinct, draft, is_harmful))
        .or_else(|| first_objection(instinct, draft, |_| true))
}

/// What the first veto on a draft rests on.
pub(super) fn for_veto(instinct: &Instinct, draft: &Attempt) -> Option<DirectiveId> {
    first_objection(instinct, draft, Ballot::is_veto)
}

/// What the first such ballot of a draft objects to; members that only watch have no say.
fn first_objection(
    instinct: &Instinct,
    draft: &Attempt,
    test: impl Fn(&Ballot) -> bool,
) -> Option<DirectiveId> {
    let ballots = draft.panels.last()?.ballots.iter();
    let reasons = ballots.filter(|ballot| !ballot.seat.monitor && test(ballot));
    reasons.flat_map(|ballot| &ballot.reasons).find_map(|why| instinct.for_reason(*why))
}
