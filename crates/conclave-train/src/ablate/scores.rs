//! What one training says of rows: n-grams as they would ship, and a transformer if one is given.
//!
//! **Invariant:** scores stand in the order of the rows, and one set's scores are comparable with
//! each other: where the transformer does not know a text, its mean over those that it knows
//! stands in.

use crate::cores::on_all_cores;
use crate::examples::TrainedModel;
use crate::rows::Row;
use conclave_classify::{Linear, Transformer};
use conclave_detect::plain_form;

/// The transformer cannot judge a text of which it knows less than this share, as in the engine.
const UNDERSTANDS_FROM: f32 = 0.8;

/// What the n-grams count for crisis, of which a transformer knows more.
const CRISIS_FIRST: f32 = 0.5;

/// A question that both tiers answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Harm of a text.
    Request,
    /// A person who needs help.
    Crisis,
    /// Overriding instructions.
    Injection,
    /// Harm of a reply.
    Reply,
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Request, Self::Crisis, Self::Injection, Self::Reply];

    /// Its name in both tiers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Crisis => "crisis",
            Self::Injection => "injection",
            Self::Reply => "reply",
        }
    }

    /// Whether it is asked of this row.
    #[must_use]
    pub fn reads(self, row: &Row) -> bool {
        (self == Self::Reply) == row.response.is_some()
    }

    /// Whether this row shows what the output is to say yes to.
    #[must_use]
    pub fn is_shown_by(self, row: &Row) -> bool {
        let model = if self == Self::Reply { TrainedModel::Reply } else { TrainedModel::Text };
        let targets = model.targets(row).unwrap_or_default();
        let mut named = model.outputs().iter().zip(targets);
        named.any(|(name, target)| *name == self.name() && target == Some(true))
    }

    /// What the first tier's logit counts beside the second's.
    const fn first_weight(self) -> f32 {
        match self {
            Self::Crisis => CRISIS_FIRST,
            Self::Request | Self::Injection | Self::Reply => 1.0,
        }
    }
}

/// What was learned from one set of rows.
#[derive(Debug)]
pub struct Trained {
    /// The packed model of texts.
    pub text: Vec<u8>,
    /// The packed model of replies.
    pub reply: Vec<u8>,
    /// The transformer, if one was given.
    pub second: Option<Transformer>,
}

/// What one training says, by output and row.
#[derive(Clone, Debug)]
pub struct Scores([Vec<f32>; 4]);

/// The logits of both tiers.
type Logits = (f32, Option<f32>);

impl Trained {
    /// Reads every row; `seen` is told of each.
    ///
    /// # Errors
    /// When the packed models are broken.
    pub fn scores(&self, rows: &[Row], seen: impl Fn() + Sync) -> anyhow::Result<Scores> {
        let (text, reply) = (Linear::parse(&self.text)?, Linear::parse(&self.reply)?);
        let logits = on_all_cores(rows, |row| {
            seen();
            match row.response {
                None => self.logits(TrainedModel::Text, &text, row),
                Some(_) => self.logits(TrainedModel::Reply, &reply, row),
            }
        });
        let logits = logits.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let of = |output: Output| {
            let column: Vec<_> = logits.iter().map(|row| row[output as usize]).collect();
            sums(&column, output.first_weight())
        };
        Ok(Scores(Output::ALL.map(of)))
    }

    fn logits(
        &self,
        model: TrainedModel,
        first: &Linear<'_>,
        row: &Row,
    ) -> anyhow::Result<[Option<Logits>; 4]> {
        let first_says = first.logits(&model.features(row).unwrap_or_default());
        let second_says = match &self.second {
            Some(second) => asked(second, row)?.map(|logits| (second.outputs(), logits)),
            None => None,
        };
        Ok(Output::ALL.map(|output| {
            let second = second_says
                .as_ref()
                .and_then(|(outputs, logits)| logit(outputs, logits, output.name()));
            let first = logit(first.outputs(), &first_says, output.name())?;
            output.reads(row).then_some((first, second))
        }))
    }
}

impl Scores {
    /// The scores of these rows.
    #[must_use]
    pub fn of(&self, output: Output, rows: &[usize]) -> Vec<f32> {
        let scores = &self.0[output as usize];
        rows.iter().filter_map(|row| scores.get(*row).copied()).collect()
    }
}

fn asked(second: &Transformer, row: &Row) -> anyhow::Result<Option<Vec<f32>>> {
    let (said, _) = plain_form(&row.said());
    Ok(match &row.response {
        None => second.logits_if_known("", &said, UNDERSTANDS_FROM)?,
        Some(reply) => second.logits_if_known(&said, &plain_form(reply).0, UNDERSTANDS_FROM)?,
    })
}

fn logit(outputs: &[String], logits: &[f32], name: &str) -> Option<f32> {
    outputs.iter().position(|output| output == name).and_then(|at| logits.get(at)).copied()
}

/// The sum of both tiers for each row; not a number where the output is not asked of it.
fn sums(rows: &[Option<Logits>], first_weight: f32) -> Vec<f32> {
    let known = || rows.iter().flatten().filter_map(|(_, second)| *second);
    let count = known().fold(0.0f32, |count, _| count + 1.0);
    let mean = known().sum::<f32>() / count.max(1.0);
    let sum = |(first, second): Logits| first_weight * first + second.unwrap_or(mean);
    rows.iter().map(|row| row.map_or(f32::NAN, sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_stands_in_for_what_the_transformer_does_not_know() {
        let rows = [Some((1.0, Some(4.0))), Some((2.0, None)), None, Some((3.0, Some(-2.0)))];
        let found = sums(&rows, 0.5);
        assert_eq!([found[0], found[1], found[3]], [4.5, 2.0, -0.5]);
        assert!(found[2].is_nan());
    }

    #[test]
    fn without_a_transformer_the_first_tier_speaks_alone() {
        assert_eq!(sums(&[Some((1.0, None)), Some((-3.0, None))], 1.0), [1.0, -3.0]);
        assert!(sums(&[], 1.0).is_empty());
    }

    #[test]
    fn outputs_stand_where_their_scores_are() {
        assert_eq!(Output::ALL.map(|output| output as usize), [0, 1, 2, 3]);
    }
}
