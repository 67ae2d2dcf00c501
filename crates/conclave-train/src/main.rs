//! Trains the classifiers from labelled rows and writes their weights.

mod fit;
mod rows;

use anyhow::Context;
use clap::Parser;
use conclave_classify::{Features, Voice, pack};
use conclave_detect::plain_form;
use fit::{Example, Fitted, Plan, fit};
use rows::{REPLY_OUTPUTS, Row, TEXT_OUTPUTS};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train the n-gram models.
#[derive(Debug, Parser)]
struct Args {
    /// The folder with train.jsonl.gz and dev.jsonl.gz.
    #[arg(long)]
    data: PathBuf,
    /// The folder of the corpus.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Rows of your own, in the same form.
    #[arg(long)]
    extra: Vec<PathBuf>,
    /// Where the weights go.
    #[arg(long, default_value = "data/models")]
    out: PathBuf,
    /// Writes the logits of dev, and of the held-out folds, here.
    #[arg(long)]
    dump: Option<PathBuf>,
    /// Buckets as a power of two.
    #[arg(long, default_value_t = 17)]
    bits: u32,
    #[arg(long, default_value_t = 5)]
    epochs: u32,
    #[arg(long, default_value_t = 0.25)]
    rate: f32,
    #[arg(long, default_value_t = 2e-6)]
    decay: f32,
    #[arg(long, default_value_t = 2000.0)]
    cap: f32,
    /// Also learn without each fifth of the sources, and dump what that says of them.
    #[arg(long)]
    folds: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut train = rows::read(&args.data.join("train.jsonl.gz"))?;
    if let Some(corpus) = &args.corpus {
        for file in rows::files(&corpus.join("train"))? {
            train.extend(rows::read(&file)?);
        }
    }
    for file in &args.extra {
        train.extend(rows::read(file)?);
    }
    let dev = rows::read(&args.data.join("dev.jsonl.gz"))?;
    let plan = Plan { bits: args.bits, epochs: args.epochs, rate: args.rate, decay: args.decay };
    std::fs::create_dir_all(&args.out)?;
    let mut dump =
        args.dump.as_deref().map(std::fs::File::create).transpose()?.map(std::io::BufWriter::new);
    for kind in [Model::Text, Model::Reply] {
        let examples = kind.examples(&train, args.cap);
        let all: Vec<&Example> = examples.iter().map(|(_, one)| one).collect();
        let fitted = fit(&all, kind.outputs().len(), plan, || {});
        let bytes = pack(kind.outputs(), plan.bits, &fitted.biases, &fitted.weights);
        write(&args.out.join(kind.file()), &bytes)?;
        if let Some(dump) = &mut dump {
            for row in &dev {
                if let Some(features) = kind.features(row) {
                    line(dump, "dev", row, kind, &fitted, &features)?;
                }
            }
            for fold in (0..5).filter(|_| args.folds) {
                let rest: Vec<&Example> = examples
                    .iter()
                    .filter(|(row, _)| fold_of(row) != fold)
                    .map(|(_, one)| one)
                    .collect();
                let fitted = fit(&rest, kind.outputs().len(), plan, || {});
                for (row, example) in examples.iter().filter(|(row, _)| fold_of(row) == fold) {
                    line(dump, "fold", row, kind, &fitted, &example.features)?;
                }
            }
        }
    }
    Ok(())
}

fn fold_of(row: &Row) -> u32 {
    row.source.bytes().fold(7u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)) % 5
}

fn line(
    out: &mut impl Write,
    split: &str,
    row: &Row,
    kind: Model,
    fitted: &Fitted,
    features: &[u32],
) -> anyhow::Result<()> {
    let logits = fitted.logits(features);
    let named: BTreeMap<&str, f32> = kind.outputs().iter().copied().zip(logits).collect();
    serde_json::to_writer(
        &mut *out,
        &serde_json::json!({"split": split, "id": row.id, "source": row.source, "task": row.task,
        "label": row.is_harmful(), "categories": row.categories, "language": row.language, "logits": named}),
    )?;
    out.write_all(b"\n")?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Model {
    Text,
    Reply,
}

impl Model {
    const fn outputs(self) -> &'static [&'static str] {
        match self {
            Self::Text => &TEXT_OUTPUTS,
            Self::Reply => &REPLY_OUTPUTS,
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Text => "text.bin",
            Self::Reply => "reply.bin",
        }
    }

    fn features(self, row: &Row) -> Option<Vec<u32>> {
        let mut features = Features::default();
        match self {
            Self::Text => {
                if row.response.is_some() {
                    return None;
                }
                features.read(&plain_form(&row.said()).0, Voice::Text);
            }
            Self::Reply => {
                let reply = row.response.as_ref()?;
                features.read(&plain_form(reply).0, Voice::Reply);
                features.read(&plain_form(&row.said()).0, Voice::Asked);
            }
        }
        Some(features.finish())
    }

    fn examples(self, rows: &[Row], cap: f32) -> Vec<(&Row, Example)> {
        let mut counts: BTreeMap<(&str, bool), f32> = BTreeMap::new();
        for row in rows {
            *counts.entry((&row.source, row.is_harmful())).or_default() += 1.0;
        }
        let mut out = Vec::new();
        for row in rows {
            let targets = match self {
                Self::Text => row.text_targets(),
                Self::Reply => row.reply_targets(),
            };
            if let (Some(targets), Some(features)) = (targets, self.features(row)) {
                let n = counts[&(row.source.as_str(), row.is_harmful())];
                let weight = (cap / n).min(1.0).sqrt();
                let weights = vec![weight; targets.len()];
                out.push((row, Example { features, targets, weights }));
            }
        }
        balance(&mut out, self.outputs().len());
        out
    }
}

/// Rare outputs are learned as well as common ones.
fn balance(examples: &mut [(&Row, Example)], outputs: usize) {
    for output in 0..outputs {
        let mut sums = [0.0f32; 2];
        for (_, one) in examples.iter() {
            if let Some(target) = one.targets[output] {
                sums[usize::from(target)] += one.weights[output];
            }
        }
        let factor = (sums[0] / sums[1].max(1.0)).powf(0.7).clamp(0.2, 30.0);
        for (_, one) in examples.iter_mut() {
            if one.targets[output] == Some(true) {
                one.weights[output] *= factor;
            }
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("{}", path.display()))
}
