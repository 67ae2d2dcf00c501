//! Owns the people and characters that everybody may be asked about: `Who was Marie Curie?` names
//! nobody who needs protection.
//!
//! **Invariant:** the list decides nothing where somebody gives a name as their own or as that of
//! somebody they know; the caller asks that first.

use super::words::Word;

const FIGURES: &str = include_str!("../../data/public_figures.txt");

/// The names, in order.
#[derive(Debug)]
pub(crate) struct Figures(Vec<&'static str>);

impl Figures {
    pub(crate) fn new() -> Self {
        let lines = FIGURES.lines().filter(|line| !line.starts_with('#'));
        let names = lines.flat_map(|line| line.split(',')).map(str::trim);
        let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.shrink_to_fit();
        Self(names)
    }

    /// How many words the longest name on the list has that begins with the first of these.
    pub(crate) fn length_at(&self, words: &[Word]) -> usize {
        let mut written = String::new();
        let mut longest = 0;
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                written.push(' ');
            }
            written.push_str(&word.key);
            let from = self.0.partition_point(|name| *name < written.as_str());
            match self.0.get(from) {
                Some(name) if *name == written => longest = at + 1,
                Some(name) if name.starts_with(&written) => {}
                _ => break,
            }
        }
        longest
    }
}
