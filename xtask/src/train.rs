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
    /// Train the encoder and the transformer anew as well: needs PyTorch, which is installed, and two hours or
    /// more.
    #[arg(long)]
    networks: bool,
}

/// Trains, calibrates and measures.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let data = args.data.canonicalize().with_context(|| format!("{}", args.data.display()))?;
    let mut extra = Vec::new();
    for file in &args.extra {
        extra.push(file.canonicalize().with_context(|| format!("{}", file.display()))?);
    }
    let trainer = |step: &str| {
        let mut command = trainer(step, &data);
        extra.iter().for_each(|file| {
            command.arg("--extra").arg(file);
        });
        command
    };
    process::run("training the n-gram models", &mut trainer("ngrams"))?;
    if args.networks {
        networks(&trainer)?;
    }
    process::run("calibrating", &mut trainer("calibrate"))?;
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

/// The stages of the transformer: first every source, then mostly the corpus and the contrasts.
const DEPTH_STAGES: [&[&str]; 3] = [
    &["--passes", "1"],
    &["--passes", "1", "--seed", "1", "--rate", "6e-5", "--frozen", "2"],
    &["--passes", "1", "--seed", "5", "--rate", "5e-5", "--frozen", "4", "--source-rows", "250"],
];
/// The stages of the encoder.
const ENCODER_STAGES: [&[&str]; 2] =
    [&["--passes", "4"], &["--passes", "2", "--rate", "2e-4", "--source-rows", "700"]];

/// Trains both networks and writes their weights, with the vectors that the encoder's test compares.
fn networks(trainer: &dyn Fn(&str) -> Command) -> anyhow::Result<()> {
    let python = setup::training_python()?;
    let base = setup::transformer_base()?;
    let folder = root().join("target/train");
    std::fs::create_dir_all(&folder)?;
    for split in ["train", "dev"] {
        let path = folder.join(format!("{split}.jsonl"));
        let file = std::fs::File::create(&path).with_context(|| format!("{}", path.display()))?;
        let mut rows = trainer("rows");
        process::run("writing the rows", rows.args(["--split", split]).stdout(file))?;
    }
    let script = |name: &str, step: &str| {
        let mut command = Command::new(&python);
        command.arg(root().join("train").join(name)).arg(step);
        command
    };
    let stages = |name: &str, weights: &Path, stages: &[&[&str]], base: Option<&Path>| {
        for (at, options) in stages.iter().enumerate() {
            let mut train = script(name, "train");
            train.arg("--rows").arg(folder.join("train.jsonl"));
            train.arg("--dev").arg(folder.join("dev.jsonl")).arg("--out").arg(weights);
            if let Some(base) = base {
                train.arg("--base").arg(base);
            }
            if at > 0 {
                train.arg("--start").arg(weights);
            }
            let what = format!("training with {name}, stage {} of {}", at + 1, stages.len());
            process::run(&what, train.args(*options))?;
        }
        anyhow::Ok(())
    };
    let models = root().join("data/models");
    let depth = folder.join("depth.pt");
    stages("depth.py", &depth, &DEPTH_STAGES, Some(&base))?;
    let mut export = script("depth.py", "export");
    export.arg("--model").arg(&depth).arg("--vocabulary").arg(base.join("vocab.txt"));
    process::run(
        "writing the transformer",
        export.arg("--out").arg(models.join("transformer.bin")),
    )?;
    let encoder = folder.join("encoder.pt");
    stages("encoder.py", &encoder, &ENCODER_STAGES, None)?;
    let mut export = script("encoder.py", "export");
    export.arg("--model").arg(&encoder).arg("--out").arg(models.join("encoder.bin"));
    process::run("writing the encoder", &mut export)?;
    let golden = root().join("crates/conclave-classify/tests/data/encoder");
    let mut vectors = script("encoder.py", "golden");
    vectors.arg("--model").arg(&encoder).arg("--texts").arg(golden.join("texts.txt"));
    vectors.arg("--out").arg(golden.join("vectors.bin"));
    process::run("writing its vectors", vectors.arg("--pieces").arg(golden.join("pieces.txt")))
}
