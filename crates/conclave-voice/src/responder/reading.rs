//! What one message of the person says, as far as the responder can tell.

use super::script::{Cue, Event, Script};
use crate::Language;
use crate::lexicon::{Hit, fold};

/// What was understood of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// About how many words it has.
    pub(super) words: usize,
    cues: Vec<Cue>,
    /// The cues it begins with, the shorter ones within them too.
    first: Vec<Cue>,
    /// Feelings that were named and not denied, in order.
    pub(super) feelings: Vec<usize>,
    /// Who or what was named, in order, and how it is said back.
    pub(super) topics: Vec<Named>,
    /// What happened, in order.
    pub(super) events: Vec<usize>,
    /// It asks something.
    pub(super) question: bool,
    /// It has letters or digits at all.
    pub(super) has_words: bool,
    /// It has letters, but none of a script the responder reads.
    pub(super) foreign: bool,
}

/// A topic with the name it is given back by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) topic: usize,
    pub(super) name: String,
}

impl Reading {
    pub(super) fn of(script: &Script, text: &str) -> Self {
        let folded = fold(text);
        let cues = script.cue_words.scan(&folded);
        let cue = |hit: &Hit| Cue::ALL.get(hit.list).copied();
        Self {
            words: count_words(script.language, &folded),
            first: script
                .cue_words
                .scan_all(&folded)
                .iter()
                .take_while(|hit| hit.start == 0)
                .filter_map(cue)
                .collect(),
            cues: cues.iter().filter_map(cue).collect(),
            feelings: feelings(script, &folded),
            topics: topics(script, &folded),
            events: events(script, &folded),
            question: is_question(&folded),
            has_words: folded.chars().any(char::is_alphanumeric),
            foreign: is_foreign(&folded),
        }
        .with_small_words()
    }

    /// Two small words of another language and none of this one: it is that other language.
    fn with_small_words(mut self) -> Self {
        let foreign = self.cues.iter().filter(|cue| **cue == Cue::Foreign).count();
        self.foreign |= foreign >= 2 && !self.has(Cue::Native);
        self
    }

    pub(super) fn has(&self, cue: Cue) -> bool {
        self.cues.contains(&cue)
    }

    pub(super) fn begins_with(&self, cue: Cue) -> bool {
        self.first.contains(&cue)
    }

    /// Whether anything was said that could be answered on its own.
    pub(super) fn has_content(&self) -> bool {
        !(self.feelings.is_empty() && self.topics.is_empty() && self.events.is_empty())
    }

    /// Whether something unwelcome happened or is felt.
    pub(super) fn is_heavy(&self, script: &Script) -> bool {
        self.events.iter().any(|&at| script.events.get(at).is_some_and(Event::is_heavy))
            || self
                .feelings
                .iter()
                .any(|&at| script.feelings.get(at).is_some_and(|(_, one)| !one.good))
    }

    /// Whether somebody was lost.
    pub(super) fn is_loss(&self, script: &Script) -> bool {
        self.events.iter().any(|&at| script.events.get(at).is_some_and(|event| event.loss))
    }

    /// Whether it speaks of the person's own life: a feeling, an event, somebody close.
    pub(super) fn is_emotional(&self, script: &Script) -> bool {
        self.has(Cue::Feels)
            || !self.feelings.is_empty()
            || !self.events.is_empty()
            || self.person(script).is_some()
    }

    /// The first person that was named.
    pub(super) fn person(&self, script: &Script) -> Option<&Named> {
        self.topics
            .iter()
            .find(|named| script.topics.get(named.topic).is_some_and(|topic| topic.person))
    }
}

fn count_words(language: Language, folded: &str) -> usize {
    match language {
        Language::English => folded.split(' ').filter(|word| !word.is_empty()).count(),
        Language::Japanese => folded.chars().count().div_ceil(2),
    }
}

fn unique(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = Vec::new();
    for number in numbers {
        if !seen.contains(&number) {
            seen.push(number);
        }
    }
    seen
}

/// What happened; of two phrases that overlap, the first.
fn events(script: &Script, folded: &str) -> Vec<usize> {
    let mut end = 0;
    let mut apart = script.event_words.scan(folded);
    apart.retain(|hit| !is_denied(script.language, folded, hit, 1));
    apart.retain(|hit| {
        let free = hit.start >= end;
        end = if free { hit.end } else { end };
        free
    });
    unique(apart.iter().map(|hit| hit.list))
}

fn feelings(script: &Script, folded: &str) -> Vec<usize> {
    let hits = script.feeling_words.scan(folded);
    unique(
        hits.iter().filter(|hit| !is_denied(script.language, folded, hit, 2)).map(|hit| hit.list),
    )
}

/// "Not sad", 「悲しくない」: something that is named only to be denied, within so many English words.
fn is_denied(language: Language, folded: &str, hit: &Hit, within: usize) -> bool {
    match language {
        Language::English => {
            let before = folded.get(..hit.start).unwrap_or_default();
            let clause = before.rsplit(['.', ',', '!', '?', ';']).next().unwrap_or_default();
            clause.split(' ').rev().filter(|word| !word.is_empty()).take(within).any(|word| {
                matches!(
                    word,
                    "not"
                        | "can't"
                        | "cannot"
                        | "couldn't"
                        | "haven't"
                        | "hasn't"
                        | "hadn't"
                        | "won't"
                        | "isn't"
                        | "wasn't"
                        | "aren't"
                        | "weren't"
                        | "never"
                        | "don't"
                        | "didn't"
                        | "no"
                        | "without"
                )
            })
        }
        Language::Japanese => {
            let after = folded.get(hit.end..).unwrap_or_default();
            const DENIALS: [&str; 16] = [
                "なか",
                "ない",
                "なく",
                "ませ",
                "くない",
                "くなか",
                "くなく",
                "くありま",
                "くはな",
                "ではな",
                "じゃな",
                "はな",
                "てな",
                "てはいな",
                "ていな",
                "いわけじゃな",
            ];
            DENIALS.iter().any(|denial| after.starts_with(denial))
        }
    }
}

fn topics(script: &Script, folded: &str) -> Vec<Named> {
    let mut topics: Vec<Named> = Vec::new();
    for hit in script.topic_words.scan(folded) {
        let Some((topic, name)) = script.names.get(hit.list) else {
            continue;
        };
        // A word without a name is listed only so that no part of it is taken for another.
        if !name.is_empty() && topics.iter().all(|named| named.topic != *topic) {
            let before = folded.get(..hit.start).unwrap_or_default();
            topics.push(Named { topic: *topic, name: owned_by(before, name) });
        }
    }
    // Somebody matters more than something.
    topics.sort_by_key(|named| !script.topics.get(named.topic).is_some_and(|topic| topic.person));
    topics
}

/// "Her boss" is not "your boss".
fn owned_by(before: &str, name: &str) -> String {
    let Some(rest) = name.strip_prefix("your ") else {
        return name.to_owned();
    };
    match before.trim_end().rsplit(' ').next() {
        Some(owner @ ("his" | "her" | "their")) => format!("{owner} {rest}"),
        _ => name.to_owned(),
    }
}

fn is_question(folded: &str) -> bool {
    const ENDINGS: [&str; 7] =
        ["ですか", "ますか", "でしょうか", "かな", "のか", "だろうか", "んだろう"];
    let end = folded.trim_end_matches(['。', '.', '…', '!', ' ']);
    folded.contains('?') || ENDINGS.iter().any(|ending| end.ends_with(ending))
}

/// Letters, but neither Latin nor Japanese ones.
fn is_foreign(folded: &str) -> bool {
    Language::of_text(folded).is_none() && folded.chars().any(char::is_alphabetic)
}
