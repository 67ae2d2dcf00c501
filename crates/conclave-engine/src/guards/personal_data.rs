//! What identifies people: kept from models, put back for the person it belongs to, and taken out of what
//! a reply brings up by itself.
//!
//! **Invariant:** what was replaced before a model was asked is put back only in the reply to the same
//! request, and only where policy says so.
//! **Invariant:** what a person wrote themselves, and the numbers of crisis lines, are nothing a reply
//! brings up by itself.

use super::{Examined, Guard, GuardEffect, GuardError};
use crate::engine::Engine;
use crate::matter::{Matter, Purpose};
use conclave_core::{Disposition, Finding, GuardAction, GuardCode, GuardKind, Phase};
use conclave_govern::{MessageData, ReplyData};
use conclave_pii::{Class, Classes, Finder, KnownNames, Redactor, Tokens};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::OnceLock;

pub(super) struct PersonalDataGuard;

/// Finds what identifies people. Large, so that it is made when the first matter needs it.
#[derive(Default)]
pub struct PersonalData {
    finder: OnceLock<Result<Finder, String>>,
}

impl PersonalData {
    /// The finder.
    ///
    /// # Errors
    /// When the data it is made of is broken.
    pub fn finder(&self) -> Result<&Finder, GuardError> {
        let made = self.finder.get_or_init(|| Finder::builtin().map_err(|error| error.to_string()));
        made.as_ref().map_err(|why| GuardError(why.clone()))
    }
}

impl Guard for PersonalDataGuard {
    fn kind(&self) -> GuardKind {
        GuardKind::PersonalData
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        let examined = match (&matter.purpose, phase) {
            (Purpose::Recipe(_), _) => look_at_run(engine, matter, phase),
            (Purpose::Chat, Phase::Before) => look_at_messages(engine, matter),
            (Purpose::Chat, Phase::After) => look_at_replies(engine, matter),
            _ => Ok(None),
        };
        ready(examined).boxed()
    }
}

/// Material and results of a recipe: tokens stay in both.
fn look_at_run(
    engine: &Engine,
    matter: &Matter,
    phase: Phase,
) -> Result<Option<Examined>, GuardError> {
    let Some(rule) = matter.rule(GuardKind::PersonalData) else { return Ok(None) };
    // An intake makes its own tokens, and no model sees its input.
    if phase == Phase::Before && matter.model.is_none() {
        return Ok(None);
    }
    let blocks = rule.action == GuardAction::Block;
    replace_all(engine, matter, phase, blocks).map(Some)
}

fn look_at_messages(engine: &Engine, matter: &Matter) -> Result<Option<Examined>, GuardError> {
    let blocks = match matter.policy().personal_data.messages {
        MessageData::Pass => return Ok(None),
        MessageData::Redact => false,
        MessageData::Block => true,
    };
    replace_all(engine, matter, Phase::Before, blocks).map(Some)
}

fn replace_all(
    engine: &Engine,
    matter: &Matter,
    phase: Phase,
    blocks: bool,
) -> Result<Examined, GuardError> {
    let finder = engine.personal_data.finder()?;
    let texts = matter.content.texts(phase);
    let speakers = matter.content.speakers(phase);
    let names = known_names(finder, &texts, &speakers);
    let redactor = Redactor::new(finder).with_names(&names);
    let mut tokens = matter.tokens.clone();
    let known = tokens.len();
    texts.iter().for_each(|text| tokens.reserve(text));
    let mut redact = |text: &Cow<'_, str>| {
        if speakers.contains(text) {
            redactor.redact_speaker(text, &mut tokens)
        } else {
            redactor.redact_document(text, &mut tokens)
        }
    };
    let changed: Vec<_> = texts.iter().map(&mut redact).collect();
    let kind = GuardKind::PersonalData;
    if changed.iter().all(Option::is_none) {
        return Ok(Finding::passed(kind, phase).into());
    }
    let why = format!("{} values identify somebody.", tokens.len().saturating_sub(known).max(1));
    let code = GuardCode::PersonalData;
    if blocks {
        return Ok(Finding::new(kind, phase, Disposition::Blocked, code, why).into());
    }
    let finding = Finding::new(kind, phase, Disposition::Redacted, code, why);
    Ok(Examined::with(finding, GuardEffect::Replace { texts: changed, tokens }))
}

/// The names of everybody who speaks, from all texts before any of them is searched: whoever is named in one
/// is spoken of in another.
fn known_names(
    finder: &Finder,
    texts: &[Cow<'_, str>],
    speakers: &HashSet<Cow<'_, str>>,
) -> KnownNames {
    let mut names = KnownNames::new();
    texts.iter().for_each(|text| finder.learn_speakers(text, &mut names));
    speakers.iter().for_each(|speaker| finder.learn_speaker(speaker, &mut names));
    names
}

fn look_at_replies(engine: &Engine, matter: &Matter) -> Result<Option<Examined>, GuardError> {
    let Some(outgoing) = Outgoing::for_matter(engine, matter) else { return Ok(None) };
    let mut tokens = matter.tokens.clone();
    let mut is_redacted = false;
    let mut texts = Vec::new();
    for text in matter.content.texts(Phase::After) {
        let sent = outgoing.prepare(&text, &mut tokens)?;
        is_redacted |= sent.is_redacted;
        texts.push((sent.text != *text).then(|| sent.text.into_owned()));
    }
    let kind = GuardKind::PersonalData;
    let finding = if is_redacted {
        let why = "A reply brought up data that identifies somebody.";
        let code = GuardCode::PersonalData;
        Finding::new(kind, Phase::After, Disposition::Redacted, code, why)
    } else {
        Finding::passed(kind, Phase::After)
    };
    // What a reply brought up stays in the sealed candidate; there is no way back from its tokens.
    let tokens = matter.tokens.clone();
    Ok(Some(Examined::with(finding, GuardEffect::Replace { texts, tokens })))
}

/// How text of a reply to one matter is prepared for leaving.
struct Outgoing<'a> {
    replies: ReplyData,
    /// What stands behind tokens of the request, to be put back; empty where it is not.
    restored: Cow<'a, Tokens>,
    /// Put together when the first value is found: most replies hold none.
    heard: OnceCell<Heard>,
    engine: &'a Engine,
    matter: &'a Matter,
}

/// Text that may leave.
struct SentText<'a> {
    text: Cow<'a, str>,
    is_redacted: bool,
}

impl<'a> Outgoing<'a> {
    /// `None` where replies to the matter leave as they are.
    fn for_matter(engine: &'a Engine, matter: &'a Matter) -> Option<Self> {
        let policy = &matter.policy().personal_data;
        let replies = policy.reply_data();
        let restores = policy.restore && !matter.tokens.is_empty();
        if replies == ReplyData::Pass && !restores {
            return None;
        }
        let restored = if restores { Cow::Borrowed(&matter.tokens) } else { Cow::default() };
        Some(Self { replies, restored, heard: OnceCell::new(), engine, matter })
    }

    /// Replaces what the reply brings up by itself, then puts back what belongs to the person. `tokens`
    /// numbers what is replaced; it begins with those of the request.
    fn prepare<'t>(&self, text: &'t str, tokens: &mut Tokens) -> Result<SentText<'t>, GuardError> {
        let redacted = self.redact(text, tokens)?;
        let is_redacted = redacted.is_some();
        let text = redacted.map_or(Cow::Borrowed(text), Cow::Owned);
        if self.restored.is_empty() {
            return Ok(SentText { text, is_redacted });
        }
        let text = Cow::Owned(self.restored.restore(&text));
        Ok(SentText { text, is_redacted })
    }

    fn redact(&self, text: &str, tokens: &mut Tokens) -> Result<Option<String>, GuardError> {
        if !self.may_identify(text) {
            return Ok(None);
        }
        let redactor = Redactor::new(self.engine.personal_data.finder()?);
        let redactor = match self.replies {
            ReplyData::AccountNumbers => redactor.with_classes(account_numbers()),
            ReplyData::Pass | ReplyData::Redact => redactor,
        };
        Ok(redactor.redact_unless(text, tokens, &|value| self.is_spared(value)))
    }

    /// Whether a text is worth a close look: no account number is without digits. What a text begins with
    /// must not be looked at only because of what comes later, or windows would differ from the whole.
    fn may_identify(&self, text: &str) -> bool {
        match self.replies {
            ReplyData::Pass => false,
            ReplyData::AccountNumbers => text.contains(char::is_numeric),
            ReplyData::Redact => true,
        }
    }

    /// Whether a value is none that the reply brought up by itself.
    fn is_spared(&self, value: &str) -> bool {
        let said = || Heard::new(&self.matter.content.texts(Phase::Before), &self.restored);
        self.heard.get_or_init(said).holds(value)
            || self.engine.voices.of(&self.matter.tenant).resources().names_number(value)
    }
}

/// What `replies = "account_numbers"` looks for.
fn account_numbers() -> Classes {
    [Class::NationalId, Class::Document, Class::Payment, Class::Medical]
        .into_iter()
        .fold(Classes::none(), Classes::with)
}

/// What was said before a reply, the person's own values behind tokens included.
struct Heard {
    text: String,
    /// Its digits, with a blank for whatever does not stand inside a number.
    digits: String,
}

impl Heard {
    fn new(texts: &[Cow<'_, str>], own: &Tokens) -> Self {
        let values = own.iter().filter_map(|token| own.value(token));
        let text = texts.iter().map(AsRef::as_ref).chain(values).collect::<Vec<&str>>().join("\n");
        let text = text.to_lowercase();
        let digits = digits_of(&text);
        Self { text, digits }
    }

    /// Whether a value was said, however it is spaced.
    fn holds(&self, value: &str) -> bool {
        const NUMBER_DIGITS_MIN: usize = 6;
        let value = value.to_lowercase();
        let digits = digits_of(&value);
        if digits.len() >= NUMBER_DIGITS_MIN && !digits.contains(' ') {
            return self.digits.contains(&digits);
        }
        let is_letter = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
        self.text.match_indices(&value).any(|(at, _)| {
            let before = self.text[..at].chars().next_back();
            let after = self.text[at + value.len()..].chars().next();
            // `Ann` was not said by whoever said `planning`.
            !is_letter(before) && !is_letter(after)
        })
    }
}

fn digits_of(text: &str) -> String {
    let inside = |sign: &char| !matches!(sign, ' ' | '-' | '.' | '(' | ')' | '+');
    let signs = text.chars().filter(inside);
    signs.map(|sign| if sign.is_ascii_digit() { sign } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_known_however_it_is_spaced_and_parts_of_words_are_not() {
        let said = ["I am planning with Jo, card 5555-5555-5555-4444."].map(Cow::Borrowed);
        let heard = Heard::new(&said, &Tokens::new());
        for (value, holds) in [
            ("5555 5555 5555 4444", true),
            ("5555555555554444", true),
            ("4111 1111 1111 1111", false),
            ("Jo", true),
            ("Ann", false),
        ] {
            assert_eq!(heard.holds(value), holds, "{value}");
        }
    }
}
