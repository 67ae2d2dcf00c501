//! Patterns as data: files of concepts, readings and rules, compiled once.
//!
//! A **concept** is a set of words or phrases. A **rule** says which concepts, how near to each other,
//! mean something of which category and class. A **reading** says when a dangerous word is meant
//! harmlessly; the harmless meaning then replaces the dangerous one, it never adds to it.

mod automata;
mod book;
mod compile;
mod concepts;
mod expand;
mod file;
mod index;
mod inflect;
mod words;

pub(crate) use book::{Atom, Book, ConceptId, Condition, Role, Rule, Shape};

/// One file of the data folder.
macro_rules! builtin {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/patterns/", $name)))
    };
}

/// The built-in files, as (name, text).
pub(crate) const BUILTIN: &[(&str, &str)] = &[
    builtin!("any/markers.toml"),
    builtin!("ar/core.toml"),
    builtin!("de/core.toml"),
    builtin!("en/crisis.toml"),
    builtin!("en/cyber.toml"),
    builtin!("en/drugs.toml"),
    builtin!("en/figurative.toml"),
    builtin!("en/fraud.toml"),
    builtin!("en/hate.toml"),
    builtin!("en/lexicon.toml"),
    builtin!("en/override.toml"),
    builtin!("en/probing.toml"),
    builtin!("en/people.toml"),
    builtin!("en/selfharm.toml"),
    builtin!("en/sexual.toml"),
    builtin!("en/story.toml"),
    builtin!("en/violence.toml"),
    builtin!("en/weapons.toml"),
    builtin!("es/core.toml"),
    builtin!("fr/core.toml"),
    builtin!("hi/core.toml"),
    builtin!("id/core.toml"),
    builtin!("ja/crisis.toml"),
    builtin!("ja/lexicon.toml"),
    builtin!("ja/override.toml"),
    builtin!("ja/people.toml"),
    builtin!("ja/selfharm.toml"),
    builtin!("ja/violence.toml"),
    builtin!("ja/weapons.toml"),
    builtin!("ko/core.toml"),
    builtin!("pt/core.toml"),
    builtin!("ru/core.toml"),
    builtin!("zh/core.toml"),
];
