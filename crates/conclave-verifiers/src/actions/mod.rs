//! What an action would do before it happens: what is harmed, how many, how reversible.
//!
//! **Invariant:** weighing has no effects and always answers; what is not understood is judged by
//! its arguments, never waved through because its name is unknown.

mod effect;
mod facts;
mod gather;
mod numbers;
mod people;
mod plain;
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Action<'a> {
    /// The tool, or empty when the action is only described.
    pub name: &'a str,
    /// Its arguments as written, JSON or not; or the description.
    pub arguments: &'a str,
    /// What the application says that the tool does; empty where it says nothing.
    pub description: &'a str,
    /// What the person asked for last; empty where nobody spoke.
    pub asked: &'a str,
}

impl<'a> Action<'a> {
    /// The action of a tool call.
    #[must_use]
    pub fn of(call: &'a ToolCall) -> Self {
        Self { name: &call.name, arguments: &call.arguments, description: "", asked: "" }
    }

    /// The same action, of a tool that the application describes so.
    #[must_use]
    pub const fn with_description(self, description: &'a str) -> Self {
        Self { description, ..self }
    }

    /// The same action, in answer to these words.
    #[must_use]
    pub const fn in_answer_to(self, asked: &'a str) -> Self {
        Self { asked, ..self }
    }

    /// The action as one plain text: what the trained classifier of actions reads and learns from.
    #[must_use]
    pub fn write_out(self) -> String {
        plain::write_out(self)
    }

    /// An action described in words.
    #[must_use]
    pub const fn described(text: &'a str) -> Self {
        Self { name: "", arguments: text, description: "", asked: "" }
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
    /// Who or what is harmed, in plain words: "stored data".
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

impl Consequence {
    /// What it costs the reply on the panel: nothing where it is not worth a concern.
    #[must_use]
    pub fn penalty(&self) -> Score {
        if self.is_concern() { self.harm } else { Score::ZERO }
    }

    /// Whether it is worth a concern at least: grave enough, or like what a trained classifier knows to be.
    pub(crate) fn is_concern(&self) -> bool {
        self.harm.hundredths() >= CONCERN_FROM || self.rules.contains(&TRAINED)
    }
}

/// From this harm on, in hundredths, an action is a concern.
const CONCERN_FROM: u8 = 45;
/// The name of what the trained classifier sees.
const TRAINED: &str = "trained/action";

/// Something that weighs actions; the built-in one is [`Consequences`].
pub trait ActionJudge: Send + Sync {
    /// What this action would do.
    fn weigh(&self, action: Action<'_>) -> Consequence;
}
