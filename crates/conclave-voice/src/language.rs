//! Which of the two languages the system itself speaks a text calls for.

use crate::lexicon::LETTERS_MAX;
use conclave_core::{Message, Role};
use serde::{Deserialize, Serialize};

/// A language the system's own words are written in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Language {
    /// English, and the fallback for every other language.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Japanese.
    #[serde(rename = "ja")]
    Japanese,
}

impl Language {
    /// Both.
    pub const ALL: [Self; 2] = [Self::English, Self::Japanese];

    /// The language for a BCP 47 tag; anything but Japanese is English.
    #[must_use]
    pub fn of_tag(tag: &str) -> Self {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        if primary.trim().eq_ignore_ascii_case("ja") { Self::Japanese } else { Self::English }
    }

    /// The ISO 639-1 code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }

    /// The language of a text by its script; `None` when it has neither Latin nor Japanese letters.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let mut latin = false;
        for letter in text.chars().take(LETTERS_MAX) {
            if is_kana(letter) || is_han(letter) {
                return Some(Self::Japanese);
            }
            latin |= letter.is_ascii_alphabetic();
        }
        latin.then_some(Self::English)
    }

    /// The language the person writes: of the latest of their messages that shows one.
    #[must_use]
    pub fn of_conversation(conversation: &[Message]) -> Self {
        conversation
            .iter()
            .rev()
            .filter(|message| message.role == Role::User)
            .find_map(|message| Self::of_text(&message.content.as_text()))
            .unwrap_or_default()
    }
}

/// Hiragana and katakana, the half-width forms too.
pub(crate) fn is_kana(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FF9D}')
}

/// Chinese characters as Japanese uses them.
pub(crate) fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '々')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_fall_back_to_english() {
        for (tag, language) in [
            ("ja", Language::Japanese),
            ("JA-jp", Language::Japanese),
            ("ja_JP", Language::Japanese),
            ("en-GB", Language::English),
            ("jav", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::of_tag(tag), language, "{tag}");
        }
    }

    #[test]
    fn a_wordless_message_keeps_the_language_of_the_one_before() {
        let turns = [
            Message::text(Role::User, "今日はつらかったです"),
            Message::text(Role::Assistant, "Hello"),
            Message::text(Role::User, "……"),
        ];
        assert_eq!(Language::of_conversation(&turns), Language::Japanese);
        assert_eq!(Language::of_conversation(&[]), Language::English);
    }
}
