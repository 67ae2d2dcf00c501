//! The words of a concept as a file lists them, written out and folded.

use super::expand::expand;
use super::file::ConceptSpec;
use super::inflect::inflect;
use crate::fold::chars::is_word;
use crate::fold::fold;

/// A folded word and what must or must not stand around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AtomKey {
    pub(super) text: String,
    /// Whether a word must begin where it begins.
    pub(super) left: bool,
    /// Whether a word must end where it ends.
    pub(super) right: bool,
    /// Characters that must not stand before it.
    pub(super) not_after: String,
    /// Characters that must not stand after it.
    pub(super) not_before: String,
}

/// A word and the form of a verb it is: empty, `s`, `ing` or `ed`.
pub(super) type Word = (AtomKey, &'static str);

/// Every word of a concept.
///
/// # Errors
/// When an entry cannot be written out or is empty once folded.
pub(super) fn written_out(spec: &ConceptSpec) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    for entry in &spec.words {
        for word in expand(entry)? {
            words.push((atom(&word)?, ""));
        }
    }
    for entry in &spec.verbs {
        for verb in expand(entry)? {
            let forms = inflect(&verb);
            words.push((atom(&forms.base)?, ""));
            words.push((atom(&forms.third)?, "s"));
            words.push((atom(&forms.ing)?, "ing"));
            for past in &forms.past {
                words.push((atom(past)?, "ed"));
            }
        }
    }
    Ok(words)
}

fn atom(word: &str) -> Result<AtomKey, String> {
    let (not_after, word, not_before) = guards(word);
    let (open_left, open_right) = (word.starts_with('*'), word.ends_with('*'));
    let word = word.trim_matches('*').trim();
    let text = if is_plain(word) { word.to_owned() } else { fold(word).text };
    let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
        return Err(format!("`{word}` is empty once folded"));
    };
    let left = !open_left && is_word(first);
    let right = !open_right && is_word(last);
    let (not_after, not_before) = (not_after.to_owned(), not_before.to_owned());
    Ok(AtomKey { text, left, right, not_after, not_before })
}

/// Whether folding would leave a word as it is.
fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ') && !word.contains("  ")
}

/// Splits `自«殺す»ぞ` into what must not stand before, the word, and what must not stand after.
fn guards(word: &str) -> (&str, &str, &str) {
    let (before, rest) = word.split_once('«').unwrap_or(("", word));
    let (word, after) = rest.split_once('»').unwrap_or((rest, ""));
    (before, word, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(words: &[&str], verbs: &[&str]) -> ConceptSpec {
        let owned = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
        ConceptSpec { words: owned(words), verbs: owned(verbs), ..ConceptSpec::default() }
    }

    #[test]
    fn stars_open_an_edge_and_guillemets_forbid_neighbours() {
        let words = written_out(&spec(&["bomb*", "自«殺す»ぞ"], &[])).unwrap();
        let (bomb, _) = &words[0];
        assert_eq!((bomb.text.as_str(), bomb.left, bomb.right), ("bomb", true, false));
        let (kill, _) = &words[1];
        assert_eq!((kill.not_after.as_str(), kill.not_before.as_str()), ("自", "ぞ"));
    }

    #[test]
    fn verbs_bring_their_forms() {
        let words = written_out(&spec(&[], &["bake"])).unwrap();
        let forms: Vec<_> = words.iter().map(|(key, form)| (key.text.as_str(), *form)).collect();
        assert_eq!(forms, [("bake", ""), ("bakes", "s"), ("baking", "ing"), ("baked", "ed")]);
    }

    #[test]
    fn a_word_of_nothing_is_refused() {
        assert!(written_out(&spec(&["**"], &[])).is_err());
    }
}
