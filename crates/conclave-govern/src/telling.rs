//! Whether a text tells what belongs to somebody, or only speaks about it.
//!
//! **Invariant:** a text is a mention only where every sentence with the term says so, and nothing in
//! the whole text tells; a language without phrases here never is. When unsure, it is told.

use crate::spelling::{is_unspaced, plain, unspaced};
use std::sync::LazyLock;

static ABOUT: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::of(include_str!("../../../data/culture/about.txt")));
static TELLING: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::of(include_str!("../../../data/culture/telling.txt")));

/// Phrases with a space on either side, and those of scripts without spaces.
struct Phrases {
    spaced: Vec<String>,
    unspaced: Vec<String>,
}

impl Phrases {
    fn of(file: &str) -> Self {
        let lines = file.lines().filter(|line| !line.starts_with('#'));
        let phrases: Vec<_> = lines.map(plain).filter(|phrase| !phrase.is_empty()).collect();
        let (bare, spaced): (Vec<_>, Vec<_>) =
            phrases.into_iter().partition(|phrase| phrase.chars().any(is_unspaced));
        Self {
            spaced: spaced.into_iter().map(|phrase| format!(" {phrase} ")).collect(),
            unspaced: bare.iter().map(|phrase| unspaced(phrase)).collect(),
        }
    }

    fn stand_in(&self, plain_text: &str) -> bool {
        let padded = format!(" {plain_text} ");
        let bare = unspaced(plain_text);
        self.spaced.iter().any(|phrase| padded.contains(phrase))
            || self.unspaced.iter().any(|phrase| bare.contains(phrase))
    }
}

/// Whether a text merely speaks about what `names` finds in it.
pub(crate) fn is_mention(text: &str, names: impl Fn(&str) -> bool) -> bool {
    if TELLING.stand_in(&plain(text)) {
        return false;
    }
    let mut found = false;
    for sentence in text.split_inclusive(is_end).filter(|sentence| names(sentence)) {
        if !ABOUT.stand_in(&plain(sentence)) {
            return false;
        }
        found = true;
    }
    found
}

const fn is_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '\n' | '。' | '！' | '？' | '．')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_is_a_mention_and_a_story_is_not() {
        let names = |text: &str| plain(text).contains("churinga") || text.contains("カムイ");
        for (text, mention) in [
            ("In this lesson we learn that the churinga is sacred to the Arrernte.", true),
            ("What is a churinga?", true),
            ("カムイという言葉は学校で習います。", true),
            ("Churinga.", false),
            ("The churinga was carried to the cave. The story goes that it sang.", false),
            ("In this lesson, step by step: first you take the churinga.", false),
            ("In this lesson we learn. The churinga lies under the red stone.", false),
            ("昔々、カムイは山から来た。学校で習います。", false),
            ("Die Churinga ist heilig.", false),
            ("", false),
        ] {
            assert_eq!(is_mention(text, names), mention, "{text}");
        }
    }
}
