//! Rows as the models read them, for whoever trains in another language: texts in plain form, with what each
//! row teaches and what it counts.

use crate::cores::on_all_cores;
use crate::examples::SourceWeights;
use crate::frames::framed;
use crate::rows::{REPLY_OUTPUTS, Row, TEXT_OUTPUTS};
use conclave_detect::plain_form;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// One row as it is written.
#[derive(Serialize)]
struct ExportedRow<'a> {
    id: &'a str,
    source: &'a str,
    task: &'a str,
    language: &'a str,
    categories: &'a [String],
    harmful: bool,
    weight: f32,
    /// What was said before a reply; empty where a text stands alone.
    said: String,
    judged: String,
    targets: BTreeMap<&'static str, bool>,
}

/// Writes every row that teaches something, one JSON object a line; with `frames`, some of them once more
/// inside a story, a part or a game.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(rows: &[Row], frames: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let weights = SourceWeights::count(rows);
    let copies = if frames { framed(rows) } else { Vec::new() };
    for rows in [rows, &copies] {
        for line in on_all_cores(rows, |row| export(row, weights.weight_of(row))) {
            if let Some(line) = line? {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(())
}

fn export(row: &Row, weight: f32) -> anyhow::Result<Option<String>> {
    let named = |outputs: &[&'static str], targets: Option<Vec<Option<bool>>>| {
        let known = outputs.iter().zip(targets.unwrap_or_default());
        known.filter_map(|(name, target)| Some((*name, target?))).collect::<BTreeMap<_, _>>()
    };
    let (said, judged, targets) = match &row.response {
        Some(reply) => {
            (plain_form(&row.said()).0, reply, named(&REPLY_OUTPUTS, row.reply_targets()))
        }
        None => (String::new(), &row.said(), named(&TEXT_OUTPUTS, row.text_targets())),
    };
    if targets.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::to_string(&ExportedRow {
        id: &row.id,
        source: &row.source,
        task: &row.task,
        language: &row.language,
        categories: &row.categories,
        harmful: row.is_harmful(),
        weight,
        said,
        judged: plain_form(judged).0,
        targets,
    })?))
}
