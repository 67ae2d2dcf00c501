//! Field and figure: how replies are shaped and how the system itself speaks.
//!
//! **Invariant:** pure: no IO, clock, randomness or await. The words are data files compiled in;
//! the same input and seed give the same words for ever.
//!
//! **Invariant:** constructors may fail on bad data; once built, nothing here can fail.

mod bilingual;
mod budget_notices;
mod contribution_phrases;
mod doubt_advisory;
mod draw;
mod error;
mod explanation_sentences;
mod field;
mod figure;
mod guard_sentences;
mod history_notes;
mod language;
mod lexicon;
mod prompt;
mod resources;
mod responder;
mod why_page;

pub use budget_notices::{BudgetNotice, NamedLimit, budget_notice};
pub use contribution_phrases::{ContributionPhrase, FixedPhrase, sensor_phrase};
pub use doubt_advisory::doubt_advisory;
pub use error::VoiceError;
pub use explanation_sentences::{ExplanationSentence, FixedSentence, reason_phrase};
pub use field::{Elements, Field, FieldState, Layer, Sensor, SensorState};
pub use figure::{Situation, Speech, Vector, Voices};
pub use guard_sentences::guard_sentence;
pub use history_notes::{data_of_tool, withheld_note};
pub use language::Language;
pub use prompt::{Shaping, shape};
pub use resources::{CrisisLine, Date, Freshness, Resources, Stale};
pub use responder::Responder;
pub use why_page::{
    AppealChoice, AppealRefusal, AppealSentence, WhyProblem, WhyProblemTitle, WhyText,
    check_phrase, day_phrase,
};
