//! Which directive a block, a hold or a refusal rests on.
//!
//! **Invariant:** whatever a person is not given, a directive says why. Only a reply that was
//! delivered and a model that failed rest on none; a veto on an earlier draft is the draft's own.

use crate::decision::Choice;
use crate::engine::Engine;
use crate::permission::Refusal;
use crate::preflight::{Examination, Stop, is_crisis};
use conclave_core::{Attempt, Ballot, Cast, Category, DirectiveId, Outcome, Verdict, Vote};
use conclave_instinct::{Duty, Instinct};

impl Engine {
    /// What the strictest of the choices rests on.
    pub(crate) fn directive_of(
        &self,
        examined: &Examination,
        choices: &[Choice],
    ) -> Option<DirectiveId> {
        if let Some(stop) = examined.stop {
            return Some(of_stop(&self.instinct, examined, stop));
        }
        let strictest = choices
            .iter()
            .filter(|choice| choice.outcome != Outcome::Failed)
            .max_by_key(|choice| choice.outcome.severity())?;
        match strictest.outcome {
            Outcome::Delivered | Outcome::Redacted | Outcome::Failed => None,
            _ if was_passed(strictest) => Some(of_hold(&self.instinct, examined)),
            _ => Some(of_panel(&self.instinct, examined, strictest)),
        }
    }
}

fn of_stop(instinct: &Instinct, examined: &Examination, stop: Stop) -> DirectiveId {
    match stop {
        Stop::Harmful { directive, .. } => directive,
        Stop::CrisisWithMeans if examined.input.is_harmful() => {
            let category = examined.input.gravest().unwrap_or(Category::SelfHarm);
            instinct.for_category(category)
        }
        // The system answers a person in crisis itself, whatever else stood in the way.
        Stop::CrisisWithMeans => instinct.for_duty(Duty::Care),
        Stop::Refused(Refusal::ConsentRequired | Refusal::ConsentWithdrawn) => {
            instinct.for_duty(Duty::Consent)
        }
        Stop::Refused(Refusal::Jurisdiction) => instinct.for_duty(Duty::PrivacyDuty),
        Stop::Held | Stop::NoElders | Stop::Unguarded => of_hold(instinct, examined),
    }
}

/// What waits, waits for a community unless its reason says otherwise.
fn of_hold(instinct: &Instinct, examined: &Examination) -> DirectiveId {
    let mut issues = examined.hold.iter().flat_map(|hold| &hold.issues);
    let duty = issues.find_map(|issue| match issue.code.as_str() {
        "guard_failed" => Some(Duty::Consent),
        "jurisdiction_unknown" => Some(Duty::PrivacyDuty),
        _ => None,
    });
    instinct.for_duty(duty.unwrap_or(Duty::Culture))
}

/// Whether the panel had passed the reply, so that something else withheld it.
fn was_passed(choice: &Choice) -> bool {
    matches!(choice.verdict, Some(Verdict::Deliver { .. }))
}

/// What a panel objected to in the last draft: a veto first, then harm, then any objection. Where
/// none rests on a directive, nobody has judged the draft to be safe, and the person is told so.
fn of_panel(instinct: &Instinct, examined: &Examination, choice: &Choice) -> DirectiveId {
    let mut drafts = choice.attempts.iter().rev();
    drafts.find_map(|draft| of_draft(instinct, draft)).unwrap_or_else(|| {
        let crisis = is_crisis(examined.input.crisis);
        instinct.for_duty(if crisis { Duty::Care } else { Duty::Transparency })
    })
}

fn of_draft(instinct: &Instinct, draft: &Attempt) -> Option<DirectiveId> {
    let harmful = |ballot: &Ballot| matches!(ballot.cast, Cast::Voted { vote: Vote::Harmful, .. });
    of_veto(instinct, draft)
        .or_else(|| objected(instinct, draft, harmful))
        .or_else(|| objected(instinct, draft, |_| true))
}

/// What the first veto on a draft rests on.
pub(crate) fn of_veto(instinct: &Instinct, draft: &Attempt) -> Option<DirectiveId> {
    objected(instinct, draft, Ballot::is_veto)
}

/// What the first such ballot of a draft objects to; members that only watch have no say.
fn objected(
    instinct: &Instinct,
    draft: &Attempt,
    test: impl Fn(&Ballot) -> bool,
) -> Option<DirectiveId> {
    let ballots = draft.panels.last()?.ballots.iter();
    let reasons = ballots.filter(|ballot| !ballot.seat.monitor && test(ballot));
    reasons.flat_map(|ballot| &ballot.reasons).find_map(|why| instinct.for_reason(*why))
}
