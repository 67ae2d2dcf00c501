//! A decision read back from the ledger, for people: "why did you say that?" answered in plain words here
//! and in [`story`], how much each part weighed in [`influence`], what guards did in [`guard_rows`], how a
//! reply was mended in [`correction`], everything as JSON in [`view`], and all that is kept of one person in
//! [`export`]. Nothing here changes anything.
//!
//! **Invariant:** a person gets reasons, never patterns or thresholds: no recipe for evasion.

mod correction;
mod export;
mod guard_rows;
mod influence;
mod reply_words;
mod story;
mod view;

pub use correction::{Concern, Correction, LearningProposal, corrections};
pub use export::{ExportPage, export_page, note_subject_export};
pub use influence::{Contribution, ContributorKind, PanelVote, panel_votes};
pub use view::decision_view;

use crate::appeals::{AppealStanding, AppealView};
use crate::reviews::ReviewStanding;
use conclave_core::{Ballot, Cast, Reason, Vote};
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array, ballot_of, objections};
use conclave_voice::{Language, reason_phrase};
use correction::reasons_named;
use influence::{contributions, last_panel};
use reply_words::is_unsent_result;
use serde::Serialize;
use story::{Story, story};
pub(crate) use story::{StoryKind, language_of};

/// Why a person was told what they were told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What was said; empty when it was erased.
    pub response_text: String,
    /// What shaped it, influences summing to 1.
    pub contributing_agents: Vec<Contribution>,
    /// Who looked at it.
    pub safety_verification: SafetyVerification,
    /// Whether the person may appeal: somebody can rule on it, and nobody has.
    pub user_can_appeal: bool,
    /// The appeal against it, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub appeal: Option<AppealView>,
    /// The language that all of this is in, as a BCP 47 tag.
    pub language: Language,
    /// The whole story, sentence by sentence.
    pub story: Vec<String>,
    /// Where the sentences begin that tell what was objected to, and those that tell what was done.
    #[serde(skip)]
    parts: StoryParts,
}

/// Where the parts of a story begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StoryParts {
    worried: usize,
    done: usize,
}

impl Explanation {
    /// What happened before anything was decided, sentence by sentence.
    #[must_use]
    pub fn what_happened(&self) -> &[String] {
        self.story.get(..self.parts.worried).unwrap_or(&self.story)
    }

    /// What was done then.
    #[must_use]
    pub fn what_was_done(&self) -> &[String] {
        self.story.get(self.parts.done..).unwrap_or_default()
    }
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

/// Explains a stored decision to the person it concerned, in their language.
#[must_use]
pub fn explain(
    stored: &StoredDecision,
    standing: ReviewStanding,
    appeal: &AppealStanding,
) -> Explanation {
    let language = language_of(stored);
    // What was held leaves by the review's result, where consent is asked for again; never from here.
    let delivered = if is_unsent_result(stored, 0) { None } else { stored.words("delivered.0") };
    let delivered = delivered.unwrap_or_default();
    let concerns = concerns(stored);
    let Story { happened, worried, done } = story(stored, &concerns, standing, appeal, language);
    Explanation {
        response_text: delivered["text"].as_str().unwrap_or_default().to_owned(),
        contributing_agents: contributions(stored, language),
        safety_verification: SafetyVerification {
            reviewed_by: VoteCount::read_from(stored).voters(),
            consensus_score: stored.public("score").and_then(Value::as_u64).map(fraction),
            concerns_raised: concerns
                .iter()
                .map(|reason| reason_phrase(*reason, language).to_owned())
                .collect(),
        },
        user_can_appeal: matches!(appeal, AppealStanding::Open),
        appeal: match appeal {
            AppealStanding::Filed(record) => Some(AppealView::for_person(record)),
            AppealStanding::Open | AppealStanding::Closed(_) => None,
        },
        language,
        parts: StoryParts { worried: happened.len(), done: happened.len() + worried.len() },
        story: happened.into_iter().chain(worried).chain(done).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "stored numbers are at most 10,000")]
fn fraction(e4: u64) -> f64 {
    e4 as f64 / 1e4
}

/// The ballots that the last panel cast, those that only watch left out.
pub(crate) fn last_ballots(stored: &StoredDecision) -> Vec<Ballot> {
    let ballots = last_panel(stored).map(|panel| array(panel.get("ballots"))).unwrap_or_default();
    ballots.iter().filter_map(ballot_of).filter(|ballot| !ballot.seat.monitor).collect()
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
        let mut count = Self::default();
        for ballot in last_ballots(stored) {
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
    let mut counted = ballots.filter(Ballot::counts);
    counted.any(|ballot| matches!(ballot.cast, Cast::Voted { vote: Vote::Harmful, .. }))
}

/// What was objected to on the way, each reason once.
pub(crate) fn concerns(stored: &StoredDecision) -> Vec<Reason> {
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
