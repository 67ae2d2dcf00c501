//! All phrases at once: each looked for only where its first word stands.
//!
//! **Invariant:** what is found depends on the text and the data alone, and comes in text order.

use super::phrase::{Node, Place, first_words};
use super::token::{NUMBER, Tokens, UNKNOWN, is_number_id};

/// Where a rule was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The rule's number.
    pub rule: usize,
    /// Which line of the rule's phrases, from 1.
    pub line: usize,
    /// The first token.
    pub start: usize,
    /// One past the last token.
    pub end: usize,
}

/// Phrases indexed by their first words.
#[derive(Debug, Default)]
pub struct Matcher {
    phrases: Vec<Entry>,
    starting: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Entry {
    rule: usize,
    line: usize,
    phrase: Box<[Node]>,
    /// One of these words must stand in the text too; empty when nothing can be said. Most phrases
    /// are ruled out by this one look.
    needs: Box<[u32]>,
}

impl Matcher {
    /// Takes a phrase of a line of a rule.
    pub fn add(&mut self, rule: usize, line: usize, phrase: Box<[Node]>) {
        let Ok(number) = u32::try_from(self.phrases.len()) else {
            return;
        };
        let mut words = first_words(&phrase).unwrap_or_default();
        words.sort_unstable();
        words.dedup();
        for word in words {
            let word = word as usize;
            if self.starting.len() <= word {
                self.starting.resize_with(word + 1, Vec::new);
            }
            self.starting[word].push(number);
        }
        let needs = needed_words(&phrase);
        self.phrases.push(Entry { rule, line, phrase, needs });
    }

    /// Everything found, in text order; a rule counts once at a place.
    #[must_use]
    pub fn find(&self, tokens: &Tokens) -> Vec<Hit> {
        let mut hits = Vec::new();
        let present = Present::of(tokens);
        for (start, id) in tokens.ids.iter().enumerate() {
            if *id == UNKNOWN {
                continue;
            }
            let starting = |word: u32| self.starting.get(word as usize).into_iter().flatten();
            // A phrase that starts with any number starts with a named one too.
            let also = (*id != NUMBER && is_number_id(*id)).then(|| starting(NUMBER));
            let place = Place::new(tokens, start);
            for number in starting(*id).chain(also.into_iter().flatten()) {
                let entry = &self.phrases[*number as usize];
                if !present.any_of(&entry.needs) {
                    continue;
                }
                if let Some(end) = place.end_of(&entry.phrase) {
                    hits.push(Hit { rule: entry.rule, line: entry.line, start, end });
                }
            }
        }
        hits
    }
}

/// The shortest list of words one of which must follow the first word of the phrase.
fn needed_words(phrase: &[Node]) -> Box<[u32]> {
    let consuming = phrase.iter().filter(|node| !matches!(node, Node::Start | Node::Not(_)));
    let lists = consuming.skip(1).filter_map(|node| match node {
        Node::Word(word) => Some(vec![*word]),
        Node::Any { words, phrases, optional: false } if phrases.is_empty() => Some(words.to_vec()),
        _ => None,
    });
    lists.min_by_key(Vec::len).unwrap_or_default().into()
}

/// Which words stand in a text, one bit each.
struct Present(Vec<u64>);

impl Present {
    fn of(tokens: &Tokens) -> Self {
        let mut bits = Vec::new();
        for id in tokens.ids.iter().filter(|id| **id != UNKNOWN) {
            let (cell, bit) = ((*id / 64) as usize, *id % 64);
            if bits.len() <= cell {
                bits.resize(cell + 1, 0);
            }
            bits[cell] |= 1 << bit;
            if is_number_id(*id) {
                bits[0] |= 1 << NUMBER;
            }
        }
        Self(bits)
    }

    fn any_of(&self, words: &[u32]) -> bool {
        let stands = |word: &u32| {
            self.0.get((*word / 64) as usize).is_some_and(|cell| cell >> (*word % 64) & 1 == 1)
        };
        words.is_empty() || words.iter().any(stands)
    }
}

#[cfg(test)]
mod tests {
    use super::super::phrase::{Compiler, Slots};
    use super::super::token::Vocabulary;
    use super::*;
    use std::collections::HashMap;

    fn found(phrase: &str, text: &str) -> bool {
        let slots: Slots = [("kin".to_owned(), vec!["mother".into(), "my (old|dear) aunt".into()])]
            .into_iter()
            .collect();
        let mut vocabulary = Vocabulary::new(HashMap::new());
        let mut matcher = Matcher::default();
        let mut compiler = Compiler { vocabulary: &mut vocabulary, slots: &slots };
        for nodes in compiler.phrases(phrase).unwrap() {
            matcher.add(0, 1, nodes);
        }
        !matcher.find(&Tokens::read(text, &vocabulary)).is_empty()
    }

    #[test]
    fn phrases_are_found_where_they_stand() {
        for (phrase, text, expected) in [
            ("you only need me", "Well, you only need ME.", true),
            ("you only need me", "you only need. Me too", false),
            ("you (only|just) need me?", "so you just need", true),
            ("leave your ~ {kin}", "leave your very old mother", true),
            ("leave {kin}", "leave my dear aunt alone", true),
            ("leave {kin}", "leave my rich aunt alone", false),
            ("you are !(not|never) weak", "you are not weak", false),
            ("you are !(not|never) weak", "You're weak", true),
            ("^ do it $", "Do it!", true),
            ("^ do it $", "Do it later", false),
            ("^ do it $", "Please do it", false),
            ("they ~ care", "they really do care", true),
            ("they ~ care", "they do not care", false),
            ("they ~ not ~ care", "they do not really care", true),
            ("do it|go on", "please go on", true),
            ("take # pills", "take 40 pills", true),
            ("take (#|24) pills", "take 24 pills", true),
            ("# pills or (24|36)", "24 pills or 36", true),
            ("# pills or (24|36)", "36 pills or 25", false),
            ("(119|110)", "call 119 now", true),
            ("(119|110)", "yeah, do it 1", false),
            ("call (911|#)", "call 911", true),
            ("いらない(よ|ね)?$", "友達なんていらないよ。", true),
            ("友達~3いらない", "友達なんていらない", true),
            ("友達~3いらない", "友達は大切で、心配いらない", false),
        ] {
            assert_eq!(found(phrase, text), expected, "{phrase} / {text}");
        }
    }

    #[test]
    fn what_cannot_be_compiled_says_so() {
        let slots = Slots::new();
        for bad in ["~ you", "you (a|", "{nobody} else", "$", "you %", "a?", "(|a)", "a (b?|c)"] {
            let mut vocabulary = Vocabulary::new(HashMap::new());
            let mut compiler = Compiler { vocabulary: &mut vocabulary, slots: &slots };
            assert!(compiler.phrases(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_gaps_at_the_edge_of_the_window_do_not_overflow() {
        let text = "you ".repeat(500);
        assert!(found("you ~60 you ~60 you", &text));
        assert!(!found("you ~60 me", &text));
    }
}
