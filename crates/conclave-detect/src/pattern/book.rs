//! What the compiled files say, in numbers.

use super::automata::Automata;
use super::file::Class;
use super::index::Index;
use crate::Frame;
use crate::fold::Vocabulary;
use conclave_core::Category;

/// The number of a concept.
pub(crate) type ConceptId = u16;

/// The built-in concept that stands at the start of each sentence.
pub(crate) const START: ConceptId = 0;
/// The built-in concept that stands at the end of each sentence.
pub(crate) const END: ConceptId = 1;

/// Everything the files say, ready for use.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) automata: Automata,
    pub(crate) atoms: Vec<Atom>,
    pub(crate) concepts: usize,
    /// What the start of a sentence counts as.
    pub(crate) starts: Box<[ConceptId]>,
    /// What the end of a sentence counts as.
    pub(crate) ends: Box<[ConceptId]>,
    pub(crate) masks: Vec<(ConceptId, String)>,
    pub(crate) frames: Vec<(ConceptId, Frame)>,
    pub(crate) roles: Vec<(ConceptId, Role)>,
    pub(crate) readings: Vec<Reading>,
    pub(crate) rules: Vec<Rule>,
    /// Which of the readings and rules could hold in a text.
    pub(crate) index: Index,
    pub(crate) vocabulary: Vocabulary,
}

/// One word or phrase of the automaton.
#[derive(Debug)]
pub(crate) struct Atom {
    /// What it counts as.
    pub(crate) concepts: Box<[ConceptId]>,
    /// Whether a word must begin where it begins.
    pub(crate) left: bool,
    /// Whether a word must end where it ends.
    pub(crate) right: bool,
    /// Characters that must not stand before it.
    pub(crate) not_after: Box<str>,
    /// Characters that must not stand after it.
    pub(crate) not_before: Box<str>,
}

/// What the engine itself uses a concept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Asking how something is done.
    Howto,
    /// The text may be rot13.
    Rot13,
    /// The text may stand backwards.
    Reversed,
    /// The text may be a shifted alphabet.
    Cipher,
    /// Somebody speaks in a story or a part: what they say is looked at by itself.
    Scene,
    /// The text is about protection or wants no method: what a classifier suspects counts less.
    Careful,
}

/// Where concepts must stand to each other.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// One of them.
    Any(ConceptId),
    /// In order, with the greatest distance before each but the first.
    Seq(Box<[(ConceptId, u32)]>),
    /// All within a distance of the first.
    All(Box<[ConceptId]>, u32),
}

/// When a shape counts.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) shape: Shape,
    pub(crate) unless: Box<[ConceptId]>,
    pub(crate) unless_before: Box<[ConceptId]>,
    pub(crate) unless_after: Box<[ConceptId]>,
    pub(crate) unless_text: Box<[ConceptId]>,
    pub(crate) needs_text: Box<[ConceptId]>,
    pub(crate) reach: u32,
    pub(crate) units_max: u32,
    pub(crate) quoted: bool,
}

/// When a dangerous word is meant harmlessly.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) condition: Condition,
    /// Which slots of the shape are replaced.
    pub(crate) replaces: Box<[usize]>,
}

/// What means something.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) source: String,
    pub(crate) categories: Box<[Category]>,
    pub(crate) class: Class,
    /// Ordinary texts show it too, so it never decides by itself.
    pub(crate) hint: bool,
    /// Whether it stands in a file of one's own: no model has learnt what it means.
    pub(crate) is_own: bool,
    pub(crate) condition: Condition,
}
