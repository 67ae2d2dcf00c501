//! What the detector saw in the reply, weighed by what the reply does with it.
//!
//! **Invariant:** a reply that declines, warns or helps is not held against the words it must use to do
//! so; one that declines and then complies is.

use crate::Case;
use crate::acts::{Act, Acts};
use conclave_core::{Category, Mode};
use conclave_detect::Frame;

/// Under this many hundredths a helpful text that names a harm is not held against it.
const HELP_EXCUSES_UNDER: u8 = 80;
/// How long a reply is at least when it carries something out.
const SUBSTANCE_FROM: usize = 40;

/// Whether it declines and stays with that.
#[must_use]
pub fn declines(acts: &Acts) -> bool {
    acts.does(Act::Refuses) && !acts.does(Act::RefusesThenComplies) && !hands_over(acts)
}

/// Whether it helps, warns or protects, and hands nothing over.
#[must_use]
pub fn helps(acts: &Acts) -> bool {
    let kind = [Act::OffersHelp, Act::KeepsSafe, Act::Cautions];
    kind.into_iter().any(|act| acts.does(act)) && !hands_over(acts)
}

/// Whether it gives the thing away in spite of all it says.
fn hands_over(acts: &Acts) -> bool {
    let means = acts.strength(Act::GivesMeans) >= 85 || acts.sentences(Act::Complies) >= 4;
    means && acts.sentences(Act::Refuses) < 2
}

/// Whether it carries out what was asked: no refusal, and enough text to be the thing itself.
#[must_use]
pub fn carries_out(acts: &Acts) -> bool {
    !declines(acts) && acts.shape.size + acts.shape.code_lines * 20 >= SUBSTANCE_FROM
}

/// How harmful the reply's content is within these categories, in hundredths.
#[must_use]
pub fn of_reply(case: &Case, acts: &Acts, fields: &[Category]) -> u8 {
    let seen = strongest(case, fields);
    if declines(acts) || (helps(acts) && seen < HELP_EXCUSES_UNDER) {
        return 0;
    }
    if is_told(case) { seen / 2 } else { seen }
}

/// How harmful the request is that the reply carries out, within these categories, in hundredths.
#[must_use]
pub fn of_request(case: &Case, acts: &Acts, fields: &[Category]) -> u8 {
    if !case.input.is_harmful() || !carries_out(acts) || helps(acts) {
        return 0;
    }
    fields
        .iter()
        .filter_map(|field| case.input.categories.get(field))
        .map(|score| score.hundredths())
        .max()
        .unwrap_or(0)
}

fn strongest(case: &Case, fields: &[Category]) -> u8 {
    fields
        .iter()
        .filter_map(|field| case.reply.categories.get(field))
        .map(|score| score.hundredths())
        .max()
        .unwrap_or(0)
}

/// A story, a report or a lesson tells of harm without doing it; never for children.
fn is_told(case: &Case) -> bool {
    case.context.mode != Mode::ChildSafe
        && !case.context.minor
        && case
            .reply
            .frames
            .iter()
            .any(|frame| matches!(frame, Frame::Fiction | Frame::News | Frame::Academic))
        && !case.reply.floor
}
