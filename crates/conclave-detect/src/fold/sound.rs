//! Whether letters sound like a language: how usual each letter is after the one before it.
//!
//! **Invariant:** learned from the words of the patterns and the everyday words, in several languages of
//! Latin letters; it tells language from code, turned and reversed text, not one language from another.

use super::repair::Vocabulary;

/// Letters of the alphabet, and the edge of a word.
const LETTERS: usize = 27;
/// What every pair counts before any was seen.
const UNSEEN: f32 = 0.5;
/// From here on, letters sound like a language; random ones lie far below.
pub(crate) const LANGUAGE: f32 = -4.7;
/// So many letters are listened to.
const LETTERS_HEARD: usize = 600;

/// So many words are looked up.
const WORDS_HEARD: usize = 100;

/// How usual pairs of letters are.
#[derive(Clone, Debug)]
pub(crate) struct Sound {
    counts: [[u32; LETTERS]; LETTERS],
    logs: [[f32; LETTERS]; LETTERS],
}

impl Default for Sound {
    fn default() -> Self {
        Self { counts: [[0; LETTERS]; LETTERS], logs: [[0.0; LETTERS]; LETTERS] }
    }
}

impl Sound {
    /// Hears one word of small Latin letters.
    pub(crate) fn learn(&mut self, word: &str) {
        let mut last = 0;
        for at in word.bytes().map(place).chain([0]) {
            self.counts[last][at] += 1;
            last = at;
        }
    }

    /// Must be called after the last word was learned.
    pub(crate) fn settle(&mut self) {
        #[expect(clippy::cast_precision_loss, reason = "some ten thousand words")]
        let weight = |count: u32| count as f32 + UNSEEN;
        for (logs, counts) in self.logs.iter_mut().zip(&self.counts) {
            let all: f32 = counts.iter().map(|count| weight(*count)).sum();
            for (log, count) in logs.iter_mut().zip(counts) {
                *log = (weight(*count) / all).log2();
            }
        }
    }

    /// How usual the letters of a text are one after the other, on average; `None` without words.
    pub(crate) fn of(&self, text: &str) -> Option<f32> {
        let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
        let mut heard = Heard::default();
        for word in words {
            if heard.is_enough() {
                break;
            }
            self.hear(word, &mut heard);
        }
        heard.usual()
    }

    /// Hears one word of letters, unless enough was heard.
    pub(crate) fn hear(&self, word: &str, heard: &mut Heard) {
        if heard.is_enough() {
            return;
        }
        let mut last = 0;
        for at in word.bytes().take(LETTERS_HEARD - heard.letters).map(place).chain([0]) {
            heard.sum += self.logs[last][at];
            heard.pairs += 1.0;
            last = at;
        }
        heard.letters += word.len();
    }
}

/// What was heard of a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    sum: f32,
    pairs: f32,
    letters: usize,
}

impl Heard {
    const fn is_enough(&self) -> bool {
        self.letters >= LETTERS_HEARD
    }

    /// How usual its letters are one after the other, on average; `None` without words.
    fn usual(self) -> Option<f32> {
        (self.pairs > 0.0).then(|| self.sum / self.pairs)
    }

    /// Whether a turned text sounds clearly better than the text itself, and well.
    pub(crate) fn is_better(self, text: Self, by: f32) -> bool {
        match (text.usual(), self.usual()) {
            (Some(straight), Some(turned)) => turned >= LANGUAGE && turned - straight >= by,
            _ => false,
        }
    }
}

fn place(letter: u8) -> usize {
    match letter {
        b'a'..=b'z' => usize::from(letter - b'a') + 1,
        b'A'..=b'Z' => usize::from(letter - b'A') + 1,
        _ => 0,
    }
}

impl Vocabulary {
    /// Whether a piece is a word, or sounds like one.
    pub(crate) fn sounds_known(&self, piece: &str) -> bool {
        matches!(piece, "a" | "i")
            || self.knows(piece)
            || (piece.len() >= 4
                && piece.bytes().all(|byte| byte.is_ascii_alphabetic())
                && self.sound.of(piece).is_some_and(|sound| sound >= LANGUAGE))
    }

    /// How many known words there are at the beginning of a text.
    pub(crate) fn known_words(&self, text: &str) -> usize {
        let words = text.split(|c: char| !c.is_ascii_alphabetic());
        words.take(WORDS_HEARD).filter(|word| word.len() >= 2 && self.knows(word)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_told_from_code_and_turned_text() {
        let mut sound = Sound::default();
        let text = "the people who live near the river often walk there with their children in the evening \
            and talk about what they have seen during the day before they go home to eat together";
        text.split(' ').for_each(|word| sound.learn(word));
        sound.settle();
        let straight = "the children walk home in the evening";
        let reversed: String = straight.chars().rev().collect();
        assert!(sound.of(straight) > sound.of(&reversed));
        assert!(sound.of(&reversed) > sound.of("qxzvk jwqpd xvbzq"));
        let heard = |text: &str| {
            let mut heard = Heard::default();
            text.split(' ').for_each(|word| sound.hear(word, &mut heard));
            heard
        };
        assert!(heard(straight).is_better(heard(&reversed), 0.3));
        assert!(!heard(&reversed).is_better(heard(straight), 0.3));
        assert_eq!(sound.of("1234 5 6"), None);
    }
}
