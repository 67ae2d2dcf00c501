//! What happened in a decision, sentence by sentence, as `conclave-voice` words it.
//!
//! **Invariant:** every sentence follows from what is stored and from where the review stands; nothing is
//! said that may not have happened.

use super::guard_rows::{guard_rows, stopping_guard};
use super::{VoteCount, is_anything_harmful};
use crate::appeals::AppealStanding;
use crate::reviews::ReviewStanding;
use conclave_core::{Disposition, GuardCode, Outcome, Phase, Reason, Score};
use conclave_govern::AppealOutcome;
use conclave_ledger::Value;
use conclave_ports::{StoredDecision, array};
use conclave_voice::{
    ExplanationSentence as Sentence, FixedSentence as Fixed, Language, reason_phrase,
};

/// The language of the person: the one they asked for, else the one they write.
pub(crate) fn language_of(stored: &StoredDecision) -> Language {
    let who = stored.words("who").unwrap_or_default();
    let reading = stored.words("reading").unwrap_or_default();
    let asked = who["context"]["language"].as_str();
    asked.or_else(|| reading["language"].as_str()).map_or_else(Language::default, Language::of_tag)
}

/// What kind of matter was decided.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoryKind {
    Conversation,
    GivenReply,
    Embeddings,
    Reading,
    RecipeRun,
}

impl StoryKind {
    pub(crate) fn read_from(stored: &StoredDecision) -> Self {
        if stored.public("recipe").is_some() {
            return Self::RecipeRun;
        }
        match stored.text("agent") {
            "verify" => Self::GivenReply,
            "embeddings" => Self::Embeddings,
            "moderations" => Self::Reading,
            _ => Self::Conversation,
        }
    }
}

/// What the sentences of a story are chosen by.
struct Facts<'a> {
    stored: &'a StoredDecision,
    kind: StoryKind,
    outcome: Option<Outcome>,
    /// How often a model was asked.
    asked: u64,
    /// How often it answered.
    written: u64,
    /// Whether parts of a reply left before the whole was decided.
    has_sent_parts: bool,
    /// Whether the last thing that a model did was to fall silent.
    is_broken_off: bool,
}

impl<'a> Facts<'a> {
    fn read_from(stored: &'a StoredDecision) -> Self {
        let choices = stored.choices();
        let has_failed = |attempt: &Value| attempt.get("failure").and_then(Value::as_str).is_some();
        let attempts = choices.iter().flat_map(|choice| array(choice.get("attempts")));
        let failures = attempts.clone().filter(|attempt| has_failed(attempt)).count() as u64;
        // A panel may sit on an extract that no model wrote, so the attempts listed are no count.
        let asked = stored.number("attempts");
        Self {
            stored,
            kind: StoryKind::read_from(stored),
            outcome: Outcome::parse(stored.text("outcome")),
            asked,
            written: asked.saturating_sub(failures),
            has_sent_parts: choices.iter().any(|one| !array(one.get("windows")).is_empty()),
            is_broken_off: attempts.last().is_some_and(has_failed),
        }
    }

    fn is_true(&self, name: &str) -> bool {
        self.stored.public(name).and_then(Value::as_bool) == Some(true)
    }
}

/// What is told, in three parts.
pub(super) struct Story {
    /// What happened before anything was decided.
    pub happened: Vec<String>,
    /// What was objected to.
    pub worried: Vec<String>,
    /// What was done then.
    pub done: Vec<String>,
}

/// The whole story.
pub(super) fn story(
    stored: &StoredDecision,
    concerns: &[Reason],
    standing: ReviewStanding,
    appeal: &AppealStanding,
    language: Language,
) -> Story {
    let facts = Facts::read_from(stored);
    let mut happened = circumstances(&facts);
    let (mut worried, mut done) = (Vec::new(), Vec::new());
    if let Some(only) = whole_answer(&facts) {
        done.push(only.into());
    } else {
        happened.extend(marks(&facts));
        happened.extend(writing(&facts));
        if !concerns.is_empty() {
            let phrases = concerns.iter().map(|one| reason_phrase(*one, language).to_owned());
            worried.push(Sentence::Objections(phrases.collect()));
        }
        let count = VoteCount::read_from(stored);
        if !count.missing.is_empty() {
            worried.push(Sentence::MissingChecks(count.missing.clone()));
        }
        done.extend(ending(&facts, &count));
        done.extend(ruling(&facts, standing));
    }
    done.extend(appealed(appeal));
    let told = |sentences: Vec<Sentence>| {
        sentences.iter().map(|sentence| sentence.in_language(language)).collect()
    };
    Story { happened: told(happened), worried: told(worried), done: told(done) }
}

/// What came of it that the person disagreed.
fn appealed(appeal: &AppealStanding) -> Vec<Sentence> {
    let AppealStanding::Filed(record) = appeal else { return Vec::new() };
    let Some(ruling) = &record.appeal.ruling else { return vec![Fixed::AppealWaits.into()] };
    let found = match ruling.outcome {
        AppealOutcome::Upheld => Fixed::AppealUpheld,
        AppealOutcome::UpheldInPart => Fixed::AppealUpheldInPart,
        AppealOutcome::Denied => Fixed::AppealDenied,
    };
    let corrected = ruling.corrected.is_some().then_some(Fixed::AppealCorrected);
    [Some(found), corrected].into_iter().flatten().map(Sentence::from).collect()
}

fn circumstances(facts: &Facts<'_>) -> Vec<Sentence> {
    let drift = match facts.stored.text("drift") {
        "yellow" => Some(Fixed::DriftYellow),
        "red" => Some(Fixed::DriftRed),
        _ => facts.is_true("escalating").then_some(Fixed::Escalating),
    };
    let erased = facts.stored.is_erased().then_some(Fixed::Erased);
    let crisis = facts.is_true("crisis").then(|| crisis(facts));
    let care = facts.is_true("care").then_some(Fixed::CareOffered);
    [erased, crisis, care, drift].into_iter().flatten().map(Sentence::from).collect()
}

/// What was done for somebody who seemed to be in danger. Only those who are talked to get help added.
fn crisis(facts: &Facts<'_>) -> Fixed {
    let is_talk = facts.kind == StoryKind::Conversation;
    match facts.outcome {
        Some(Outcome::SafeCompletion) if is_talk => Fixed::CrisisAnswered,
        Some(Outcome::Delivered | Outcome::Redacted) if is_talk => Fixed::CrisisChecked,
        _ => Fixed::CrisisNoticed,
    }
}

/// The one sentence that says it all, where no reply was to be judged.
fn whole_answer(facts: &Facts<'_>) -> Option<Fixed> {
    if facts.asked > 0 {
        return None;
    }
    match facts.stored.text("refusal") {
        "consent_required" => return Some(Fixed::ConsentRequired),
        "consent_withdrawn" => return Some(Fixed::ConsentWithdrawn),
        "jurisdiction" => return Some(Fixed::Jurisdiction),
        _ => {}
    }
    match (facts.outcome, facts.kind) {
        (Some(Outcome::Delivered), StoryKind::Embeddings) => Some(Fixed::Embeddings),
        (_, StoryKind::Reading) => Some(Fixed::LookedAt),
        (Some(Outcome::Blocked), _) if !is_stopped_after(facts) => Some(block(facts)),
        _ => None,
    }
}

/// Whether a guard stopped what was written, and not what was asked.
fn is_stopped_after(facts: &Facts<'_>) -> bool {
    let stopping = stopping_guard(facts.stored, facts.outcome);
    stopping.is_some_and(|row| row.phase == Phase::After.as_str())
}

/// What stopped a request that no model was asked about.
fn block(facts: &Facts<'_>) -> Fixed {
    let stored = facts.stored;
    let code = stopping_guard(stored, facts.outcome).map(|row| row.code);
    let is = |one: GuardCode| code == Some(one.as_str());
    let threshold = stored.number("threshold");
    // A doubt is over the line too and may be stopped for another reason, so that the numbers speak only
    // where no guard is named.
    let is_over = threshold > 0 && stored.number("harm") >= threshold;
    if is(GuardCode::Harmful) || (code.is_none() && is_over) {
        Fixed::HarmBlocked
    } else if is(GuardCode::Injection) || is_override(stored) {
        Fixed::InjectionBlocked
    } else if is_of_community(code) {
        Fixed::NobodyDecides
    } else {
        Fixed::StoppedBefore
    }
}

/// Whether the input was read as an attempt to change the rules.
fn is_override(stored: &StoredDecision) -> bool {
    stored.number("injection") >= u64::from(Score::DECISION_POINT)
}

fn is_of_community(code: Option<&str>) -> bool {
    let codes = [GuardCode::Cultural, GuardCode::Sacred, GuardCode::NoElders];
    codes.iter().any(|one| code == Some(one.as_str()))
}

/// What was marked or replaced on the way.
fn marks(facts: &Facts<'_>) -> Vec<Sentence> {
    let rows = guard_rows(facts.stored);
    let is_flagged = |code| rows.iter().any(|row| row.is(Disposition::Flagged, code));
    let is_redacted = |phase| rows.iter().any(|row| row.is_at(Disposition::Redacted, phase));
    [
        is_flagged(GuardCode::Cultural).then_some(Fixed::CommunityMark),
        is_flagged(GuardCode::Doubt).then_some(Fixed::DoubtMark),
        is_flagged(GuardCode::History).then_some(Fixed::HistoryMark),
        (is_flagged(GuardCode::Injection) || is_override(facts.stored))
            .then_some(Fixed::InjectionMark),
        is_redacted(Phase::Before).then_some(Fixed::RedactedBefore),
        is_redacted(Phase::After).then_some(Fixed::RedactedAfter),
    ]
    .into_iter()
    .flatten()
    .map(Sentence::from)
    .collect()
}

/// What came of asking a model.
fn writing(facts: &Facts<'_>) -> Option<Sentence> {
    match facts.written {
        _ if facts.asked == 0 => None,
        0 if facts.has_sent_parts => None,
        0 => Some(Fixed::ModelDown.into()),
        _ if facts.kind == StoryKind::GivenReply => Some(Fixed::Given.into()),
        written => Some(Sentence::Written(written)),
    }
}

fn ending(facts: &Facts<'_>, count: &VoteCount) -> Vec<Sentence> {
    let one = match facts.outcome {
        Some(Outcome::Delivered | Outcome::Redacted) => return delivery(facts, count),
        _ if facts.has_sent_parts && facts.is_broken_off => Fixed::BrokenOff,
        _ if facts.has_sent_parts => Fixed::PartsSent,
        Some(Outcome::Blocked) => {
            let stopping = stopping_guard(facts.stored, facts.outcome);
            let is_of_community = is_of_community(stopping.map(|row| row.code));
            if is_of_community { Fixed::NobodyDecides } else { Fixed::StoppedAfter }
        }
        Some(Outcome::SafeCompletion | Outcome::Escalated | Outcome::Exhausted)
            if facts.kind == StoryKind::GivenReply =>
        {
            Fixed::ReportedUnfit
        }
        Some(Outcome::SafeCompletion) if facts.asked == 0 => Fixed::AnsweredAtOnce,
        Some(Outcome::SafeCompletion) => Fixed::AnsweredInstead,
        Some(Outcome::Escalated) if is_anything_harmful(facts.stored) => Fixed::FoundHarm,
        Some(Outcome::Escalated) => Fixed::FoundDoubt,
        Some(Outcome::Exhausted) => Fixed::NoneGoodEnough,
        Some(Outcome::GuardUnavailable) => Fixed::TooFewChecks,
        // That the model did not answer is said already.
        Some(Outcome::Failed) | None if facts.asked > 0 && facts.written == 0 => return Vec::new(),
        Some(Outcome::Failed) | None => Fixed::Unfinished,
        // What is held is told by its review.
        Some(Outcome::Held) => return Vec::new(),
    };
    vec![one.into()]
}

fn delivery(facts: &Facts<'_>, count: &VoteCount) -> Vec<Sentence> {
    let all = count.voters().len();
    if all == 0 {
        return vec![Fixed::Returned.into()];
    }
    let judged = match count.against.len() {
        0 => Sentence::Agreed(all),
        _ => Sentence::Outweighed { all, safe: count.safe.len() },
    };
    let is_given = facts.kind == StoryKind::GivenReply;
    let sent = if is_given { Fixed::Reported } else { Fixed::Sent };
    vec![judged, sent.into()]
}

/// How people decided about what was withheld.
fn ruling(facts: &Facts<'_>, standing: ReviewStanding) -> Vec<Sentence> {
    let mut ruling = match standing {
        _ if facts.outcome.is_some_and(Outcome::is_verified) => Vec::new(),
        ReviewStanding::Unasked if facts.outcome != Some(Outcome::Held) => Vec::new(),
        ReviewStanding::Unasked | ReviewStanding::Waiting => vec![Fixed::Waiting],
        ReviewStanding::Approved => vec![Fixed::Approved],
        ReviewStanding::Edited => vec![Fixed::Edited],
        ReviewStanding::Rejected => vec![Fixed::Rejected],
    };
    let is_written = facts.written > 0 || facts.kind == StoryKind::RecipeRun;
    match ruling.last() {
        // What was erased cannot be fetched, whatever people approved.
        _ if facts.stored.is_erased() => {}
        Some(Fixed::Approved) if !is_written => ruling.push(Fixed::NothingToFetch),
        Some(Fixed::Approved | Fixed::Edited) => ruling.push(Fixed::Fetchable),
        _ => {}
    }
    ruling.into_iter().map(Sentence::from).collect()
}
