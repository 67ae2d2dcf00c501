//! One run of a recipe while it is under way: what is known, and what guards have said.

use crate::agreed::Agreed;
use crate::memory::Remembered;
use conclave_core::{
    AuditId, Candidate, GenerationFailure, KeyId, MicroUsd, PanelRun, TenantId, Usage,
};
use conclave_pii::{Found, Tokens, is_identifying};
use conclave_ports::Pseudonyms;
use conclave_recipes::{
    CitationReport, Evaluation, Guard, GuardOutcome, Phase, Recipe, RunContext, RunRequest, Taken,
    Transcript,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How deep JSON is walked; requests are refused at half of it.
const DEPTH_MAX: usize = 128;
/// Members that name things and are no words of people.
const NAMES: [&str; 5] = ["transcript_id", "transcript_ids", "id", "source_id", "storyteller_id"];

/// The longest token, in letters, and the longest number in one.
const TOKEN_LETTERS_MAX: usize = 48;
const TOKEN_DIGITS_MAX: usize = 4;

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct Run {
    /// Whose.
    pub tenant: TenantId,
    /// With which key.
    pub key: Option<KeyId>,
    /// Which recipe.
    pub recipe: String,
    /// What is asked.
    pub request: RunRequest,
    /// A run that waited for a person, with the same recipe and input; once approved, it is not held for
    /// the same reason again before the work is done. What a model makes of it is looked at anew.
    pub approved_run: Option<AuditId>,
}

/// One run under way.
pub(crate) struct Running {
    pub id: AuditId,
    pub tenant: TenantId,
    pub key: Option<KeyId>,
    pub who: Pseudonyms,
    /// Where the person stands: carried on, so that a run does not make the house forget.
    pub remembered: Remembered,
    pub recipe: Arc<Recipe>,
    pub request: RunRequest,
    /// The circumstances in force: what was asked, and what stands on stored material.
    pub context: RunContext,
    /// The same as a model may see it.
    pub told: RunContext,
    /// What the transcripts are, as a digest.
    pub material: String,
    /// The input as a model may see it.
    pub input: Value,
    /// The transcripts as a model may see them.
    pub transcripts: Vec<Transcript>,
    /// What stands behind the tokens in both, and in the output.
    pub tokens: Tokens,
    pub outcomes: Vec<GuardOutcome>,
    pub consent_verified: bool,
    /// Who has agreed, as the records say.
    pub consented: Vec<String>,
    /// What people agreed to before.
    pub agreed: Option<Agreed>,
    pub model: String,
    pub downgraded: bool,
    pub reserved: Option<MicroUsd>,
    /// When it is worth while to ask again, where money was short.
    pub retry_at_ms: Option<u64>,
    pub attempts: Vec<Result<Candidate, GenerationFailure>>,
    pub usage: Usage,
    pub cost: MicroUsd,
    pub model_time: Duration,
    pub crisis: bool,
    pub output: Option<Value>,
    pub report: CitationReport,
    pub evaluation: Option<Evaluation>,
    /// What the verifiers said of words that speak to a person.
    pub panel: Option<PanelRun>,
    /// The communities whose elders decide, where any was named.
    pub communities: Vec<String>,
    pub sacred: bool,
    pub started: Instant,
}

impl Running {
    pub(crate) fn passed(&mut self, guard: Guard, phase: Phase) {
        self.outcomes.push(GuardOutcome::passed(guard, phase));
    }

    pub(crate) fn found(
        &mut self,
        at: (Guard, Phase),
        taken: Taken,
        code: &'static str,
        detail: impl Into<String>,
    ) {
        self.outcomes.push(GuardOutcome::found(at, taken, code, detail));
    }

    /// The gravest outcome: its code is what the client is told.
    pub(crate) fn gravest(&self) -> Option<&GuardOutcome> {
        self.outcomes.iter().max_by_key(|outcome| outcome.taken)
    }

    pub(crate) fn spend(&mut self, cost: MicroUsd, usage: Usage) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.saturating_add(cost);
    }
}

/// Every text of a JSON value that may hold words of people.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    each_text(value, 0, &mut |text| all.push(text.to_owned()));
    all
}

fn each_text(value: &Value, depth: usize, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) if depth < DEPTH_MAX => {
            items.iter().for_each(|item| each_text(item, depth + 1, see));
        }
        Value::Object(members) if depth < DEPTH_MAX => {
            let spoken = members.iter().filter(|(name, _)| !NAMES.contains(&name.as_str()));
            spoken.for_each(|(_, member)| each_text(member, depth + 1, see));
        }
        _ => {}
    }
}

/// Replaces texts of a JSON value.
pub(crate) fn change_texts(value: &mut Value, change: &mut impl FnMut(&str) -> Option<String>) {
    change_at(value, 0, change);
}

fn change_at(value: &mut Value, depth: usize, change: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(other) = change(text) {
                *text = other;
            }
        }
        Value::Array(items) if depth < DEPTH_MAX => {
            items.iter_mut().for_each(|item| change_at(item, depth + 1, change));
        }
        Value::Object(members) if depth < DEPTH_MAX => {
            let spoken = members.iter_mut().filter(|(name, _)| !NAMES.contains(&name.as_str()));
            spoken.for_each(|(_, member)| change_at(member, depth + 1, change));
        }
        _ => {}
    }
}

/// A text with tokens in place of what identifies somebody; `None` where nothing does. Tokens that stand in
/// it already stay: a model was asked to leave them as they are.
pub(crate) fn redacted(
    finder: &conclave_pii::Finder,
    text: &str,
    tokens: &mut Tokens,
) -> Option<String> {
    let found: Vec<_> = finder.find(text).into_iter().filter(is_identifying).collect();
    let letters: Vec<char> = text.chars().collect();
    let known = token_places(&letters);
    let mut out = String::with_capacity(text.len());
    let (mut at, mut changed) = (0, false);
    for place in found {
        out.extend(letters.get(at..place.start)?);
        at = place.end;
        for (from, to, is_token) in parts(&known, place.start, place.end) {
            let value: String = letters.get(from..to)?.iter().collect();
            if is_token || !value.contains(char::is_alphanumeric) {
                out.push_str(&value);
                continue;
            }
            let whole = Found { start: 0, end: to - from, ..place };
            out.push_str(&conclave_pii::redact(&value, &[whole], tokens));
            changed = true;
        }
    }
    out.extend(letters.get(at..)?);
    changed.then_some(out)
}

/// Where tokens stand: a name in capitals and a short number, which identify nobody.
fn token_places(letters: &[char]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (from, _) in letters.iter().enumerate().filter(|(_, letter)| **letter == '[') {
        let reach = letters.len().min(from + TOKEN_LETTERS_MAX);
        let end = letters[from..reach].iter().position(|letter| *letter == ']');
        let Some(end) = end.map(|end| from + end + 1) else { continue };
        let inner: String = letters[from + 1..end - 1].iter().collect();
        let Some((label, number)) = inner.rsplit_once('_') else { continue };
        let is_label = label.bytes().all(|sign| sign.is_ascii_uppercase() || sign == b'_');
        let is_number = number.bytes().all(|sign| sign.is_ascii_digit());
        let is_short = (1..=TOKEN_DIGITS_MAX).contains(&number.len());
        if !label.is_empty() && is_label && is_number && is_short {
            places.push((from, end));
        }
    }
    places
}

/// A place, cut where tokens stand in it; says of each part whether it is of a token.
fn parts(tokens: &[(usize, usize)], from: usize, to: usize) -> Vec<(usize, usize, bool)> {
    let mut parts = Vec::new();
    let mut at = from;
    for (start, end) in tokens.iter().filter(|(start, end)| *start < to && *end > from) {
        let (start, end) = ((*start).max(at), (*end).min(to));
        parts.extend((at < start).then_some((at, start, false)));
        parts.push((start, end, true));
        at = end;
    }
    parts.extend((at < to).then_some((at, to, false)));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_redacted_and_tokens_and_names_stay() {
        let finder = conclave_pii::Finder::builtin().unwrap();
        let mut tokens = Tokens::new();
        let mut value = json!({
            "transcript_id": "jane@example.com", "text": "Ask [EMAIL_7] or jane@example.com.",
            "list": ["nothing here"],
        });
        change_texts(&mut value, &mut |text| redacted(&finder, text, &mut tokens));
        assert_eq!(value["text"], "Ask [EMAIL_7] or [EMAIL_1].");
        assert_eq!(value["transcript_id"], "jane@example.com", "an id is no word of a person");
        assert_eq!(tokens.value("[EMAIL_1]"), Some("jane@example.com"));
        assert_eq!(texts(&value), ["nothing here", "Ask [EMAIL_7] or [EMAIL_1]."]);
    }

    #[test]
    fn brackets_hide_nothing_that_identifies_somebody() {
        let finder = conclave_pii::Finder::builtin().unwrap();
        for (text, secret) in [
            ("See https://example.org/[jane]/mail?to=jane@example.com now.", "jane@example.com"),
            ("Ask [jane@example.com] today.", "jane@example.com"),
            ("It is [PHONE_5551234567] or [mara@example.org].", "mara@example.org"),
            ("The address [2001:db8:85a3::8a2e:370:7334] called.", "8a2e:370:7334"),
        ] {
            let mut tokens = Tokens::new();
            let other = redacted(&finder, text, &mut tokens).unwrap_or_default();
            assert!(!other.is_empty() && !other.contains(secret), "{text} -> {other}");
        }
        let letters: Vec<char> = "x [EMAIL_1] [a_1] [PHONE_5551234567] [A".chars().collect();
        assert_eq!(token_places(&letters), [(2, 11)]);
        assert_eq!(parts(&[(2, 5)], 0, 8), [(0, 2, false), (2, 5, true), (5, 8, false)]);
        assert_eq!(parts(&[(2, 5)], 3, 4), [(3, 4, true)]);
    }
}
