//! From rows to what a model learns from: features, targets, and how much each counts.

use crate::cores::on_all_cores;
use crate::fit::Example;
use crate::rows::{DRIFT_OUTPUTS, REPLY_OUTPUTS, Row, TEXT_OUTPUTS};
use conclave_classify::{Features, Voice};
use conclave_detect::plain_form;
use std::collections::BTreeMap;

/// More rows than this of one source and label share their weight.
const SOURCE_ROWS: f32 = 2000.0;
/// What a row of the corpus in another language than English counts: the public sets have little of it.
const ALONE: f32 = 1.5;
/// What a harmless contrast counts: there are few, and they teach most (`train/rows.py` says the same).
const CONTRAST: f32 = 6.0;
/// What a row counts for an output it was not collected for: it only shows what is ordinary.
const BYSTANDER: f32 = 0.1;
/// How far rare targets are raised towards common ones: not at all is 0, wholly is 1.
const BALANCE: f32 = 0.8;

/// Which of the models.
#[derive(Clone, Copy, Debug)]
pub enum TrainedModel {
    /// Of a person's texts.
    Text,
    /// Of replies in the light of what was asked.
    Reply,
    /// Of what a message shows of a slow movement.
    Drift,
}

impl TrainedModel {
    /// The names of what it says, in order.
    pub const fn outputs(self) -> &'static [&'static str] {
        match self {
            Self::Text => &TEXT_OUTPUTS,
            Self::Reply => &REPLY_OUTPUTS,
            Self::Drift => &DRIFT_OUTPUTS,
        }
    }

    /// The name of its file.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Text => "text.bin",
            Self::Reply => "reply.bin",
            Self::Drift => "drift.bin",
        }
    }

    /// Its buckets, as a power of two: what few rows teach needs few.
    pub fn bits(self, wanted: u32) -> u32 {
        match self {
            Self::Text | Self::Reply => wanted,
            Self::Drift => wanted.min(15),
        }
    }

    /// The features of a row, if it is one for this model.
    pub fn features(self, row: &Row) -> Option<Vec<u32>> {
        let mut features = Features::default();
        match (self, &row.response) {
            (Self::Text | Self::Drift, None) => {
                features.read(&plain_form(&row.said()).0, Voice::Text);
            }
            (Self::Reply, Some(reply)) => {
                features.read(&plain_form(reply).0, Voice::Reply);
                features.read(&plain_form(&row.said()).0, Voice::Asked);
            }
            _ => return None,
        }
        Some(features.finish())
    }

    /// What a row teaches about each output, if it is one for this model.
    pub fn targets(self, row: &Row) -> Option<Vec<Option<bool>>> {
        match self {
            Self::Text => row.text_targets(),
            Self::Reply => row.reply_targets(),
            Self::Drift => row.drift_targets(),
        }
    }

    /// What a row counts for an output, besides its weight.
    fn bystander(self, row: &Row, output: &str) -> f32 {
        match (self, output) {
            (Self::Drift, _) if row.task != "drift" => BYSTANDER,
            (Self::Text, "crisis" | "injection") if row.task != output => BYSTANDER,
            _ => 1.0,
        }
    }

    /// What can be learned from these rows, in their order; `seen` is told of each.
    pub fn examples(self, rows: &[Row], seen: impl Fn() + Sync) -> Vec<Example> {
        let weights = SourceWeights::count(rows);
        let example = |row: &Row| {
            seen();
            let targets = self.targets(row)?;
            let share = |output: &&str| weights.weight_of(row) * self.bystander(row, output);
            let weights = self.outputs().iter().map(share).collect();
            Some(Example { features: self.features(row)?, targets, weights })
        };
        let mut examples: Vec<_> = on_all_cores(rows, example).into_iter().flatten().collect();
        balance(&mut examples, self.outputs().len());
        examples
    }
}

/// What a row counts, so that no source and no label of one outweighs the rest.
pub struct SourceWeights<'a> {
    rows: BTreeMap<(&'a str, bool), f32>,
}

impl<'a> SourceWeights<'a> {
    /// Counts the rows of each source and label.
    pub fn count(rows: &'a [Row]) -> Self {
        let mut counts: BTreeMap<(&str, bool), f32> = BTreeMap::new();
        for row in rows {
            *counts.entry((&row.source, row.is_harmful())).or_default() += 1.0;
        }
        Self { rows: counts }
    }

    /// What this row counts.
    pub fn weight_of(&self, row: &Row) -> f32 {
        let rows = self.rows.get(&(row.source.as_str(), row.is_harmful())).copied().unwrap_or(1.0);
        let alone = row.source.starts_with("corpus_") && row.language != "en";
        let is_contrast = row.source.starts_with("coconot_");
        let factor = if is_contrast {
            CONTRAST
        } else if alone {
            ALONE
        } else {
            1.0
        };
        factor * (SOURCE_ROWS / rows).min(1.0).sqrt()
    }
}

/// Rare outputs are learned as well as common ones.
fn balance(examples: &mut [Example], outputs: usize) {
    for output in 0..outputs {
        let mut sums = [0.0f32; 2];
        for one in examples.iter() {
            if let Some(target) = one.targets[output] {
                sums[usize::from(target)] += one.weights[output];
            }
        }
        let factor = (sums[0] / sums[1].max(1.0)).powf(BALANCE).clamp(0.2, 50.0);
        for one in examples.iter_mut().filter(|one| one.targets[output] == Some(true)) {
            one.weights[output] *= factor;
        }
    }
}
