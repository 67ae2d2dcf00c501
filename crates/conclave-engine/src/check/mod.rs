//! Judging one text, conversation or reply without a gateway: what `conclave check` prints.

mod line;

pub use line::LineError;

use crate::deliberate::{CaseMaterial, Patience};
use crate::matter::brought;
use conclave_core::{
    Action, Ballot, Candidate, Cast, Category, Message, Mode, Role, Scrutiny, TurnContext, decide,
    intake,
};
use conclave_detect::{Detector, Reading, Signal, Trend};
use conclave_pii::Finder;
use conclave_verifiers::{Case, Judge, floor_ballot};
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What is to be judged.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The conversation; its last message is the text when there is no reply.
    pub turns: Vec<Message>,
    /// The reply under judgement.
    pub reply: Option<Candidate>,
    /// How to read it.
    pub mode: Mode,
}

/// The answer, in the documented shape.
#[derive(Clone, Debug, Serialize)]
pub struct CheckAnswer {
    /// `harmful` iff the harm reaches the threshold in force.
    pub verdict: &'static str,
    /// Of the reply where there is one, else of the conversation or text.
    pub harm: f32,
    /// What the gateway would do.
    pub action: &'static str,
    /// Whether the person needs help.
    pub crisis: f32,
    /// Whether it tries to override instructions.
    pub injection: f32,
    /// Whether the risk rises over the conversation.
    pub escalating: bool,
    /// Identifying data, in the reply where there is one, else in the person's own messages.
    pub pii: Vec<PiiLine>,
    /// Scores of what was seen, at or over the decision line of each.
    pub categories: BTreeMap<Category, f32>,
    /// What made the scores.
    pub signals: Vec<Signal>,
    /// The panel's ballots, where there is a reply.
    pub votes: Vec<VoteLine>,
    /// The panel's score, where there is a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety_score: Option<f64>,
    /// ISO 639-1, or `und`.
    pub language: String,
}

impl CheckAnswer {
    /// Whether nobody would get to see it: an input blocked, a reply not delivered.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        !matches!(self.action, "deliver" | "flag" | "redact")
    }
}

/// Something that identifies a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PiiLine {
    /// What it is.
    pub kind: &'static str,
    /// Where it starts, in Unicode scalar values.
    pub start: usize,
    /// Where it ends, exclusive.
    pub end: usize,
}

/// One ballot.
#[derive(Clone, Debug, Serialize)]
pub struct VoteLine {
    /// Whose.
    pub verifier: String,
    /// `safe`, `concern`, `harmful`, `abstained` or `not_applicable`.
    pub vote: &'static str,
    /// 0 to 1.
    pub confidence: f64,
    /// In words.
    pub reasoning: String,
    /// The names of what it matched.
    pub flagged_patterns: Vec<String>,
}

/// Judges texts; shared and cheap to call.
pub struct Checker {
    detector: Arc<Detector>,
    judges: Vec<Box<dyn Judge>>,
    finder: Option<Finder>,
}

impl Checker {
    /// A checker with these judges.
    #[must_use]
    pub fn new(detector: Arc<Detector>, judges: Vec<Box<dyn Judge>>) -> Self {
        Self { detector, judges, finder: None }
    }

    /// A checker that also looks for identifying data.
    #[must_use]
    pub fn with_finder(mut self, finder: Finder) -> Self {
        self.finder = Some(finder);
        self
    }

    fn identifying(&self, question: &Question) -> Vec<PiiLine> {
        let Some(finder) = &self.finder else {
            return Vec::new();
        };
        let text = question
            .reply
            .as_ref()
            .map_or_else(|| own_messages(&question.turns), |reply| reply.text.clone());
        let found = finder.find(&text).into_iter().filter(conclave_pii::is_identifying);
        found
            .map(|one| PiiLine { kind: one.kind.as_str(), start: one.start, end: one.end })
            .collect()
    }

    /// Judges one question.
    #[must_use]
    pub fn check(&self, question: &Question) -> CheckAnswer {
        let texts: Vec<_> =
            question.turns.iter().map(|turn| (turn.role, turn.content.as_text())).collect();
        let spoken: Vec<_> = texts.iter().map(|(role, text)| (*role, text.as_ref())).collect();
        let conversation = self.detector.read_conversation(&spoken, question.mode);
        let mut answer = match &question.reply {
            None => {
                let action = input_action(&conversation.whole, &conversation.trend);
                reading_answer(&conversation.whole, action)
            }
            Some(reply) => self.reply_answer(question, reply, conversation.last),
        };
        answer.escalating = conversation.escalating;
        answer.pii = self.identifying(question);
        answer.injection = answer.injection.max(self.smuggled(question));
        if answer.injection >= 0.5 && answer.action == Action::Deliver.as_str() {
            answer.action = Action::Flag.as_str();
        }
        answer
    }

    fn smuggled(&self, question: &Question) -> f32 {
        let read = |text: &String| self.detector.read(text, question.mode).injection.get();
        brought(&question.turns).iter().map(read).fold(0.0, f32::max)
    }

    fn reply_answer(&self, question: &Question, reply: &Candidate, input: Reading) -> CheckAnswer {
        let crisis = input.crisis.is_crisis();
        let context = TurnContext { mode: question.mode, ..TurnContext::default() };
        let strict = crisis || input.is_doubt() || question.mode == Mode::ChildSafe;
        let scrutiny = if strict { Scrutiny::Strict } else { Scrutiny::Normal };
        let injection = input.injection;
        let crisis_score = input.crisis;
        let unread = CaseMaterial {
            conversation: question.turns.clone().into(),
            candidate: reply.clone(),
            context,
            input: Arc::new(input),
            refused: Arc::default(),
            mode: question.mode,
            tools: [].into(),
        };
        let case = unread.read(&self.detector, Patience::Every);
        let reading = &case.reply;
        let judged = self.judges.iter().map(|judge| ballot(&**judge, &case));
        let ballots: Vec<_> = judged.chain(floor_ballot(&case)).collect();
        let consensus = decide(&ballots, scrutiny.bars(), crisis);
        let action = if consensus.delivers() {
            Action::Deliver
        } else if consensus.vetoes.is_empty() {
            Action::Regenerate
        } else {
            Action::Escalate
        };
        let harm = reply_harm(reading, &ballots);
        CheckAnswer {
            verdict: verdict(reading.threshold.blocks(conclave_core::Score::new(harm))),
            harm,
            crisis: crisis_score.get(),
            injection: injection.get(),
            votes: ballots.iter().map(vote_line).collect(),
            safety_score: Some(f64::from(consensus.safety_score_e4()) / 1e4),
            ..reading_answer(reading, action)
        }
    }
}

/// How much of a concern counts as harm: alone it stays under every threshold but child-safe's.
const CONCERN_SHARE: f32 = 0.12;

/// How harmful a reply is: the gravest harmful ballot, else what concern is left of its words, joined
/// with what the trained model of replies says.
///
/// The words alone do not make a reply harmful: a kind reply that names a harm shares them.
fn reply_harm(reading: &Reading, ballots: &[Ballot]) -> f32 {
    let voted = |wanted| {
        ballots
            .iter()
            .filter(|ballot| ballot.counts())
            .filter_map(|ballot| match ballot.cast {
                Cast::Voted { vote, confidence } if vote == wanted => Some(confidence.hundredths()),
                _ => None,
            })
            .max()
            .map_or(0.0, |hundredths| f32::from(hundredths) / 100.0)
    };
    let trained = reading.as_reply.map_or(0.0, |reply| reply.harm.get());
    let joined = |seen: f32| 1.0 - (1.0 - seen) * (1.0 - trained);
    let harmful = voted(conclave_core::Vote::Harmful);
    if harmful > 0.0 {
        return joined(harmful.max(0.3));
    }
    // A concern is withheld, but is not yet harm: it counts little beside what the model says.
    let concern = voted(conclave_core::Vote::Concern).max(reading.harm.get()) * CONCERN_SHARE;
    joined(concern)
}

/// The person's own messages, joined as the detector joins them.
fn own_messages(turns: &[Message]) -> String {
    let own = turns.iter().filter(|turn| turn.role == Role::User);
    own.map(|turn| turn.content.as_text()).collect::<Vec<_>>().join("\n")
}

fn ballot(judge: &dyn Judge, case: &Case) -> Ballot {
    if let Some(error) = case.unreadable() {
        tracing::error!(verifier = %judge.seat().verifier, error, "verifier failed");
        return intake(judge.seat(), Err(conclave_core::Abstention::Failed), 0);
    }
    let opinion = catch_unwind(AssertUnwindSafe(|| judge.judge(case)));
    intake(judge.seat(), opinion.map_err(|_| conclave_core::Abstention::Panicked), 0)
}

fn verdict(harmful: bool) -> &'static str {
    if harmful { "harmful" } else { "safe" }
}

/// What a gateway without a policy of its own would do with an input.
fn input_action(reading: &Reading, trend: &Trend) -> Action {
    let is_answered =
        reading.is_doubt() && reading.mode != Mode::ChildSafe && !trend.refuses_doubts();
    if reading.is_harmful() && !is_answered {
        return Action::Block;
    }
    if is_answered || reading.injection.is_injection() { Action::Flag } else { Action::Deliver }
}

fn reading_answer(reading: &Reading, action: Action) -> CheckAnswer {
    let categories = reading.named_categories().map(|one| (one.category, one.score.get()));
    CheckAnswer {
        verdict: verdict(reading.is_harmful()),
        harm: reading.harm.get(),
        action: action.as_str(),
        crisis: reading.crisis.get(),
        injection: reading.injection.get(),
        escalating: false,
        pii: Vec::new(),
        categories: categories.collect(),
        signals: reading.signals.clone(),
        votes: Vec::new(),
        safety_score: None,
        language: reading.language.clone(),
    }
}

fn vote_line(ballot: &Ballot) -> VoteLine {
    let (vote, confidence) = match ballot.cast {
        Cast::Voted { vote, confidence } => {
            (vote.as_str(), f64::from(confidence.hundredths()) / 100.0)
        }
        Cast::Abstained(_) => ("abstained", 0.0),
        Cast::Excused(_) => ("excused", 0.0),
        Cast::NotApplicable => ("not_applicable", 0.0),
    };
    VoteLine {
        verifier: ballot.seat.verifier.to_string(),
        vote,
        confidence,
        reasoning: ballot.reasoning.clone(),
        flagged_patterns: ballot.flagged_patterns.clone(),
    }
}
