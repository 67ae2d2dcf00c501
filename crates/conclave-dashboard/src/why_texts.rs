//! What the page for the person says of a decision, put into sections.
//!
//! **Invariant:** every word that stands here comes from the catalogue in the person's language, or was written
//! by a person or a model and is shown as text.

use crate::text::{Ink, Text};
use conclave_govern::{AppealConcern, AppealOutcome};
use conclave_people::{
    AppealRecord, ContributorKind, CorrectedReply, Explanation, NoAppeal, PeopleError,
};
use conclave_voice::{AppealChoice, AppealRefusal, Language, WhyText, check_phrase, day_phrase};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// One section of what is told.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) heading: &'static str,
    pub(crate) lead: Option<&'static str>,
    pub(crate) quoted: Option<Text>,
    pub(crate) sentences: Vec<Text>,
    pub(crate) items: Vec<Text>,
}

/// The appeal as the person filed it.
pub(crate) struct FiledPart {
    pub(crate) heading: &'static str,
    pub(crate) lines: Vec<String>,
    pub(crate) words_heading: &'static str,
    pub(crate) words: Text,
}

/// What was ruled.
pub(crate) struct RulingPart {
    pub(crate) heading: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) words: Text,
    pub(crate) corrected_heading: Option<&'static str>,
    pub(crate) corrected: Option<Text>,
    pub(crate) withheld: Option<&'static str>,
}

/// What can be done now.
pub(crate) struct NowPart {
    pub(crate) heading: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) form: Option<AppealForm>,
}

/// Where an appeal is written.
pub(crate) struct AppealForm {
    pub(crate) action: String,
    pub(crate) concern_label: &'static str,
    pub(crate) choices: Vec<Choice>,
    pub(crate) words_label: &'static str,
    pub(crate) words_hint: &'static str,
    /// What was typed before; as it was, so that nothing of it is lost.
    pub(crate) words: String,
    pub(crate) submit: &'static str,
}

/// One thing that may have been wrong.
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) is_chosen: bool,
}

/// What is told of a decision, in the order in which somebody asks: what happened, who looked, what worried
/// them, what was done.
pub(crate) fn parts(told: &Explanation, ink: &mut Ink) -> Vec<Part> {
    let language = told.language;
    let text = |one: WhyText| one.in_language(language);
    let is_silent = told.response_text.is_empty();
    let reply = Part {
        heading: text(WhyText::ReplyHeading),
        lead: is_silent.then(|| text(WhyText::NoReply)),
        quoted: (!is_silent).then(|| ink.text(&told.response_text)),
        ..Part::default()
    };
    let happened = sentences(WhyText::HappenedHeading, told.what_happened(), language, ink);
    let looked = looked(told, ink);
    let heard: Vec<_> = told
        .contributing_agents
        .iter()
        .filter(|one| one.part == ContributorKind::Sensor)
        .map(|one| ink.text(&one.reasoning))
        .collect();
    let heard = Part { heading: text(WhyText::HeardHeading), items: heard, ..Part::default() };
    let done = sentences(WhyText::DoneHeading, told.what_was_done(), language, ink);
    let worried = worried(told, ink);
    let all = [Some(reply), happened, Some(looked), worried, Some(heard), done];
    let is_said = |part: &Part| {
        part.lead.is_some()
            || part.quoted.is_some()
            || !part.sentences.is_empty()
            || !part.items.is_empty()
    };
    all.into_iter().flatten().filter(is_said).collect()
}

fn sentences(heading: WhyText, said: &[String], language: Language, ink: &mut Ink) -> Option<Part> {
    let sentences: Vec<_> = said.iter().map(|line| ink.text(line)).collect();
    let heading = heading.in_language(language);
    (!sentences.is_empty()).then(|| Part { heading, sentences, ..Part::default() })
}

fn looked(told: &Explanation, ink: &mut Ink) -> Part {
    let language = told.language;
    let names = &told.safety_verification.reviewed_by;
    let lead = if names.is_empty() { WhyText::LookedNobody } else { WhyText::LookedLead };
    let item = |name: &String| ink.text(check_phrase(name, language).unwrap_or(name));
    Part {
        heading: WhyText::LookedHeading.in_language(language),
        lead: Some(lead.in_language(language)),
        items: names.iter().map(item).collect(),
        ..Part::default()
    }
}

/// What was objected to; nothing is said where nobody was asked.
fn worried(told: &Explanation, ink: &mut Ink) -> Option<Part> {
    let language = told.language;
    let concerns = &told.safety_verification.concerns_raised;
    if concerns.is_empty() && told.safety_verification.reviewed_by.is_empty() {
        return None;
    }
    let lead = if concerns.is_empty() { WhyText::NoConcerns } else { WhyText::ConcernsLead };
    Some(Part {
        heading: WhyText::ConcernsHeading.in_language(language),
        lead: Some(lead.in_language(language)),
        items: concerns.iter().map(|one| ink.text(one)).collect(),
        ..Part::default()
    })
}

pub(crate) fn filed_part(record: &AppealRecord, language: Language, ink: &mut Ink) -> FiledPart {
    let appeal = &record.appeal;
    let mut lines = vec![day(appeal.filed_ms, language)];
    if appeal.ruling.is_none() {
        lines.push(WhyText::Filed.in_language(language).to_owned());
        lines.push(dated(WhyText::DueBefore, appeal.due_ms, language));
    }
    FiledPart {
        heading: WhyText::FiledHeading.in_language(language),
        lines,
        words_heading: WhyText::OwnWords.in_language(language),
        words: ink.text(&appeal.words),
    }
}

pub(crate) fn ruling_part(
    record: &AppealRecord,
    corrected: &CorrectedReply,
    language: Language,
    ink: &mut Ink,
) -> Option<RulingPart> {
    let ruling = record.appeal.ruling.as_ref()?;
    let outcome = match ruling.outcome {
        AppealOutcome::Upheld => WhyText::Upheld,
        AppealOutcome::UpheldInPart => WhyText::UpheldInPart,
        AppealOutcome::Denied => WhyText::Denied,
    };
    let has_corrected = *corrected != CorrectedReply::Absent;
    Some(RulingPart {
        heading: WhyText::RulingHeading.in_language(language),
        outcome: outcome.in_language(language),
        words: ink.text(&ruling.words),
        corrected_heading: has_corrected.then(|| WhyText::CorrectedHeading.in_language(language)),
        corrected: match corrected {
            CorrectedReply::Shown(text) => Some(ink.text(text)),
            CorrectedReply::Absent | CorrectedReply::Withheld => None,
        },
        withheld: (*corrected == CorrectedReply::Withheld)
            .then(|| WhyText::CorrectedWithheld.in_language(language)),
    })
}

/// The form, with what was typed before.
pub(crate) fn appeal_form(
    action: String,
    concern: Option<AppealConcern>,
    words: String,
    language: Language,
) -> AppealForm {
    let choice = |one: AppealConcern| Choice {
        name: one.as_str(),
        label: choice_label(one).in_language(language),
        is_chosen: concern == Some(one),
    };
    AppealForm {
        action,
        concern_label: WhyText::ConcernLabel.in_language(language),
        choices: AppealConcern::ALL.map(choice).into(),
        words_label: WhyText::WordsLabel.in_language(language),
        words_hint: WhyText::WordsHint.in_language(language),
        words,
        submit: WhyText::Submit.in_language(language),
    }
}

pub(crate) const fn choice_label(concern: AppealConcern) -> AppealChoice {
    match concern {
        AppealConcern::ShouldHaveAnswered => AppealChoice::ShouldHaveAnswered,
        AppealConcern::HarmfulOrWrong => AppealChoice::HarmfulOrWrong,
        AppealConcern::Misunderstood => AppealChoice::Misunderstood,
        AppealConcern::Other => AppealChoice::Other,
    }
}

/// Why nothing can be done, where nothing can.
pub(crate) const fn no_appeal(why: NoAppeal) -> Option<WhyText> {
    match why {
        NoAppeal::StillWaiting => Some(WhyText::StillWaiting),
        NoAppeal::NobodyThere => Some(WhyText::NobodyThere),
        NoAppeal::NothingToReview => Some(WhyText::NothingToReview),
        NoAppeal::Erased | NoAppeal::Filed => None,
    }
}

/// Why an appeal was not taken in; `None` where the house is in trouble.
pub(crate) const fn refusal_of(error: &PeopleError) -> Option<AppealRefusal> {
    match error {
        PeopleError::Unfit(_) => Some(AppealRefusal::TooLong),
        PeopleError::NoAppeal(NoAppeal::Filed) => Some(AppealRefusal::Filed),
        PeopleError::NoAppeal(_) => Some(AppealRefusal::Impossible),
        PeopleError::TooMany(_) => Some(AppealRefusal::TooMany),
        _ => None,
    }
}

/// A sentence that ends with a day.
pub(crate) fn dated(before: WhyText, ms: u64, language: Language) -> String {
    let (before, day) = (before.in_language(language), day(ms, language));
    match language {
        Language::English => format!("{before} {day}."),
        Language::Japanese => format!("{before}{day}"),
    }
}

fn day(ms: u64, language: Language) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let date = time.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC).date();
    day_phrase(date.year(), date.month(), date.day(), language)
}
