//! The little language in which data files write phrases, and how a phrase is found in a text.
//!
//! ```text
//! word         this word, in any spelling
//! {slot}       any phrase of the named list
//! (a|b c)      one of these        x?   x or nothing
//! ~ ~5         up to three (five) words, but no "not" or "never"
//! #            a number
//! !(a|b)       what follows is neither of these
//! ^ $          the sentence starts (ends) here
//! ```
//!
//! **Invariant:** a phrase is followed as a set of positions in one machine word, so the work per
//! starting point is bounded by the phrase's length, whatever the text.

use super::token::{
    NEVER, NOT, NUMBER, Tokens, Vocabulary, fold, is_number_id, is_solitary, is_wordly,
};
use std::collections::HashMap;

/// The most words a phrase may span.
const SPAN_MAX: usize = 63;
/// How deep slots and groups may nest.
const DEPTH_MAX: usize = 6;

/// One element of a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// This word.
    Word(u32),
    /// One of these words or phrases.
    Any {
        /// Single words, sorted.
        words: Box<[u32]>,
        /// Longer alternatives.
        phrases: Box<[Box<[Node]>]>,
        /// Or nothing.
        optional: bool,
    },
    /// Up to this many words.
    Gap(u8),
    /// What follows is none of these.
    Not(Box<Node>),
    /// The sentence starts here.
    Start,
    /// The sentence ends here.
    End,
}

/// Named lists of phrases.
pub type Slots = HashMap<String, Vec<String>>;

/// Compiles phrases.
pub struct Compiler<'a> {
    /// Where words get their numbers.
    pub vocabulary: &'a mut Vocabulary,
    /// The named lists.
    pub slots: &'a Slots,
}

impl Compiler<'_> {
    /// Compiles one line of phrases, parted by `|`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn phrases(&mut self, text: &str) -> Result<Vec<Box<[Node]>>, String> {
        split_top(text).into_iter().map(|one| self.phrase(one)).collect()
    }

    fn phrase(&mut self, text: &str) -> Result<Box<[Node]>, String> {
        let nodes = self.sequence(text, 0)?;
        if first_words(&nodes).is_none_or(|words| words.is_empty()) {
            return Err(format!("phrase {text:?} may start with anything"));
        }
        Ok(nodes)
    }

    fn sequence(&mut self, text: &str, depth: usize) -> Result<Box<[Node]>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("{text:?} is nested too deep"));
        }
        let folded: Vec<char> = fold(text).collect();
        let mut nodes = Vec::new();
        let mut at = 0;
        while at < folded.len() {
            at = self.element(&folded, at, &mut nodes, depth)?;
        }
        Ok(nodes.into())
    }

    fn element(
        &mut self,
        text: &[char],
        at: usize,
        nodes: &mut Vec<Node>,
        depth: usize,
    ) -> Result<usize, String> {
        let after = match text[at] {
            ' ' => return Ok(at + 1),
            '^' => push(nodes, Node::Start, at + 1),
            '$' => push(nodes, Node::End, at + 1),
            '#' => push(nodes, Node::Word(NUMBER), at + 1),
            '~' => gap(text, at, nodes),
            '!' => {
                let (inside, after) = enclosed(text, at + 1, '(', ')')?;
                let any = self.alternatives(&inside, depth)?;
                push(nodes, Node::Not(Box::new(any)), after)
            }
            '(' => {
                let (inside, after) = enclosed(text, at, '(', ')')?;
                let any = self.alternatives(&inside, depth)?;
                push(nodes, any, after)
            }
            '{' => {
                let (name, after) = enclosed(text, at, '{', '}')?;
                let any = self.slot(&name, depth)?;
                push(nodes, any, after)
            }
            letter if is_solitary(letter) => self.words(&letter.to_string(), nodes, at + 1),
            letter if is_wordly(letter) || letter == '\'' => {
                let end = word_end(text, at);
                let word: String = text[at..end].iter().collect();
                self.words(&word, nodes, end)
            }
            other => return Err(format!("{other:?} means nothing in a phrase")),
        };
        Ok(optional(text, after, nodes))
    }

    fn words(&mut self, word: &str, nodes: &mut Vec<Node>, after: usize) -> usize {
        let mut spelled: Vec<String> = Vec::new();
        self.vocabulary.spell(word, &mut |word| spelled.push(word.to_owned()));
        for word in spelled {
            nodes.push(Node::Word(self.vocabulary.intern(&word)));
        }
        after
    }

    fn slot(&mut self, name: &str, depth: usize) -> Result<Node, String> {
        let slots = self.slots;
        let Some(options) = slots.get(name) else {
            return Err(format!("there is no slot {name:?}"));
        };
        self.any(options.iter().map(String::as_str), depth)
    }

    fn alternatives(&mut self, inside: &str, depth: usize) -> Result<Node, String> {
        self.any(split_top(inside).into_iter(), depth)
    }

    fn any<'t>(
        &mut self,
        options: impl Iterator<Item = &'t str>,
        depth: usize,
    ) -> Result<Node, String> {
        let (mut words, mut phrases) = (Vec::new(), Vec::new());
        for option in options {
            match &*self.sequence(option, depth + 1)? {
                nodes if can_be_empty(nodes) => {
                    return Err(format!("alternative {option:?} may be empty; use ? outside"));
                }
                [Node::Word(word)] => words.push(*word),
                [Node::Any { words: inner, phrases: more, optional: false }] => {
                    words.extend_from_slice(inner);
                    phrases.extend_from_slice(more);
                }
                nodes => phrases.push(nodes.into()),
            }
        }
        words.sort_unstable();
        words.dedup();
        Ok(Node::Any { words: words.into(), phrases: phrases.into(), optional: false })
    }
}

/// A gap that reached across a negation would read the opposite of what is said.
const fn is_neutral(id: u32) -> bool {
    id != NOT && id != NEVER
}

fn can_be_empty(nodes: &[Node]) -> bool {
    let skips = |node: &Node| matches!(node, Node::Any { optional: true, .. } | Node::Gap(_));
    nodes.iter().all(skips)
}

fn push(nodes: &mut Vec<Node>, node: Node, after: usize) -> usize {
    nodes.push(node);
    after
}

fn gap(text: &[char], at: usize, nodes: &mut Vec<Node>) -> usize {
    let digits = text[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
    let number: String = text[at + 1..at + 1 + digits].iter().collect();
    push(nodes, Node::Gap(number.parse().unwrap_or(3)), at + 1 + digits)
}

/// A question mark makes the last element optional.
fn optional(text: &[char], after: usize, nodes: &mut Vec<Node>) -> usize {
    if text.get(after) != Some(&'?') {
        return after;
    }
    let made = match nodes.pop() {
        Some(Node::Any { words, phrases, .. }) => Node::Any { words, phrases, optional: true },
        Some(Node::Word(word)) => {
            Node::Any { words: [word].into(), phrases: [].into(), optional: true }
        }
        Some(other) => other,
        None => return after + 1,
    };
    nodes.push(made);
    after + 1
}

fn word_end(text: &[char], at: usize) -> usize {
    let length = text[at..]
        .iter()
        .take_while(|c| (is_wordly(**c) || **c == '\'') && !is_solitary(**c))
        .count();
    at + length
}

fn enclosed(text: &[char], at: usize, open: char, close: char) -> Result<(String, usize), String> {
    if text.get(at) != Some(&open) {
        return Err(format!("expected {open:?}"));
    }
    let mut depth = 0_usize;
    for (offset, letter) in text[at..].iter().enumerate() {
        depth += usize::from(*letter == open);
        depth -= usize::from(*letter == close);
        if depth == 0 {
            return Ok((text[at + 1..at + offset].iter().collect(), at + offset + 1));
        }
    }
    Err(format!("{open:?} is never closed"))
}

fn split_top(inside: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, letter) in inside.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

/// The words a phrase can start with; `None` if it may start with anything or match nothing at all.
#[must_use]
pub fn first_words(nodes: &[Node]) -> Option<Vec<u32>> {
    let mut first = Vec::new();
    for node in nodes {
        match node {
            Node::Start | Node::Not(_) => {}
            Node::Word(word) => {
                first.push(*word);
                return Some(first);
            }
            Node::Any { words, phrases, optional } => {
                first.extend_from_slice(words);
                for phrase in phrases {
                    first.extend(first_words(phrase)?);
                }
                if !optional {
                    return Some(first);
                }
            }
            Node::Gap(_) | Node::End => return None,
        }
    }
    None
}

/// Whether a word is one of these, sorted; where any number is meant, each is.
fn is_meant(words: &[u32], id: u32) -> bool {
    words.binary_search(&id).is_ok() || (words.first() == Some(&NUMBER) && is_number_id(id))
}

/// One starting point in a text.
#[derive(Clone, Copy)]
pub struct Place<'t> {
    tokens: &'t Tokens,
    start: usize,
    /// One past the last token of the sentence.
    end: usize,
    sentence_start: usize,
}

impl<'t> Place<'t> {
    /// The place of a token.
    #[must_use]
    pub fn new(tokens: &'t Tokens, start: usize) -> Self {
        let sentence = tokens.sentences[tokens.sentence_of[start]];
        Self { tokens, start, end: sentence.end, sentence_start: sentence.start }
    }

    /// Where the phrase ends if it stands here: one past its last token, the shortest reading.
    #[must_use]
    pub fn end_of(self, phrase: &[Node]) -> Option<usize> {
        let reached = self.follow(phrase, 1);
        (reached != 0).then(|| self.start + reached.trailing_zeros() as usize)
    }

    fn follow(self, phrase: &[Node], mut set: u64) -> u64 {
        for node in phrase {
            set = self.step(node, set);
            if set == 0 {
                return 0;
            }
        }
        set
    }

    fn step(self, node: &Node, set: u64) -> u64 {
        match node {
            Node::Word(word) => {
                self.advance(set, |id| id == *word || (*word == NUMBER && is_number_id(id)))
            }
            Node::Any { words, phrases, optional } => {
                let mut reached = if *optional { set } else { 0 };
                if !words.is_empty() {
                    reached |= self.advance(set, |id| is_meant(words, id));
                }
                phrases.iter().fold(reached, |reached, phrase| reached | self.follow(phrase, set))
            }
            Node::Gap(most) => (0..*most).fold(set, |set, _| set | self.advance(set, is_neutral)),
            Node::Not(inner) => self.retain(set, |alone| self.step(inner, alone) == 0),
            Node::Start => self.retain(set, |alone| self.position(alone) == self.sentence_start),
            Node::End => self.retain(set, |alone| self.position(alone) == self.end),
        }
    }

    fn position(self, alone: u64) -> usize {
        self.start + alone.trailing_zeros() as usize
    }

    fn within(self) -> u64 {
        let room = (self.end - self.start).min(SPAN_MAX);
        u64::MAX >> (SPAN_MAX - room)
    }

    fn retain(self, mut set: u64, keep: impl Fn(u64) -> bool) -> u64 {
        let mut kept = 0;
        while set != 0 {
            let alone = set & set.wrapping_neg();
            if keep(alone) {
                kept |= alone;
            }
            set ^= alone;
        }
        kept
    }

    fn advance(self, mut set: u64, fits: impl Fn(u32) -> bool) -> u64 {
        let sentence = &self.tokens.ids[self.start..self.end];
        let mut moved = 0;
        while set != 0 {
            let Some(id) = sentence.get(set.trailing_zeros() as usize) else { break };
            if fits(*id) {
                moved |= set & set.wrapping_neg();
            }
            set &= set - 1;
        }
        (moved << 1) & self.within()
    }
}
