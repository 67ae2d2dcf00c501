//! What the built-in models say of every reply of dev, for choosing.

use crate::cores::on_all_cores;
use crate::rows::Row;
use conclave_classify::{Ensemble, Second};
use conclave_detect::{TextClassifier, plain_form};
use std::io::Write;

/// Writes one JSON object for each reply: its row, and the scores of harm and of each fault.
///
/// # Errors
/// When the built-in weights cannot be read or `out` cannot be written.
pub fn write(rows: &[Row], out: &mut impl Write) -> anyhow::Result<()> {
    let models = Ensemble::builtin(Second::Unsure)?;
    let replies: Vec<&Row> = rows.iter().filter(|row| row.response.is_some()).collect();
    let scores = on_all_cores(&replies, |row| {
        let reply = row.response.as_deref().unwrap_or_default();
        let ((asked, _), (reply, language)) = (plain_form(&row.said()), plain_form(reply));
        models.reply(&asked, &reply, language)
    });
    for (row, score) in replies.iter().zip(scores) {
        let score = score?;
        let line = serde_json::json!({
            "id": row.id, "source": row.source, "label": row.is_harmful(),
            "categories": row.categories, "language": row.language, "score": score,
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}
