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
use conclave_pii::{Class, Finder, Found, Redactor, Tokens, is_identifying, restore};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::borrow::Cow;
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
    let texts = matter.content.texts(phase);
    let redactor = Redactor::new(engine.personal_data.finder()?);
    let mut tokens = matter.tokens.clone();
    let known = tokens.len();
    let changed: Vec<_> =
        texts.iter().map(|text| redactor.redact_text(text, &mut tokens)).collect();
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

fn look_at_replies(engine: &Engine, matter: &Matter) -> Result<Option<Examined>, GuardError> {
    let Some(outgoing) = Outgoing::for_matter(engine, matter)? else { return Ok(None) };
    let mut tokens = matter.tokens.clone();
    let mut is_redacted = false;
    let mut texts = Vec::new();
    for text in matter.content.texts(Phase::After) {
        let sent = outgoing.prepare(&text, &mut tokens);
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

/// How text of a reply to one matter is prepared for leaving, whole or window by window.
pub(crate) struct Outgoing<'a> {
    finder: Option<&'a Finder>,
    replies: ReplyData,
    /// What stands behind tokens of the request, to be put back; empty where it is not.
    restored: Cow<'a, Tokens>,
    /// What the person wrote, in which whatever they know stands.
    heard: String,
    engine: &'a Engine,
}

/// Text that may leave.
pub(crate) struct SentText<'a> {
    pub text: Cow<'a, str>,
    pub is_redacted: bool,
}

impl<'a> Outgoing<'a> {
    /// `None` where replies to the matter leave as they are.
    pub(crate) fn for_matter(
        engine: &'a Engine,
        matter: &'a Matter,
    ) -> Result<Option<Self>, GuardError> {
        let policy = &matter.policy().personal_data;
        let restores = policy.restore && !matter.tokens.is_empty();
        if policy.replies == ReplyData::Pass && !restores {
            return Ok(None);
        }
        let finder = match policy.replies {
            ReplyData::Pass => None,
            ReplyData::AccountNumbers | ReplyData::Redact => Some(engine.personal_data.finder()?),
        };
        let restored = if restores { Cow::Borrowed(&matter.tokens) } else { Cow::default() };
        let heard = matter.content.texts(Phase::Before).join("\n");
        Ok(Some(Self { finder, replies: policy.replies, restored, heard, engine }))
    }

    /// Replaces what the reply brings up by itself, then puts back what belongs to the person. `tokens`
    /// numbers what is replaced; it begins with those of the request.
    pub(crate) fn prepare<'t>(&self, text: &'t str, tokens: &mut Tokens) -> SentText<'t> {
        let redacted = match self.finder {
            // Ordinary prose has neither: looking closer would only cost time.
            Some(finder) if self.may_identify(text) => {
                let keeps = |found: &Found, value: &str| self.is_own(found, value);
                Redactor::new(finder).redact_unless(text, tokens, &keeps)
            }
            _ => None,
        };
        let is_redacted = redacted.is_some();
        let text = redacted.map_or(Cow::Borrowed(text), Cow::Owned);
        if self.restored.is_empty() {
            return SentText { text, is_redacted };
        }
        let text = Cow::Owned(restore(&text, &self.restored));
        SentText { text, is_redacted }
    }

    /// Whether a text is worth a close look, at the price of one pass over its bytes.
    fn may_identify(&self, text: &str) -> bool {
        const DIGITS_MIN: usize = 8;
        self.replies == ReplyData::Redact
            || text.chars().filter(|letter| letter.is_numeric()).nth(DIGITS_MIN - 1).is_some()
    }

    /// Whether a value is none that the reply brought up by itself.
    fn is_own(&self, found: &Found, value: &str) -> bool {
        let is_account = matches!(
            found.kind.class(),
            Class::NationalId | Class::Document | Class::Payment | Class::Medical
        );
        let is_looked_for = self.replies == ReplyData::Redact || is_account;
        !is_looked_for
            || !is_identifying(found)
            || self.heard.contains(value)
            || self.engine.voices.resources().names_number(value)
    }
}
