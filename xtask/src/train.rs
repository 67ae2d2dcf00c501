//! `cargo xtask train`: from labelled rows to weights, curves and figures.

use crate::process::{self, cargo, root};
use crate::setup;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to train with.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder with train.jsonl.gz and dev.jsonl.gz.
    #[arg(long, env = "CONCLAVE_DATASETS")]
    data: PathBuf,
    /// Rows of your own, in the same form, beside the public sets and the corpus.
    #[arg(long, value_name = "FILE")]
    extra: Vec<PathBuf>,
    /// Train the transformer anew as well: needs PyTorch, which is installed, and an hour or more.
    #[arg(long)]
    transformer: bool,
}

/// Trains, calibrates and measures.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let data = args.data.canonicalize().with_context(|| format!("{}", args.data.display()))?;
    let mut ngrams = trainer("ngrams", &data);
    for file in &args.extra {
        ngrams
            .arg("--extra")
            .arg(file.canonicalize().with_context(|| format!("{}", file.display()))?);
    }
    process::run("training the n-gram models", &mut ngrams)?;
    if args.transformer {
        transformer(&data)?;
    }
    process::run("calibrating", &mut trainer("calibrate", &data))?;
    let mut eval = cargo();
    eval.args(["run", "--release", "--quiet", "--", "eval"]).arg(data.join("dev.jsonl.gz"));
    process::run("measuring on dev", eval.arg("--report").arg(root().join("target/eval.html")))
}

fn trainer(step: &str, data: &Path) -> Command {
    let mut command = cargo();
    command
        .args(["run", "--release", "--quiet", "-p", "conclave-train", "--", step, "--data"])
        .arg(data);
    let corpus = root().join("corpus");
    if corpus.exists() {
        command.arg("--corpus").arg(corpus);
    }
    command
}

/// The stages of the second tier: what is said of it, and how much of the public sets and of the corpus it
/// reads. The corpus comes in slowly, so that what the public sets taught is not lost.
const STAGES: [(&str, &[&str]); 5] = [
    ("on the public sets", &[]),
    ("on both", &["--corpus-times", "1", "--public-share", "0.6", "--rate", "7e-5"]),
    ("mostly on the corpus", &["--corpus-times", "2", "--public-share", "0.25", "--rate", "6e-5"]),
    ("once more on it", &["--corpus-times", "3", "--public-share", "0.25", "--rate", "7e-5"]),
    (
        "on it and the rest of the public sets",
        &["--corpus-times", "3", "--public-skip", "0.6", "--public-share", "0.3", "--rate", "6e-5"],
    ),
];

fn transformer(data: &Path) -> anyhow::Result<()> {
    let python = setup::training_python()?;
    let weights = root().join("target/tier2.pt");
    let script = |step: &str| {
        let mut command = Command::new(&python);
        command.arg(root().join("train/tier2.py")).arg(step);
        command
    };
    let before = root().join("target/tier2-before.pt");
    for (at, (what, options)) in STAGES.iter().enumerate() {
        if at + 1 == STAGES.len() {
            std::fs::copy(&weights, &before)
                .context("keeping the weights before the last stage")?;
        }
        let mut train = script("train");
        train.arg("--data").arg(data).arg("--out").arg(&weights).args(*options);
        if at > 0 {
            train.arg("--corpus").arg(root().join("corpus")).arg("--start").arg(&weights);
        }
        process::run(&format!("training the transformer {what}"), &mut train)?;
    }
    let mut mean = script("mean");
    mean.arg("--models").args([&before, &weights]).arg("--out").arg(&weights);
    process::run("taking the mean of the last two stages", &mut mean)?;
    let mut heads = script("heads");
    heads.arg("--data").arg(data).arg("--corpus").arg(root().join("corpus"));
    heads.arg("--model").arg(&weights).arg("--out").arg(&weights);
    process::run("fitting the heads of manner", &mut heads)?;
    let out = root().join("data/models/transformer.bin");
    process::run(
        "writing its weights",
        script("export").arg("--model").arg(&weights).arg("--out").arg(out),
    )
}
