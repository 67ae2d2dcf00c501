//! What an action would do before it happens: what is harmed, how many, how reversible.
//!
//! **Invariant:** weighing has no effects and always answers; what is not understood is judged by
//! its arguments, never waved through because its name is unknown.

mod effect;
mod facts;
mod programs;
mod rules;
mod script;
mod secrets;
mod shell;
mod sql;
mod weigh;
mod words;

pub use weigh::Consequences;

use conclave_core::{Score, ToolCall};

/// An action somebody proposes.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// The tool, or empty when the action is only described.
    pub name: &'a str,
    /// Its arguments as written, JSON or not; or the description.
    pub arguments: &'a str,
}

impl<'a> Action<'a> {
    /// The action of a tool call.
    #[must_use]
    pub fn of(call: &'a ToolCall) -> Self {
        Self { name: &call.name, arguments: &call.arguments }
    }

    /// An action described in words.
    #[must_use]
    pub const fn described(text: &'a str) -> Self {
        Self { name: "", arguments: text }
    }
}

/// How many are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// One person or thing.
    One,
    /// A few.
    Some,
    /// Many, or everyone.
    Many,
}

/// Whether it can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Undo {
    /// Nothing changes, or it is taken back at once.
    Easy,
    /// With work, or not for everyone.
    Hard,
    /// Not at all.
    Never,
}

/// What an action would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Consequence {
    /// How harmful, with how many and how reversible taken in.
    pub harm: Score,
    /// What is harmed, in plain words: "stored data".
    pub harmed: &'static str,
    /// How many are touched.
    pub reach: Reach,
    /// Whether it can be undone.
    pub undo: Undo,
    /// The names of what was recognised.
    pub rules: Vec<&'static str>,
}

impl Consequence {
    /// Nothing is harmed.
    pub const NONE: Self = Self {
        harm: Score::ZERO,
        harmed: "nothing",
        reach: Reach::One,
        undo: Undo::Easy,
        rules: Vec::new(),
    };
}

/// Something that weighs actions; the built-in one is [`Consequences`].
pub trait ActionJudge: Send + Sync {
    /// What this action would do.
    fn weigh(&self, action: Action<'_>) -> Consequence;
}
