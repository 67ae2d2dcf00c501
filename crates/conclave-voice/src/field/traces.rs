//! What the sensors have to go by: words of their lists, and how the person writes.

use crate::lexicon::{LETTERS_MAX, Lexicon, fold};
use crate::{Language, VoiceError, error};
use conclave_core::{Message, Role};
use serde::Deserialize;

/// How many of the person's latest messages are heard; each older one counts half as much.
const MESSAGES_HEARD: usize = 4;

macro_rules! lists {
    ($($name:ident,)*) => {
        /// The lists of one language, as the file names them.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ListFile { $($name: Vec<String>,)* }

        /// How often words of each list were heard, the latest message counting most.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub(super) struct Heard { $(pub(super) $name: f32,)* }

        impl ListFile {
            fn lists(&self) -> Vec<&[String]> { vec![$(&self.$name,)*] }
        }

        impl Heard {
            fn slots(&mut self) -> Vec<&mut f32> { vec![$(&mut self.$name,)*] }
        }
    };
}

lists! {
    wisdom, earth, water, fire, air, higher_self, lower_self, conscious_mind, unconscious, shadow,
    inner_child, anima, crisis, attachment,
}

/// Everything the sensors go by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traces {
    pub(super) heard: Heard,
    /// Of the last message: question marks.
    pub(super) questions: f32,
    /// Of the last message: exclamation marks, and words in capitals.
    pub(super) loudness: f32,
    /// Of the last message: about how many words.
    pub(super) words: f32,
    /// Of the last message: how broken it comes, `0.0..=1.0`.
    pub(super) fragmentation: f32,
    /// How often the person has spoken.
    pub(super) exchange: f32,
    /// The person spoke, but without words.
    pub(super) wordless: bool,
}

/// The word lists of both languages in one automaton.
#[derive(Clone, Debug)]
pub(super) struct Ears(Lexicon);

impl Ears {
    pub(super) fn parse(files: &[(&str, &str)]) -> Result<Self, VoiceError> {
        let mut words: Vec<(usize, String)> = Vec::new();
        for (file, text) in files {
            let lists: ListFile = error::parse(file, text)?;
            for (number, list) in lists.lists().into_iter().enumerate() {
                words.extend(list.iter().map(|word| (number, word.clone())));
            }
        }
        let words = words.iter().map(|(list, word)| (*list, word.as_str()));
        Lexicon::build("field", words).map(Self)
    }

    pub(super) fn listen(&self, turns: &[Message]) -> Traces {
        let said: Vec<_> =
            turns.iter().rev().filter(|message| message.role == Role::User).collect();
        let mut traces =
            said.first().map(|message| structure(&message.content.as_text())).unwrap_or_default();
        traces.exchange = count(said.len());
        let mut share = 1.0;
        for message in said.iter().take(MESSAGES_HEARD) {
            self.hear(&message.content.as_text(), share, &mut traces.heard);
            share *= 0.5;
        }
        traces
    }

    fn hear(&self, text: &str, share: f32, heard: &mut Heard) {
        let mut slots = heard.slots();
        for hit in self.0.scan(&fold(text)) {
            if let Some(slot) = slots.get_mut(hit.list) {
                **slot += share;
            }
        }
    }
}

/// How a text is written.
fn structure(text: &str) -> Traces {
    let folded = fold(text);
    let marks = |marks: &[char]| count(folded.matches(marks).count());
    let words = words(&folded);
    let shouted = beginning(text)
        .split_whitespace()
        .filter(|word| word.len() > 2 && word.chars().all(|letter| letter.is_ascii_uppercase()))
        .count();
    Traces {
        questions: marks(&['?', '؟']),
        loudness: marks(&['!']) + count(shouted),
        words,
        fragmentation: fragmentation(&folded, words),
        wordless: !folded.chars().any(char::is_alphanumeric),
        ..Traces::default()
    }
}

/// As much of a text as is looked at for how it is written.
fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(LETTERS_MAX).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// About how many words: Japanese has no blanks, and some two letters to a word.
fn words(folded: &str) -> f32 {
    match Language::of_text(folded) {
        Some(Language::Japanese) => count(folded.chars().count()) / 2.0,
        _ => count(folded.split(' ').filter(|word| !word.is_empty()).count()),
    }
}

/// Broken writing: pauses written out, and many stops for few words.
fn fragmentation(folded: &str, words: f32) -> f32 {
    let pauses = count(folded.matches("...").count() + folded.matches(['…', '—']).count());
    let stops = count(folded.matches(['.', '。', '、', '!', '?', '…']).count());
    let per_stop = if stops > 0.0 { words / stops } else { words };
    let short =
        if words >= 2.0 && stops >= 2.0 && per_stop < 6.0 { (6.0 - per_stop) / 6.0 } else { 0.0 };
    (0.25 * pauses + 0.6 * short).min(1.0)
}

/// A count as a number; what is beyond counting is many.
pub(super) fn count(number: usize) -> f32 {
    f32::from(u16::try_from(number).unwrap_or(u16::MAX))
}
