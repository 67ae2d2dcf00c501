//! What a tool call says, read to its end: the name, every key and value, and what strings encode.
//!
//! **Invariant:** linear in the call, and bounded in depth: values within values up to what the parser follows,
//! encodings within encodings up to [`ENCODINGS_MAX`].

pub mod decode;
pub mod tree;
mod words;

pub use words::CallWords;

/// So many encodings within each other are undone.
pub const ENCODINGS_MAX: usize = 4;

/// Splits at everything that is no letter or digit, and where camelCase turns; a star is a word.
pub fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '*') {
        let mut word = String::new();
        let mut small_before = false;
        for letter in run.chars() {
            if small_before && letter.is_uppercase() {
                words.push(std::mem::take(&mut word));
            }
            small_before = letter.is_lowercase();
            word.extend(letter.to_lowercase());
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words
}
