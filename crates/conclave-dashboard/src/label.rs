//! The house's own words for people: outcomes, actions, votes, reasons.
//!
//! **Invariant:** no meaning hangs on colour alone: every label has its word and its own shape.

use crate::text::Text;
use askama::Template;
use askama::filters::HtmlSafe;
use conclave_core::{Action, Outcome, Reason};

/// The longest word that is kept on one line.
const LINE_CHARS: usize = 24;

/// How a label feels; decides its colour and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Somebody was looked after.
    Care,
    /// Not as hoped.
    Warn,
    /// Stopped.
    Bad,
    /// Neither.
    Plain,
}

impl Tone {
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Care => "care",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

/// The shape beside the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A tick.
    Tick,
    /// A heart.
    Heart,
    /// A pause sign.
    Pause,
    /// A triangle.
    Triangle,
    /// A circle with a bar.
    Stop,
    /// An arrow upwards.
    Up,
    /// A cross.
    Cross,
    /// A dash.
    Dash,
}

/// A word with its shape.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(path = "parts/badge.html")]
pub(crate) struct Badge {
    tone: Tone,
    shape: Shape,
    word: Text,
    /// Short enough to stand on one line.
    firm: bool,
}

impl HtmlSafe for Badge {}

impl Badge {
    /// A badge.
    pub(crate) fn new(tone: Tone, shape: Shape, word: &str) -> Self {
        let firm = word.chars().count() <= LINE_CHARS;
        Self { tone, shape, word: Text::short(word), firm }
    }

    /// How it feels.
    pub(crate) const fn tone(&self) -> Tone {
        self.tone
    }

    /// How a turn ended.
    pub(crate) fn outcome(name: &str) -> Self {
        use Outcome::{
            Blocked, Delivered, Escalated, Exhausted, Failed, GuardUnavailable, Held, Redacted,
            SafeCompletion,
        };
        let (tone, shape) = match Outcome::parse(name) {
            Some(Delivered | Redacted) => (Tone::Good, Shape::Tick),
            Some(SafeCompletion) => (Tone::Care, Shape::Heart),
            Some(Held) => (Tone::Warn, Shape::Pause),
            Some(Exhausted | GuardUnavailable) => (Tone::Warn, Shape::Triangle),
            Some(Escalated) => (Tone::Bad, Shape::Up),
            Some(Blocked) => (Tone::Bad, Shape::Stop),
            Some(Failed) => (Tone::Plain, Shape::Cross),
            None => (Tone::Plain, Shape::Dash),
        };
        Self::new(tone, shape, &outcome_word(name))
    }

    /// A verifier's vote.
    pub(crate) fn vote(name: &str, abstained_because: Option<&str>) -> Self {
        match name {
            "safe" => Self::new(Tone::Good, Shape::Tick, "Safe"),
            "concern" => Self::new(Tone::Warn, Shape::Triangle, "Concern"),
            "harmful" => Self::new(Tone::Bad, Shape::Stop, "Harmful"),
            "abstained" => Self::new(Tone::Plain, Shape::Dash, abstention(abstained_because)),
            "excused" => Self::new(Tone::Plain, Shape::Dash, "Left out"),
            "not_applicable" => Self::new(Tone::Plain, Shape::Dash, "Not seated"),
            other => Self::new(Tone::Plain, Shape::Dash, other),
        }
    }

    /// The person was in crisis.
    pub(crate) fn crisis() -> Self {
        Self::new(Tone::Care, Shape::Heart, "Crisis")
    }

    /// Whether something held.
    pub(crate) fn met(met: bool) -> Self {
        if met {
            Self::new(Tone::Good, Shape::Tick, "Met")
        } else {
            Self::new(Tone::Bad, Shape::Cross, "Not met")
        }
    }
}

fn abstention(cause: Option<&str>) -> &'static str {
    match cause {
        Some("late") => "No vote: too late",
        Some("panicked") => "No vote: it crashed",
        Some("invalid") => "No vote: invalid",
        Some("duplicate") => "No vote: voted twice",
        _ => "No vote: it failed",
    }
}

/// `safe_completion` as `Safe completion`.
pub(crate) fn outcome_word(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + &letters.as_str().replace('_', " ")
}

/// What an outcome means, for somebody who sees it for the first time.
pub(crate) fn outcome_meaning(name: &str) -> &'static str {
    match Outcome::parse(name) {
        Some(Outcome::Delivered) => "A reply that the panel passed was sent unchanged.",
        Some(Outcome::Redacted) => "A reply that the panel passed was sent with parts replaced.",
        Some(Outcome::SafeCompletion) => {
            "Conclave answered a person in crisis itself, with places to find help."
        }
        Some(Outcome::Blocked) => "A guard refused the request, or what was written.",
        Some(Outcome::Held) => "It was held back for people to decide about.",
        Some(Outcome::Escalated) => {
            "The panel found harm, or had more doubts than trust; a safe message took the reply's place."
        }
        Some(Outcome::Exhausted) => "No attempt was good enough; a safe message was sent instead.",
        Some(Outcome::GuardUnavailable) => {
            "Too few checks could be made; a safe message was sent instead."
        }
        Some(Outcome::Failed) => "No usable reply came back from the model.",
        None => "This outcome is not known to this version.",
    }
}

/// The outcomes that can be filtered by.
pub(crate) fn outcomes() -> impl Iterator<Item = &'static str> {
    Outcome::ALL.into_iter().map(Outcome::as_str)
}

/// The actions that can be filtered by.
pub(crate) fn actions() -> impl Iterator<Item = &'static str> {
    use Action::{Block, Deliver, Escalate, Flag, Hold, Redact, Regenerate};
    [Deliver, Flag, Redact, Regenerate, Escalate, Hold, Block].into_iter().map(Action::as_str)
}

/// What a catalogue code says of a reply; an unknown code stands for itself.
pub(crate) fn reason(code: &str) -> Text {
    let known = Reason::ALL.iter().find(|reason| reason.code() == code);
    known.map_or_else(|| Text::short(code), |reason| Text::short(reason.plain()))
}

/// Why a model gave no candidate.
pub(crate) fn failure(name: &str) -> &'static str {
    match name {
        "timeout" => "The model did not answer in time.",
        "unreachable" => "The model could not be reached.",
        "refused" => "The model answered with an error.",
        "invalid" => "The model answered with something that is no reply.",
        "too_large" => "The model's answer was too large.",
        _ => "The model gave no reply.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_word_a_shape_and_a_meaning() {
        for name in outcomes() {
            let html = Badge::outcome(name).to_string();
            assert!(html.contains(&outcome_word(name)), "{html}");
            assert!(html.contains("<svg") && html.contains("aria-hidden"), "{html}");
            assert!(outcome_meaning(name).ends_with('.'), "{name}");
        }
        let strange = Badge::outcome("<b>\u{202e}").to_string();
        assert!(strange.contains("&#60;b&#62;") && strange.contains("U+202E"), "{strange}");
    }

    #[test]
    fn votes_differ_by_more_than_colour() {
        let shapes =
            ["safe", "concern", "harmful", "abstained"].map(|v| Badge::vote(v, None).shape);
        for (at, shape) in shapes.iter().enumerate() {
            assert!(!shapes[..at].contains(shape), "{shape:?} stands for two votes");
        }
    }

    #[test]
    fn reasons_are_in_plain_words() {
        assert_eq!(reason("too_short").to_string(), "was too brief for someone in distress");
        assert_eq!(reason("unheard_of").to_string(), "unheard_of");
    }
}
