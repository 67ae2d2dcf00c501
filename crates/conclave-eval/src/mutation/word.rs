//! Disguises of whole words.

use super::letter::between;
use crate::chance::Chance;

const PICTURES: [&str; 6] = ["🔥", "🌸", "⭐", "💧", "🍀", "🎈"];
const POINTS: [char; 5] = ['.', '-', '_', '*', '/'];
/// How often a drawn-out letter stands.
const DRAWN_OUT: usize = 4;

pub(super) fn spaced(text: &str, _: &mut Chance) -> String {
    let apart = text.split(' ').map(|word| between(word, |out| out.push(' ')));
    let apart: Vec<_> = apart.collect();
    // Blanks between words change only where letters moved apart, or nothing was disguised.
    if apart.iter().zip(text.split(' ')).all(|(apart, word)| apart == word) {
        return text.to_owned();
    }
    apart.join("   ")
}

pub(super) fn punctuated(text: &str, chance: &mut Chance) -> String {
    let point = POINTS[chance.below(POINTS.len())];
    between(text, |out| out.push(point))
}

pub(super) fn emoji(text: &str, chance: &mut Chance) -> String {
    let picture = PICTURES[chance.below(PICTURES.len())];
    text.replace(' ', &format!(" {picture} "))
}

pub(super) fn bidi(text: &str, chance: &mut Chance) -> String {
    let inside = |letters: &[char], chance: &mut Chance| {
        let mark = ['\u{200e}', '\u{200f}'][chance.below(2)];
        let (head, tail) = letters.split_at(letters.len() / 2);
        head.iter().chain([&mark]).chain(tail).collect::<String>()
    };
    let marked =
        each_word(text, |word| if word.len() < 4 { None } else { Some(inside(word, chance)) });
    if marked.is_empty() { marked } else { format!("\u{202a}{marked}\u{202c}") }
}

pub(super) fn repeated(text: &str, chance: &mut Chance) -> String {
    each_word(text, |word| {
        let at = chance.below(word.len());
        let drawn = word.iter().enumerate().flat_map(|(place, letter)| {
            std::iter::repeat_n(*letter, if place == at { DRAWN_OUT } else { 1 })
        });
        (word.len() >= 3).then(|| drawn.collect())
    })
}

pub(super) fn typo(text: &str, chance: &mut Chance) -> String {
    let mut turn = chance.below(2);
    each_word(text, |word| {
        if word.len() < 5 || !word.iter().all(char::is_ascii_alphabetic) {
            return None;
        }
        turn += 1;
        // Nobody mistypes every word, and the first and last letter are rarely the ones.
        let at = 1 + chance.below(word.len() - 3);
        let mut swapped = word.to_vec();
        swapped.swap(at, at + 1);
        turn.is_multiple_of(2).then(|| swapped.into_iter().collect())
    })
}

/// Rewrites each run of letters for which there is something else to write.
fn each_word(text: &str, mut rewrite: impl FnMut(&[char]) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut word = Vec::new();
    // The end of the text ends its last word.
    for this in text.chars().map(Some).chain([None]) {
        match this {
            Some(letter) if letter.is_alphabetic() => word.push(letter),
            other => {
                match rewrite(&word).filter(|_| !word.is_empty()) {
                    Some(rewritten) => out.push_str(&rewritten),
                    None => out.extend(&word),
                }
                word.clear();
                out.extend(other);
            }
        }
    }
    out
}
