//! Words of a text, sentences, and small lists of what they say.

use crate::transcript::{Segment, Transcript};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest quote that is cut out.
const QUOTE_CHARS_MAX: usize = 300;
/// A theme needs a word of so many letters.
const LETTERS_MIN: usize = 4;

const STOP: &[&str] = &[
    "about",
    "after",
    "again",
    "also",
    "always",
    "another",
    "anything",
    "around",
    "asked",
    "away",
    "because",
    "been",
    "before",
    "being",
    "could",
    "come",
    "came",
    "does",
    "doing",
    "done",
    "down",
    "each",
    "even",
    "every",
    "everything",
    "feel",
    "felt",
    "first",
    "from",
    "gave",
    "give",
    "goes",
    "going",
    "gone",
    "have",
    "having",
    "here",
    "into",
    "just",
    "kept",
    "knew",
    "know",
    "like",
    "little",
    "long",
    "made",
    "make",
    "many",
    "maybe",
    "mean",
    "more",
    "most",
    "much",
    "must",
    "myself",
    "need",
    "needed",
    "never",
    "nobody",
    "nothing",
    "once",
    "only",
    "other",
    "over",
    "people",
    "really",
    "said",
    "same",
    "says",
    "should",
    "since",
    "some",
    "someone",
    "something",
    "still",
    "such",
    "take",
    "tell",
    "than",
    "that",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "think",
    "this",
    "those",
    "though",
    "thought",
    "through",
    "time",
    "told",
    "took",
    "until",
    "very",
    "want",
    "wanted",
    "well",
    "went",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "will",
    "with",
    "without",
    "would",
    "year",
    "years",
    "your",
    "yours",
    "didn",
    "don't",
    "didn't",
    "wasn't",
    "can't",
];

const GOOD: &[&str] = &[
    "glad", "happy", "proud", "hope", "thank", "better", "helped", "safe", "love", "good",
    "relief", "welcome",
];
const BAD: &[&str] = &[
    "afraid", "scared", "lost", "evict", "angry", "tired", "alone", "cold", "debt", "worse",
    "hard", "sick", "violence", "hungry", "ashamed", "worried", "cry", "cried", "hurt", "nowhere",
    "unsafe", "struggl",
];

/// A feeling, and how it is spelt.
const FEELINGS: &[(&str, &[&str])] = &[
    ("fear", &["afraid", "scared", "frightened", "fear", "worried", "anxious"]),
    ("anger", &["angry", "anger", "furious", "frustrated"]),
    ("sadness", &["sad", "cry", "cried", "grief", "lost", "alone", "lonely"]),
    ("exhaustion", &["tired", "exhausted", "worn"]),
    ("hope", &["hope", "hoped", "better", "forward"]),
    ("joy", &["happy", "glad", "proud", "love", "joy"]),
];

/// What speaks in a transcript for whoever asks the questions.
pub(super) fn is_interviewer(speaker: &str) -> bool {
    let speaker = speaker.to_lowercase();
    ["interviewer", "researcher", "facilitator", "q"].contains(&speaker.as_str())
}

/// The passages of those who tell, without what was marked as sacred.
pub(super) fn told(transcripts: &[Transcript]) -> impl Iterator<Item = (&Transcript, &Segment)> {
    transcripts.iter().flat_map(|transcript| {
        let told = transcript.segments.iter();
        told.filter(|segment| !is_interviewer(&segment.speaker) && !segment.sacred)
            .map(move |segment| (transcript, segment))
    })
}

pub(super) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|sign: char| !sign.is_alphanumeric() && sign != '\'' && sign != '’');
    parts.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Words that several passages share, with how many do, most first.
pub(super) fn shared_words(transcripts: &[Transcript]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, segment) in told(transcripts) {
        let here: BTreeSet<_> = words(&segment.text).into_iter().filter(|w| is_theme(w)).collect();
        for word in here {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut shared: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
    shared.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
    shared
}

fn is_theme(word: &str) -> bool {
    word.chars().count() >= LETTERS_MIN
        && word.chars().all(char::is_alphabetic)
        && !STOP.contains(&word)
}

/// Whether a word stands in a text, also with another ending.
pub(super) fn speaks_of(text: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    // `housing` is spoken of as `house`: the first letters decide, and four at least.
    let root: String = word.chars().take(letters.saturating_sub(3).max(LETTERS_MIN)).collect();
    words(text)
        .iter()
        .any(|said| *said == word || (letters > LETTERS_MIN && said.starts_with(&root)))
}

/// The sentence of a passage that speaks of something, as a citation.
pub(super) fn quote(transcript: &Transcript, segment: &Segment, word: &str) -> Value {
    let sentences = segment.text.split_inclusive(['.', '!', '?', '。']);
    let sentence = sentences.map(str::trim).find(|sentence| speaks_of(sentence, word));
    cited(transcript, segment, sentence.unwrap_or(segment.text.trim()))
}

pub(super) fn cited(transcript: &Transcript, segment: &Segment, text: &str) -> Value {
    let end = text.char_indices().nth(QUOTE_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    json!({
        "transcript_id": transcript.id, "segment_index": segment.index, "text": &text[..end],
    })
}

pub(super) fn sentiment(texts: &[&str]) -> &'static str {
    let says = |list: &[&str]| {
        let spoken = texts.iter().flat_map(|text| words(text));
        spoken.filter(|said| list.iter().any(|word| said.starts_with(word))).count()
    };
    match (says(GOOD), says(BAD)) {
        (0, 0) => "neutral",
        (good, bad) if good > bad * 2 => "positive",
        (good, bad) if bad > good * 2 => "negative",
        _ => "mixed",
    }
}

/// The feeling a passage speaks of most.
pub(super) fn feeling(text: &str) -> Option<(&'static str, usize)> {
    let said = words(text);
    let count = |list: &[&str]| said.iter().filter(|word| list.contains(&word.as_str())).count();
    let counted = FEELINGS.iter().map(|(name, list)| (*name, count(list)));
    counted.filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count)
}
