//! A decision read back from the ledger, for people: "why did you say that?" answered in plain words here,
//! how much each part weighed in [`influence`], how a reply was mended in [`correction`], everything as JSON in
//! [`view`], and all that is kept of one person in [`export`]. Nothing here changes anything.
//!
//! **Invariant:** a person gets reasons, never patterns or thresholds: no recipe for evasion.

mod correction;
mod export;
mod influence;
mod reply_words;
mod view;

pub use correction::{Concern, Correction, LearningProposal, corrections};
pub use export::{ExportPage, export_page, note_subject_export};
pub use influence::{Contribution, ContributorKind};
pub use view::decision_view;

use conclave_core::{Cast, Outcome, Reason, Vote};
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array, ballot_of, objections};
use correction::reasons_named;
use influence::{contributions, last_panel};
use reply_words::is_unsent_result;
use serde::Serialize;

/// Why a person was told what they were told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What was said; empty when it was erased.
    pub response_text: String,
    /// What shaped it, influences summing to 1.
    pub contributing_agents: Vec<Contribution>,
    /// Who looked at it.
    pub safety_verification: SafetyVerification,
    /// Whether the person may appeal.
    pub user_can_appeal: bool,
    /// The whole story, sentence by sentence.
    pub story: Vec<String>,
}

/// Who looked at the reply and what they said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SafetyVerification {
    /// Verifiers that voted on the last candidate.
    pub reviewed_by: Vec<String>,
    /// The safety score of the last panel.
    pub consensus_score: Option<f64>,
    /// What was objected to on the way.
    pub concerns_raised: Vec<String>,
}

/// Explains a stored decision to the person it concerned.
#[must_use]
pub fn explain(stored: &StoredDecision) -> Explanation {
    let outcome = Outcome::parse(stored.text("outcome"));
    // What was held leaves by the review's result, where consent is asked for again; never from here.
    let delivered = if is_unsent_result(stored, 0) { None } else { stored.words("delivered.0") };
    let delivered = delivered.unwrap_or_default();
    let concerns = concerns(stored);
    Explanation {
        response_text: delivered["text"].as_str().unwrap_or_default().to_owned(),
        contributing_agents: contributions(stored, outcome),
        safety_verification: SafetyVerification {
            reviewed_by: VoteCount::read_from(stored).voters(),
            consensus_score: stored.public("score").and_then(Value::as_u64).map(fraction),
            concerns_raised: concerns.iter().map(|reason| reason.plain().to_owned()).collect(),
        },
        user_can_appeal: outcome.is_some_and(|outcome| outcome != Outcome::Failed),
        story: story(stored, outcome, &concerns),
    }
}

#[expect(clippy::cast_precision_loss, reason = "stored numbers are at most 10,000")]
fn fraction(e4: u64) -> f64 {
    e4 as f64 / 1e4
}

/// How the last panel voted.
#[derive(Debug, Default)]
struct VoteCount {
    safe: Vec<String>,
    against: Vec<String>,
    /// Who should have voted and did not.
    missing: Vec<String>,
}

impl VoteCount {
    fn read_from(stored: &StoredDecision) -> Self {
        let ballots =
            last_panel(stored).map(|panel| array(panel.get("ballots"))).unwrap_or_default();
        let mut count = Self::default();
        for ballot in ballots.iter().filter_map(ballot_of).filter(|ballot| !ballot.seat.monitor) {
            let side = match ballot.cast {
                Cast::Voted { vote: Vote::Safe, .. } => &mut count.safe,
                Cast::Voted { .. } => &mut count.against,
                Cast::Abstained(_) | Cast::Excused(_) => &mut count.missing,
                Cast::NotApplicable => continue,
            };
            side.push(ballot.seat.verifier.to_string());
        }
        count
    }

    fn voters(&self) -> Vec<String> {
        self.safe.iter().chain(&self.against).cloned().collect()
    }
}

/// Whether anybody whose vote counts voted harmful on any reply of the turn.
fn is_anything_harmful(stored: &StoredDecision) -> bool {
    let attempts = stored.choices().iter().flat_map(|choice| array(choice.get("attempts")));
    let panels = attempts.flat_map(|attempt| array(attempt.get("panels")));
    let ballots = panels.flat_map(|panel| array(panel.get("ballots"))).filter_map(ballot_of);
    let mut counted = ballots.filter(conclave_core::Ballot::counts);
    counted.any(|ballot| matches!(ballot.cast, Cast::Voted { vote: Vote::Harmful, .. }))
}

fn concerns(stored: &StoredDecision) -> Vec<Reason> {
    let mut found = Vec::new();
    for (c, choice) in stored.choices().iter().enumerate() {
        for a in 0..array(choice.get("attempts")).len() {
            for reason in
                objections(stored, c, a).iter().flat_map(|one| reasons_named(&one["reasons"]))
            {
                if !found.contains(&reason) {
                    found.push(reason);
                }
            }
        }
    }
    found
}

fn story(stored: &StoredDecision, outcome: Option<Outcome>, concerns: &[Reason]) -> Vec<String> {
    let mut story = Vec::new();
    if stored.is_erased() {
        story.push(
            "The words of this turn were erased. What was decided, and by whose votes, is still \
             known."
                .to_owned(),
        );
    }
    if stored.public("crisis").and_then(Value::as_bool) == Some(true) {
        story.push(
            "What you wrote sounded as if you might be in danger or in great pain, so the reply was \
             checked as strictly as possible and places to find help were added."
                .to_owned(),
        );
    }
    story.extend(drift_sentence(stored));
    if let Some(sentence) = refusal_sentence(stored) {
        story.push(sentence.to_owned());
        return story;
    }
    if stored.text("agent") == "embeddings" {
        story.push("Texts were turned into numbers; what they say was not judged.".to_owned());
        return story;
    }
    if outcome == Some(Outcome::Blocked) {
        story.push(block_sentence(stored).to_owned());
        return story;
    }
    if outcome == Some(Outcome::Delivered) && stored.number("attempts") == 0 {
        story.push("A text was looked at; nothing was written in answer to it.".to_owned());
        return story;
    }
    story.extend(mark_sentence(stored).map(str::to_owned));
    story.extend(attempts_sentence(stored));
    if !concerns.is_empty() {
        let list: Vec<_> = concerns.iter().map(|reason| reason.plain()).collect();
        story.push(format!("Objections on the way: a reply {}.", list.join("; a reply ")));
    }
    let count = VoteCount::read_from(stored);
    story.extend(missing_checks(&count));
    story.push(ending_sentence(stored, outcome, &count));
    story
}

/// What stopped the request.
fn block_sentence(stored: &StoredDecision) -> &'static str {
    if stored.number("harm") >= stored.number("threshold") {
        return "The request asked for something that could hurt someone, so no model was asked and you \
                were told so at once.";
    }
    if stored.number("injection") >= 50 {
        return "What was sent tried to change the rules the system works by, so no model was asked and \
                you were told so at once.";
    }
    "What was said belongs to a community whose elders decide about it. Nobody was here who could \
     decide, so it went no further."
}

/// What a community asked to be handled with care and let pass.
fn mark_sentence(stored: &StoredDecision) -> Option<&'static str> {
    let mut rows = array(stored.public("guards")).iter().filter_map(Value::as_array);
    let word = |row: &[Value], at: usize| row.get(at).and_then(Value::as_str).map(str::to_owned);
    let is_marked = |row: &[Value]| {
        word(row, 0).as_deref() == Some("cultural") && word(row, 2).as_deref() == Some("flagged")
    };
    rows.any(is_marked).then_some(
        "It touches on something that a community asks to be handled with care, so it was marked.",
    )
}

/// Who should have looked at the last reply and did not.
fn missing_checks(count: &VoteCount) -> Option<String> {
    let names = count.missing.join(", ");
    match count.missing.len() {
        0 => None,
        1 => Some(format!("One check could not be made and was not counted as safe: {names}.")),
        many => {
            Some(format!("{many} checks could not be made and were not counted as safe: {names}."))
        }
    }
}

/// Why nothing went on whatever was said, if that is how it ended.
fn refusal_sentence(stored: &StoredDecision) -> Option<&'static str> {
    match stored.text("refusal") {
        "consent_required" => Some(
            "You were not known to have agreed to this, so nothing you wrote was sent to a model.",
        ),
        "consent_withdrawn" => {
            Some("You had taken your consent back, so nothing you wrote was sent to a model.")
        }
        "jurisdiction" => {
            Some("What you wrote may not be sent to where the model runs, so it was sent nowhere.")
        }
        _ => None,
    }
}

/// What was noticed across messages, if anything was.
fn drift_sentence(stored: &StoredDecision) -> Option<String> {
    let drift = match stored.text("drift") {
        "yellow" => "What you have written over some time gave reason for a little more care",
        "red" => "What you have written over some time gave reason for much more care",
        _ if stored.public("escalating").and_then(Value::as_bool) == Some(true) => {
            "Your last messages, taken together, sounded more troubling than each alone"
        }
        _ => return None,
    };
    Some(format!("{drift}, so the reply had to pass a stricter check."))
}

fn attempts_sentence(stored: &StoredDecision) -> Option<String> {
    match stored.number("attempts") {
        0 => None,
        1 => Some("One reply was written for you.".into()),
        many => Some(format!("{many} replies were written before it was decided.")),
    }
}

fn ending_sentence(stored: &StoredDecision, outcome: Option<Outcome>, count: &VoteCount) -> String {
    match outcome {
        Some(Outcome::Delivered | Outcome::Redacted) => delivery_sentence(count),
        Some(Outcome::SafeCompletion) if stored.number("attempts") == 0 => {
            "The system answered you itself at once, without asking a model.".into()
        }
        Some(Outcome::SafeCompletion) => {
            "None could be sent with confidence, so the system answered you itself.".into()
        }
        Some(Outcome::Escalated) if is_anything_harmful(stored) => {
            "The checks found the replies harmful, so none was sent and a message took its place."
                .into()
        }
        Some(Outcome::Escalated) => {
            "The checks had more doubts about the replies than trust in them, so none was sent and a \
             message took its place."
                .into()
        }
        Some(Outcome::Exhausted) => {
            "No reply was good enough to be sent, so a message took its place.".into()
        }
        Some(Outcome::GuardUnavailable) => {
            "Too few of the checks could be made, so nothing unchecked was sent.".into()
        }
        Some(Outcome::Held) => "The reply is waiting for a person to look at it.".into(),
        Some(Outcome::Blocked) => "The request was stopped.".into(),
        Some(Outcome::Failed) | None => "The model did not answer.".into(),
    }
}

fn delivery_sentence(count: &VoteCount) -> String {
    let all = count.voters().len();
    let safe = count.safe.len();
    if count.against.is_empty() {
        return format!(
            "{all} independent checks looked at the last one without knowing each other's answers, \
             agreed that it was safe, and it was sent to you."
        );
    }
    format!(
        "{all} independent checks looked at the last one without knowing each other's answers. {safe} \
         of them found it safe, which outweighed the doubts of the rest, and it was sent to you."
    )
}
