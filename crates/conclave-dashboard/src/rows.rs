//! Decisions as lines of a table.

use crate::figure::{self, Moment};
use crate::label::{Badge, outcome_word};
use crate::text::Text;
use askama::Template;
use askama::filters::HtmlSafe;
use conclave_engine::DecisionRow;

/// One line.
struct Row {
    id: String,
    moment: Moment,
    outcome: Badge,
    crisis: Option<Badge>,
    action: Text,
    score: Option<String>,
    attempts: u32,
    scrutiny: Text,
    model: Text,
    latency: String,
}

/// A table of decisions.
#[derive(Template)]
#[template(path = "parts/rows.html")]
pub(crate) struct Rows {
    caption: &'static str,
    rows: Vec<Row>,
}

impl HtmlSafe for Rows {}

impl Rows {
    /// A table of these.
    pub(crate) fn new<'a>(
        caption: &'static str,
        rows: impl IntoIterator<Item = &'a DecisionRow>,
    ) -> Self {
        Self { caption, rows: rows.into_iter().map(Row::of).collect() }
    }

    /// Whether there is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Row {
    fn of(row: &DecisionRow) -> Self {
        Self {
            id: row.id.to_string(),
            moment: Moment::at(row.timestamp_ms),
            outcome: Badge::outcome(&row.outcome),
            crisis: row.crisis.then(Badge::crisis),
            action: Text::short(&outcome_word(&row.action)),
            score: row.safety_score.map(figure::score),
            attempts: row.attempts,
            scrutiny: Text::short(&outcome_word(&row.scrutiny)),
            model: Text::short(&row.model),
            latency: figure::duration(row.latency_ms.into()),
        }
    }
}
