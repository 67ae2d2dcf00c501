//! Trains the classifiers from labelled rows and writes their weights.

mod ablate;
mod actions;
mod calibrate;
mod chance;
mod combine;
mod cores;
mod examples;
mod export;
mod faults;
mod fit;
mod frames;
mod progress;
mod rows;
mod rules;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use examples::TrainedModel;
use fit::{Fitted, Plan, fit};
use rows::Row;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The name before the split of the contrasts, beside train.jsonl.gz and dev.jsonl.gz.
const CONTRASTS: &str = "coconot";

/// Train the classifiers.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Learn the weights of the n-gram models.
    Ngrams(Ngrams),
    /// Learn the weights of the model of actions, and say where its lines are.
    Actions(actions::Actions),
    /// Draw the curves from logits to scores, with the weights that are built in.
    Calibrate(Calibrate),
    /// Write the rows as the models read them, one JSON object a line.
    Rows(ExportRows),
    /// Say what the corpus buys: learn without it, from it alone and with it, and measure each.
    Ablate(ablate::Ablate),
    /// Say how often each pattern rule fires on ordinary text and on the harm it is about.
    Rules(rules::Rules),
}

/// Where rows come from and weights go.
#[derive(Debug, Args)]
struct Places {
    /// The folder with train.jsonl.gz and dev.jsonl.gz.
    #[arg(long)]
    data: PathBuf,
    /// The folder of the corpus, with train and dev in it.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Rows of your own, in the same form.
    #[arg(long, value_name = "FILE")]
    extra: Vec<PathBuf>,
    /// Where the weights go.
    #[arg(long, default_value = "data/models")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct Ngrams {
    #[command(flatten)]
    places: Places,
    /// Also write what the weights say of every row of dev, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    #[command(flatten)]
    learning: Learning,
}

/// How the n-gram models learn.
#[derive(Debug, Args)]
struct Learning {
    /// Buckets, as a power of two.
    #[arg(long, default_value_t = 17)]
    bits: u32,
    /// How often each row is seen.
    #[arg(long, default_value_t = 6)]
    epochs: u32,
    /// The size of the first steps.
    #[arg(long, default_value_t = 1.0)]
    rate: f32,
    /// How small first steps are: more is smaller.
    #[arg(long, default_value_t = 0.1)]
    caution: f32,
    /// How strongly weights are drawn to zero.
    #[arg(long, default_value_t = 2e-6)]
    decay: f32,
}

#[derive(Debug, Args)]
struct Calibrate {
    #[command(flatten)]
    places: Places,
    /// Also write what every tier says of every row of dev, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    tiers: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ExportRows {
    #[command(flatten)]
    places: Places,
    /// Which part of the sets: train or dev.
    #[arg(long, default_value = "train")]
    split: String,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().step {
        Step::Ngrams(args) => ngrams(&args),
        Step::Actions(args) => actions::train(&args, &mut std::io::stdout().lock()),
        Step::Calibrate(args) => draw(&args),
        Step::Rows(args) => {
            let mut rows = args.places.rows(&args.split)?;
            for file in &args.places.extra {
                rows.extend(rows::read(file)?);
            }
            let mut out = BufWriter::new(std::io::stdout().lock());
            export::write(&rows, args.split == "train", &mut out)?;
            Ok(out.flush()?)
        }
        Step::Ablate(args) => ablate::ablate(&args),
        Step::Rules(args) => rules::try_rules(&args, &mut std::io::stdout().lock()),
    }
}

impl Places {
    /// The rows of a split of the public sets, of the contrasts where they are at hand, and of the corpus.
    fn rows(&self, split: &str) -> anyhow::Result<Vec<Row>> {
        let mut rows = rows::read(&self.data.join(format!("{split}.jsonl.gz")))?;
        let contrasts = self.data.join(format!("{CONTRASTS}_{split}.jsonl.gz"));
        if contrasts.exists() {
            rows.extend(rows::read(&contrasts)?);
        }
        if let Some(corpus) = &self.corpus {
            rows.extend(rows::read_folder(&corpus.join(split))?);
        }
        Ok(rows)
    }
}

impl Learning {
    const fn plan(&self) -> Plan {
        Plan {
            bits: self.bits,
            epochs: self.epochs,
            rate: self.rate,
            caution: self.caution,
            decay: self.decay,
        }
    }
}

fn ngrams(args: &Ngrams) -> anyhow::Result<()> {
    let mut train = args.places.rows("train")?;
    for file in &args.places.extra {
        train.extend(rows::read(file)?);
    }
    train.extend(frames::framed(&train));
    std::fs::create_dir_all(&args.places.out)?;
    let plan = args.learning.plan();
    let mut scores =
        args.scores.as_deref().map(std::fs::File::create).transpose()?.map(BufWriter::new);
    for model in [TrainedModel::Text, TrainedModel::Reply, TrainedModel::Drift] {
        let plan = Plan { bits: model.bits(plan.bits), ..plan };
        let fitted = learn(model.file(), model, &train, plan)?;
        write(&args.places.out.join(model.file()), &packed(model, &fitted, plan))?;
        if let Some(scores) = &mut scores {
            write_scores(scores, model, &fitted, &args.places.rows("dev")?)?;
        }
    }
    Ok(())
}

/// Learns a model from rows, with a bar for the reading and one for the learning.
fn learn(name: &str, model: TrainedModel, rows: &[Row], plan: Plan) -> anyhow::Result<Fitted> {
    let reading = progress::bar(&format!("{name}: read"), rows.len())?;
    let examples = model.examples(rows, || reading.inc(1));
    reading.finish_and_clear();
    let steps = examples.len().saturating_mul(usize::try_from(plan.epochs)?);
    let learning = progress::bar(&format!("{name}: learn"), steps)?;
    let fitted = fit(&examples, model.outputs().len(), plan, || learning.inc(1));
    learning.finish_and_clear();
    Ok(fitted)
}

/// The weights as they are shipped.
fn packed(model: TrainedModel, fitted: &Fitted, plan: Plan) -> Vec<u8> {
    conclave_classify::pack(model.outputs(), plan.bits, &fitted.biases, &fitted.weights)
}

fn write_scores(
    out: &mut impl Write,
    model: TrainedModel,
    fitted: &Fitted,
    rows: &[Row],
) -> anyhow::Result<()> {
    for row in rows {
        let Some(features) = model.features(row) else {
            continue;
        };
        let logits: BTreeMap<_, _> = model.outputs().iter().zip(fitted.logits(&features)).collect();
        let line = serde_json::json!({
            "id": row.id, "source": row.source, "task": row.task, "label": row.is_harmful(),
            "categories": row.categories, "language": row.language, "logits": logits,
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn draw(args: &Calibrate) -> anyhow::Result<()> {
    let mut tiers =
        args.tiers.as_deref().map(std::fs::File::create).transpose()?.map(BufWriter::new);
    let out = tiers.as_mut().map(|tiers| tiers as &mut dyn Write);
    let calibration = calibrate::calibrate(&args.places.rows("dev")?, out)?;
    if let Some(tiers) = &mut tiers {
        tiers.flush()?;
    }
    write(&args.places.out.join("calibration.toml"), toml::to_string(&calibration)?.as_bytes())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("{}", path.display()))
}
