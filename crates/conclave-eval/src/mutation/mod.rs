//! Disguises: the same text as someone would write it to slip past.
//!
//! **Invariant:** deterministic: the same text and seed give the same disguise, so that two runs can be
//! compared.
//!
//! **Invariant:** a disguise that leaves the text as it is does not count: [`Mutation::apply`] gives
//! `None`, never the text itself.

mod encoding;
mod frame;
mod letter;
mod word;

use crate::chance::Chance;

macro_rules! mutations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $apply:expr;)*) => {
        /// A way to disguise a text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutation { $($(#[$doc])* $variant,)* }

        impl Mutation {
            /// Every mutation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn rewrite(self, text: &str, chance: &mut Chance) -> String {
                let rewrite: fn(&str, &mut Chance) -> String = match self {
                    $(Self::$variant => $apply),*
                };
                rewrite(text, chance)
            }
        }
    };
}

mutations! {
    /// Invisible characters between letters.
    ZeroWidth = "zero_width", letter::zero_width;
    /// Hyphens that show only at the end of a line, between letters.
    SoftHyphen = "soft_hyphen", letter::soft_hyphen;
    /// Tag characters between letters.
    TagBetween = "tag_between", letter::tag_between;
    /// The whole text spelled in tag characters, which nobody sees.
    TagSpelled = "tag_spelled", letter::tag_spelled;
    /// Marks that steer the direction of writing, around the text and inside its words.
    Bidi = "bidi", word::bidi;
    /// Accents on letters.
    CombiningMarks = "combining_marks", letter::combining_marks;
    /// Cyrillic letters that look like Latin ones.
    HomoglyphCyrillic = "homoglyph_cyrillic", letter::cyrillic;
    /// Greek letters that look like Latin ones.
    HomoglyphGreek = "homoglyph_greek", letter::greek;
    /// Full-width letters.
    FullWidth = "full_width", letter::full_width;
    /// Digits for letters.
    Leet = "leet", letter::leet;
    /// Upper and lower case in turn.
    CaseMix = "case_mix", letter::case_mix;
    /// A blank between letters, three between words.
    SpacedLetters = "spaced_letters", word::spaced;
    /// Punctuation between letters.
    PunctuatedLetters = "punctuated_letters", word::punctuated;
    /// One letter of each word drawn out.
    RepeatedLetters = "repeated_letters", word::repeated;
    /// Pictures between letters.
    EmojiLetters = "emoji_letters", letter::emoji;
    /// Pictures between words.
    EmojiWords = "emoji_words", word::emoji;
    /// Neighbouring letters swapped in every other longer word.
    Typo = "typo", word::typo;
    /// Base64.
    Base64 = "base64", encoding::base64;
    /// Hexadecimal digits.
    Hex = "hex", encoding::hex;
    /// Every byte as `%XX`.
    UrlEncoding = "url_encoding", encoding::url;
    /// Letters moved by thirteen.
    Rot13 = "rot13", encoding::rot13;
    /// Last letter first.
    Reversed = "reversed", encoding::reversed;
    /// Told as a story.
    StoryFrame = "story_frame", frame::story;
    /// Asked of a character.
    RolePlayFrame = "role_play_frame", frame::role_play;
    /// Asked for a novel.
    NovelFrame = "novel_frame", frame::novel;
    /// Friendly words around it.
    Padded = "padded", frame::padded;
    /// A good reason given for it.
    Excused = "excused", frame::excused;
}

impl Mutation {
    /// The text in this disguise; `None` where it would stay as it is.
    #[must_use]
    pub fn apply(self, text: &str, seed: u64) -> Option<String> {
        let mutated = self.rewrite(text, &mut Chance::new(seed));
        (mutated != text).then_some(mutated)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
