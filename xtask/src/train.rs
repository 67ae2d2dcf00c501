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

fn transformer(data: &Path) -> anyhow::Result<()> {
    let python = setup::training_python()?;
    let public = root().join("target/tier2-public.pt");
    let second_stage = root().join("target/tier2-corpus.pt");
    let weights = root().join("target/tier2.pt");
    let script = |step: &str| {
        let mut command = Command::new(&python);
        command.arg(root().join("train/tier2.py")).arg(step);
        command
    };
    let train = |out: &Path| {
        let mut command = script("train");
        command.arg("--data").arg(data).arg("--out").arg(out);
        command
    };
    process::run("training the transformer on the public sets", &mut train(&public))?;
    let mut second = train(&second_stage);
    second.arg("--corpus").arg(root().join("corpus")).arg("--start").arg(&public);
    second.args(["--corpus-times", "2", "--public-share", "0.15", "--rate", "5e-5"]);
    process::run("training it on with the corpus", &mut second)?;
    let mut average = script("average");
    average
        .arg("--first")
        .arg(&public)
        .arg("--second")
        .arg(&second_stage)
        .arg("--out")
        .arg(&weights);
    process::run("taking the middle of both", &mut average)?;
    let out = root().join("data/models/transformer.bin");
    process::run(
        "writing its weights",
        script("export").arg("--model").arg(&weights).arg("--out").arg(out),
    )
}
