//! Consent intake: content cut into numbered passages, with what was agreed to and where it came from.

use conclave_pii::{Finder, KnownNames, Redactor, Tokens};
use serde_json::{Value, json};

/// The longest passage, in characters; longer ones are cut between sentences.
const SEGMENT_CHARS_MAX: usize = 1_500;
/// The longest name of a speaker.
const SPEAKER_CHARS_MAX: usize = 40;

/// What an intake needs to know beside its input.
pub struct Intake<'a> {
    /// Finds identifying data.
    pub finder: &'a Finder,
    /// Which transcript it becomes.
    pub source_id: String,
    /// Who brought it.
    pub ingested_by: String,
    /// When.
    pub now_ms: u64,
    /// Whether a record of consent was found, beside what the input says.
    pub consent_verified: bool,
    /// What would be done with it; all of it must be covered.
    pub wanted: &'a [String],
}

struct Passage {
    speaker: String,
    start: Option<String>,
    text: String,
}

/// The content with its passages, consent and provenance; identifying data is in tokens already.
#[must_use]
pub fn intake(input: &Value, with: &Intake<'_>, tokens: &mut Tokens) -> Value {
    let raw = input["raw_content"].as_str().unwrap_or_default();
    let content = normalised(raw);
    let mut names = KnownNames::new();
    with.finder.learn_speakers(&content, &mut names);
    let redactor = Redactor::new(with.finder).with_names(&names);
    tokens.reserve(&content);
    let content = redactor.redact_text(&content, tokens).unwrap_or(content);
    let passages = passages(&content);
    let (flags, covered) = consent(input, with);
    let status = match (covered, passages.is_empty()) {
        (_, true) => "incomplete",
        (false, _) => "requires_review",
        (true, false) => "valid",
    };
    let segments: Vec<_> = passages.iter().enumerate().map(|(at, one)| segment(at, one)).collect();
    json!({
        "normalized_content": content,
        "segments": segments,
        "consent_flags": flags,
        "pii_tokens": tokens.iter().map(token).collect::<Vec<_>>(),
        "provenance": {
            "source_id": with.source_id, "ingested_by": with.ingested_by,
            "ingested_at_ms": with.now_ms,
            "transformations": ["line ends and blanks", "identifying data to tokens", "passages"],
            "lineage": [with.source_id],
        },
        "validation_status": status,
    })
}

fn token(token: &str) -> Value {
    let kind = token.trim_matches(['[', ']']).rsplit_once('_').map_or("", |(kind, _)| kind);
    json!({"token": token, "kind": kind.to_lowercase(), "redact_in_output": true})
}

fn segment(at: usize, passage: &Passage) -> Value {
    let named = !passage.speaker.is_empty();
    json!({
        "index": at, "speaker": passage.speaker, "start": passage.start, "text": passage.text,
        "confidence": if named { 1.0 } else { 0.8 },
    })
}

/// What was agreed to, and whether that is all that is wanted.
fn consent(input: &Value, with: &Intake<'_>) -> (Vec<Value>, bool) {
    let given = &input["provided_consent"];
    let scope: Vec<_> =
        given["scope"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let said = |kind: &str| given[kind].as_bool().unwrap_or(false);
    let mut flags = Vec::new();
    for kind in ["written", "verbal"] {
        if said(kind) {
            flags.push(json!({"kind": kind, "scope": scope, "verified": with.consent_verified}));
        }
    }
    let missing: Vec<_> = with.wanted.iter().filter(|one| !scope.contains(&one.as_str())).collect();
    if flags.is_empty() {
        flags.push(json!({"kind": "missing", "scope": with.wanted, "verified": false}));
        return (flags, false);
    }
    if !missing.is_empty() {
        flags.push(json!({"kind": "missing", "scope": missing, "verified": false}));
    }
    (flags, missing.is_empty())
}

/// One kind of line end, no blanks at the ends, no more than one empty line.
fn normalised(raw: &str) -> String {
    let lines = raw.lines().map(|line| {
        let clean: String =
            line.chars().filter(|sign| !sign.is_control() || *sign == '\t').collect();
        clean.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    let mut out = String::with_capacity(raw.len());
    for line in lines {
        if line.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
            continue;
        }
        out.push_str(&line);
        out.push('\n');
    }
    out.trim_end().to_owned()
}

fn passages(content: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    for line in content.lines().filter(|line| !line.is_empty()) {
        let (start, rest) = stamped(line);
        match spoken(rest) {
            (None, text) if start.is_none() && continues(passages.last(), text) => {
                if let Some(last) = passages.last_mut() {
                    last.text.push(' ');
                    last.text.push_str(text);
                }
            }
            (speaker, text) => passages.extend(cut(text).map(|text| Passage {
                speaker: speaker.unwrap_or_default().to_owned(),
                start: start.map(str::to_owned),
                text: text.to_owned(),
            })),
        }
    }
    passages
}

/// A line without a name goes on with what the one before said, if there is one with a name.
fn continues(last: Option<&Passage>, text: &str) -> bool {
    last.is_some_and(|last| {
        !last.speaker.is_empty() && last.text.chars().count() + text.len() < SEGMENT_CHARS_MAX
    })
}

/// `[00:01:02] words`, cut into both.
fn stamped(line: &str) -> (Option<&str>, &str) {
    let inside = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match inside {
        Some((stamp, rest)) if is_time(stamp) => (Some(stamp), rest.trim_start()),
        _ => (None, line),
    }
}

fn is_time(stamp: &str) -> bool {
    stamp.contains(':') && stamp.bytes().all(|sign| sign.is_ascii_digit() || b":.".contains(&sign))
}

/// `Name: words`, cut into both.
fn spoken(line: &str) -> (Option<&str>, &str) {
    match line.split_once(": ") {
        Some((name, text)) if is_speaker(name) => (Some(name.trim()), text.trim()),
        _ => (None, line),
    }
}

fn is_speaker(name: &str) -> bool {
    let signs = |sign: char| sign.is_alphanumeric() || " _-.[]".contains(sign);
    (1..=SPEAKER_CHARS_MAX).contains(&name.chars().count())
        && name.split_whitespace().count() <= 3
        && name.chars().all(signs)
}

/// A passage in pieces of bearable length, cut between sentences where there are any.
fn cut(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(SEGMENT_CHARS_MAX).map_or(rest.len(), |(at, _)| at);
        let head = &rest[..end];
        let stop = if end == rest.len() { end } else { head.rfind(". ").map_or(end, |at| at + 1) };
        let (piece, after) = rest.split_at(stop);
        rest = after.trim_start();
        Some(piece.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_in(raw: &str, consent: &Value, wanted: &[&str]) -> (Value, Tokens) {
        let finder = Finder::builtin().unwrap();
        let wanted: Vec<_> = wanted.iter().map(|word| (*word).to_owned()).collect();
        let with = Intake {
            finder: &finder,
            source_id: "t-1".into(),
            ingested_by: "ana".into(),
            now_ms: 5,
            consent_verified: false,
            wanted: &wanted,
        };
        let mut tokens = Tokens::new();
        let input = json!({"raw_content": raw, "provided_consent": consent});
        (intake(&input, &with, &mut tokens), tokens)
    }

    #[test]
    fn consent_intake_makes_passages_tokens_and_provenance() {
        let raw = "Interviewer: How are you?\r\n[00:01:02] Mara:  I am well.\n\n\nWrite to mara@example.org.\n";
        let consent = json!({"written": true, "scope": ["research"]});
        let (made, tokens) = taken_in(raw, &consent, &["research"]);
        let segments = made["segments"].as_array().unwrap();
        assert_eq!(segments.len(), 2, "{made}");
        assert_eq!(
            (&segments[0]["speaker"], &segments[0]["text"]),
            (&json!("Interviewer"), &json!("How are you?"))
        );
        assert_eq!(segments[1]["start"], "00:01:02");
        assert!(segments[1]["text"].as_str().unwrap().contains("[EMAIL_1]"), "{made}");
        assert!(!made.to_string().contains("mara@example.org"));
        assert_eq!(tokens.value("[EMAIL_1]"), Some("mara@example.org"), "it can be undone");
        assert_eq!(made["validation_status"], "valid");
        assert_eq!(made["provenance"]["source_id"], "t-1");
    }

    #[test]
    fn consent_intake_says_what_consent_is_missing() {
        let (made, _) = taken_in(
            "A: b.",
            &json!({"verbal": true, "scope": ["research"]}),
            &["research", "publication"],
        );
        assert_eq!(made["validation_status"], "requires_review");
        assert_eq!(
            made["consent_flags"][1],
            json!({"kind": "missing", "scope": ["publication"], "verified": false})
        );
        let (made, _) = taken_in("A: b.", &json!({"scope": []}), &[]);
        assert_eq!(made["consent_flags"][0]["kind"], "missing");
    }

    #[test]
    fn long_passages_are_cut_and_nothing_is_lost() {
        let long = "One sentence more. ".repeat(500);
        let (made, _) = taken_in(&long, &json!({"scope": []}), &[]);
        let segments = made["segments"].as_array().unwrap();
        assert!(segments.len() > 3);
        let whole: usize =
            segments.iter().map(|s| s["text"].as_str().unwrap().matches("sentence").count()).sum();
        assert_eq!(whole, 500);
    }
}
