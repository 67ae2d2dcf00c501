//! An extract of interviews: words that several passages share, and the sentences they stand in.

use super::words::{feeling, quote, sentiment, shared_words, speaks_of, told};
use crate::transcript::{Segment, Transcript};
use serde_json::{Value, json};

/// So many themes beside those asked for.
const THEMES_MAX: usize = 6;
/// So many quotes for each.
const QUOTES_MAX: usize = 3;
/// A risk that somebody who reads the interview should not overlook.
struct Risk {
    name: &'static str,
    words: &'static [&'static str],
    severity: &'static str,
    action: &'static str,
}

const RISKS: [Risk; 4] = [
    Risk {
        name: "self-harm",
        words: &["suicide", "suicidal", "kill myself", "end my life", "hurt myself"],
        severity: "critical",
        action: "Ask a trained person to speak with them today.",
    },
    Risk {
        name: "violence",
        words: &["hit me", "beat me", "violence", "violent", "threatened"],
        severity: "high",
        action: "Ask a trained person whether they are safe now.",
    },
    Risk {
        name: "loss of home",
        words: &["evict", "homeless", "nowhere to go", "sleep in the car", "slept in the car"],
        severity: "high",
        action: "Ask a housing worker to call.",
    },
    Risk {
        name: "hunger or debt",
        words: &["hungry", "no food", "debt", "cannot pay", "can't pay"],
        severity: "medium",
        action: "Ask which help they get already.",
    },
];

/// Themes, feelings, risks and quotes of interviews, cut from them.
#[must_use]
pub fn extract_interview(input: &Value, transcripts: &[Transcript]) -> Value {
    let themes = themes(input, transcripts);
    let key_quotes: Vec<_> = themes
        .iter()
        .filter_map(|theme| theme["exemplar_quotes"].as_array()?.first().cloned())
        .collect();
    let insights: Vec<_> = themes.iter().map(insight).collect();
    let mut result = json!({
        "extractive": true, "themes": themes, "key_quotes": key_quotes,
        "actionable_insights": insights, "empathy_score": null,
    });
    let wants = |name: &str| input.get(name).and_then(Value::as_bool).unwrap_or(false);
    if wants("include_emotion_trajectory") {
        result["emotion_trajectory"] =
            told(transcripts).filter_map(|(source, segment)| emotion(source, segment)).collect();
    }
    if wants("include_risk_triggers") {
        result["risk_triggers"] =
            RISKS.iter().filter_map(|risk| trigger(risk, transcripts)).collect();
    }
    result
}

fn themes(input: &Value, transcripts: &[Transcript]) -> Vec<Value> {
    let asked = input.get("focus_areas").and_then(Value::as_array);
    let asked = asked.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let mut names: Vec<String> = asked.collect();
    for (word, _) in shared_words(transcripts).into_iter().take(THEMES_MAX) {
        let known = names.iter().any(|name| speaks_of(&word, name) || speaks_of(name, &word));
        if !known {
            names.push(word);
        }
    }
    names.iter().filter_map(|name| theme(name, transcripts)).collect()
}

/// A theme that really is spoken of; `None` otherwise, also where it was asked for.
fn theme(name: &str, transcripts: &[Transcript]) -> Option<Value> {
    let spoken: Vec<_> =
        told(transcripts).filter(|(_, segment)| speaks_of(&segment.text, name)).collect();
    if spoken.is_empty() {
        return None;
    }
    let texts: Vec<_> = spoken.iter().map(|(_, segment)| segment.text.as_str()).collect();
    let quotes: Vec<_> = spoken
        .iter()
        .take(QUOTES_MAX)
        .map(|(source, segment)| quote(source, segment, name))
        .collect();
    Some(json!({
        "theme": name, "support_count": spoken.len(), "sentiment": sentiment(&texts),
        "exemplar_quotes": quotes,
    }))
}

fn insight(theme: &Value) -> Value {
    let (name, count) = (theme["theme"].as_str().unwrap_or_default(), &theme["support_count"]);
    json!({
        "insight": format!("Passages that speak of `{name}`: {count}. Read them before deciding."),
        "citations": theme["exemplar_quotes"],
    })
}

fn emotion(source: &Transcript, segment: &Segment) -> Option<Value> {
    let (name, count) = feeling(&segment.text)?;
    let tenths = u8::try_from(count.min(5)).unwrap_or(5) * 2;
    Some(json!({
        "transcript_id": source.id, "segment_index": segment.index, "emotion": name,
        "intensity": f64::from(tenths) / 10.0,
    }))
}

fn trigger(risk: &Risk, transcripts: &[Transcript]) -> Option<Value> {
    let says = |text: &str| {
        let text = text.to_lowercase().replace('’', "'");
        risk.words.iter().copied().find(|word| text.contains(*word))
    };
    let found: Vec<_> = told(transcripts)
        .filter_map(|(source, segment)| says(&segment.text).map(|word| (source, segment, word)))
        .collect();
    if found.is_empty() {
        return None;
    }
    let first_word = |word: &'static str| word.split(' ').next().unwrap_or(word);
    let citations: Vec<_> = found
        .iter()
        .take(QUOTES_MAX)
        .map(|(source, segment, word)| quote(source, segment, first_word(word)))
        .collect();
    Some(json!({
        "trigger": risk.name, "severity": risk.severity, "mentions": found.len(),
        "recommended_action": risk.action, "citations": citations,
    }))
}
