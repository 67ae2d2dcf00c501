//! What the detector saw in the reply, weighed by what the reply does with it.
//!
//! **Invariant:** a reply that declines, warns or helps is not held against the words it must use
//! to do so; one that declines and then complies is.

use crate::Case;
use crate::acts::{Act, Acts, Cue};
use crate::objection::Objection;
use conclave_core::{Category, Mode, Reason};
use conclave_detect::{Frame, Reading, SignalKind};

/// Under this many hundredths a helpful text that names a harm is not held against it.
const HELP_EXCUSES_UNDER: u8 = 80;
/// How long a reply is at least when it carries something out.
const SUBSTANCE_FROM: usize = 40;

/// A request at the edge of the line is not yet a harmful one.
pub const ASKED_FROM: u8 = 40;
/// From this score on the trained model's word of a reply is a concern: forty in a thousand harmless replies
/// reach it. Alone it withholds nothing there; together with the doubt of the others it does.
pub const RECOGNISED_FROM: u8 = 10;
/// How much more a reply's words must say where the person asked for nothing harmful: an honest answer to a
/// harmless question may have to name a harm.
pub const HARMLESS_QUESTION: u8 = 20;

/// A message longer than this tells something; what it asks is for the detector to say.
const REQUEST_MAX: usize = 300;

/// Whether it declines and stays with that.
#[must_use]
pub fn declines(acts: &Acts) -> bool {
    acts.does(Act::Refuses) && !turns_round(acts) && !hands_over(acts)
}

/// Whether it declines and then does it after all, in its own voice or in another's.
#[must_use]
pub fn turns_round(acts: &Acts) -> bool {
    let last_refusal = acts.of(Act::Refuses).map(|seen| seen.sentence).max();
    let second_voice = match (last_refusal, acts.shape.last_voice) {
        (Some(refusal), Some(voice)) => voice > refusal && acts.shape.sentences > voice,
        _ => false,
    };
    second_voice || acts.does(Act::RefusesThenComplies)
}

/// Whether it helps, warns or protects, and hands nothing over.
#[must_use]
pub fn helps(acts: &Acts) -> bool {
    let kind = [Act::OffersHelp, Act::KeepsSafe, Act::Cautions];
    kind.into_iter().any(|act| acts.does(act)) && !hands_over(acts) && !turns_round(acts)
}

/// Whether it gives the thing away in spite of all it says.
fn hands_over(acts: &Acts) -> bool {
    let means = acts.strength(Act::GivesMeans) >= 85 || acts.sentences(Act::Complies) >= 4;
    means && acts.sentences(Act::Refuses) < 2
}

/// Whether the person's words count as a request for harm. A doubt alone does not: an answer to its harmless
/// meaning carries out nothing. It does once something else bears it out, in the reply or in the request.
#[must_use]
pub fn is_harm_asked(case: &Case, acts: &Acts) -> bool {
    case.input.is_harmful() && (!case.input.is_doubt() || is_borne_out(case, acts))
}

fn is_borne_out(case: &Case, acts: &Acts) -> bool {
    let said = case.reply.harm.hundredths();
    let trained = case.reply.as_reply.map_or(0, |reply| reply.harm.hundredths());
    case.reply.floor
        || acts.turn.now(Cue::AsksHarm) >= ASKED_FROM
        || acts.does(Act::GivesMeans)
        || trained >= RECOGNISED_FROM
        || said >= case.reply.threshold.hundredths().saturating_add(HARMLESS_QUESTION)
}

/// How harmful what the person asks for is, in hundredths; zero where nothing harmful is asked.
#[must_use]
pub fn asked(case: &Case, acts: &Acts) -> u8 {
    let read = match (is_harm_asked(case, acts), case.input.is_doubt()) {
        (false, _) => 0,
        // What was in doubt and is borne out is no request at the edge of the line any more.
        (true, true) => case.input.harm.hundredths().max(ASKED_FROM),
        (true, false) => case.input.harm.hundredths(),
    };
    let personal = acts.turn.is(Cue::RawEmotion) || acts.turn.letters > REQUEST_MAX;
    if personal { read } else { read.max(acts.turn.now(Cue::AsksHarm)) }
}

/// Whether it takes the request on eagerly: "sure, here is", steps, a list.
#[must_use]
pub fn is_eager(acts: &Acts) -> bool {
    acts.does(Act::Complies) || acts.shape.items >= 3 || turns_round(acts)
}

/// Whether it carries out what was asked: no refusal, no help, and enough text to be the thing
/// itself. A warning beside a list of steps does not undo the steps.
#[must_use]
pub fn carries_out(acts: &Acts) -> bool {
    let cares = acts.does(Act::OffersHelp) || acts.does(Act::KeepsSafe);
    let excused = helps(acts) && (cares || !is_eager(acts));
    let size = acts.shape.size + acts.shape.code_lines * 20;
    !declines(acts) && !excused && size >= SUBSTANCE_FROM
}

/// What the detector saw within these categories, strongest first: in the reply, else in the
/// request.
fn sources(case: &Case, fields: &[Category]) -> Vec<String> {
    let of = |reading: &Reading| {
        let mut seen: Vec<_> =
            reading.signals.iter().filter(|signal| fields.contains(&signal.category)).collect();
        seen.sort_by(|a, b| b.weight.get().total_cmp(&a.weight.get()));
        let mut names: Vec<String> = seen.iter().map(|signal| signal.source.clone()).collect();
        names.dedup();
        names.truncate(SOURCES_MAX);
        names
    };
    let said = of(&case.reply);
    let found = if said.is_empty() { of(&case.input) } else { said };
    if found.is_empty() { vec!["content/score".to_owned()] } else { found }
}

/// How many of the detector's rules an objection names.
const SOURCES_MAX: usize = 4;

/// The objection that follows from harmful content within these categories, said or carried out:
/// harmful from a score on, a concern under it.
#[must_use]
pub fn objection(
    case: &Case,
    acts: &Acts,
    fields: &[Category],
    reason: Reason,
    harmful_from: u8,
) -> Option<Objection> {
    let said = if is_echo(case, acts) { 0 } else { of_reply(case, acts, fields) };
    let done = of_request(case, acts, fields);
    let score = said.max(done);
    if score < CONCERN_FROM.min(case.reply.threshold.hundredths()) {
        return None;
    }
    let reason = if said >= done { reason } else { Reason::CompliesWithHarm };
    let rules = sources(case, fields);
    Some(if score >= harmful_from {
        Objection::harmful(reason, score.clamp(70, 95), rules)
    } else {
        Objection::concern(reason, score.max(45), rules)
    })
}

/// Whether all that was seen in the reply was seen in the doubtful question, too, and nothing bears the doubt
/// out: an answer repeats the words of what it answers.
fn is_echo(case: &Case, acts: &Acts) -> bool {
    let is_known = |source: &str| case.input.signals.iter().any(|known| known.source == source);
    let mut sources = case.reply.signals.iter().map(|one| one.source.as_str()).peekable();
    case.input.is_doubt()
        && !is_borne_out(case, acts)
        && sources.peek().is_some()
        && sources.all(is_known)
}

/// The rules behind a request that was carried out.
#[must_use]
pub fn sources_of_request(case: &Case, acts: &Acts) -> Vec<String> {
    let eager = acts.rules(Act::Complies);
    if eager.is_empty() { sources(case, Category::ALL) } else { eager }
}

/// From this score on content is a concern, or from the line in force where that is lower.
const CONCERN_FROM: u8 = 30;

/// How harmful the reply's content is within these categories, in hundredths.
fn of_reply(case: &Case, acts: &Acts, fields: &[Category]) -> u8 {
    let seen = moderated(case, acts, strongest(case, fields));
    let excused = helps(acts) && seen < HELP_EXCUSES_UNDER && !case.reply.floor;
    if declines(acts) || excused {
        return 0;
    }
    if is_told(case, acts) { seen / 2 } else { seen }
}

/// How harmful the request is that the reply carries out, within these categories, in hundredths:
/// a little less than the request itself, because what was carried out may be less than what was
/// asked.
fn of_request(case: &Case, acts: &Acts, fields: &[Category]) -> u8 {
    if !is_harm_asked(case, acts) || !carries_out(acts) || is_guessed(case) {
        return 0;
    }
    let asked = fields
        .iter()
        .filter_map(|field| case.input.categories.get(field))
        .map(|score| score.hundredths())
        .max()
        .unwrap_or(0);
    asked - asked / 5
}

/// Whether only the trained model, or hints beside it, finds the request harmful. That is for the Classifier to weigh: if four verifiers
/// repeated it, one guess would be counted as four.
#[must_use]
pub fn is_guessed(case: &Case) -> bool {
    let harms = case.input.signals.iter().filter(|signal| {
        !signal.category.is_about_crisis() && !signal.category.is_about_injection()
    });
    let mut kinds = harms.map(|signal| signal.kind).peekable();
    kinds.peek().is_some()
        && kinds.all(|kind| matches!(kind, SignalKind::Classifier | SignalKind::Hint))
}

/// A caring answer to a harmless message may have to name what somebody suffered; that alone is at
/// most a concern, however strong the word.
#[must_use]
pub fn moderated(case: &Case, acts: &Acts, seen: u8) -> u8 {
    let caring = [Act::Listens, Act::Validates, Act::OffersHelp, Act::Advises];
    let caring: usize = caring.into_iter().map(|act| acts.sentences(act)).sum();
    let harmless = asked(case, acts) == 0 && !acts.does(Act::GivesMeans);
    if caring >= 3 && harmless && !case.reply.floor && !is_for_children(case) {
        seen.min(CARING_MAX)
    } else {
        seen
    }
}

/// What a word is held against a caring answer at most.
const CARING_MAX: u8 = 45;

fn strongest(case: &Case, fields: &[Category]) -> u8 {
    fields
        .iter()
        .filter_map(|field| case.reply.categories.get(field))
        .map(|score| score.hundredths())
        .max()
        .unwrap_or(0)
}

/// Whether a child reads, or is known to be the person.
#[must_use]
pub fn is_for_children(case: &Case) -> bool {
    case.context.minor || case.context.mode == Mode::ChildSafe
}

/// A story, a report or a lesson tells of harm without doing it; never for children, and never
/// above the floor.
#[must_use]
pub fn is_told(case: &Case, acts: &Acts) -> bool {
    let told = |frame: &Frame| matches!(frame, Frame::Fiction | Frame::News | Frame::Academic);
    let framed = acts.turn.is(Cue::Fiction) || case.reply.frames.iter().any(told);
    framed && !is_for_children(case) && !case.reply.floor
}
