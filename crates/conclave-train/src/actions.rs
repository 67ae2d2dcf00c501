//! The model of actions: learned from the corpus alone, measured on its development rows.

use crate::fit::{Example, Fitted, Plan, fit};
use crate::rows::{self, Row};
use anyhow::Context;
use clap::Args;
use conclave_classify::{action_features, action_score};
use conclave_core::Score;
use conclave_detect::ActionClassifier;
use conclave_verifiers::{ActionJudge, Consequence, Consequences};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// What the model says.
const OUTPUTS: [&str; 1] = ["danger"];
/// The file of its weights.
const FILE: &str = "action.bin";
/// Of so many ordinary actions at most one may reach a line: for a concern, and to be sure.
const LINES: [usize; 4] = [20, 50, 100, 500];

/// The scores from which the model is heard beside a rule, by itself, and for certain, in hundredths.
const SCORES: [u8; 3] = [10, 30, 70];

/// Where rows come from, where weights go, and how they are learned.
#[derive(Debug, Args)]
pub struct Actions {
    /// The folder of the corpus, with train and dev in it.
    #[arg(long, default_value = "corpus")]
    corpus: PathBuf,
    /// Where the weights go.
    #[arg(long, default_value = "data/models")]
    out: PathBuf,
    /// Which part of the corpus is measured: dev, or test when all is chosen.
    #[arg(long, default_value = "dev")]
    measured: String,
    /// Also write what is said of every measured row, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    /// Buckets, as a power of two.
    #[arg(long, default_value_t = 18)]
    bits: u32,
    /// How often each row is seen.
    #[arg(long, default_value_t = 20)]
    epochs: u32,
    /// The size of the first steps.
    #[arg(long, default_value_t = 0.3)]
    rate: f32,
    /// How small first steps are: more is smaller.
    #[arg(long, default_value_t = 0.1)]
    caution: f32,
    /// How strongly weights are drawn to zero.
    #[arg(long, default_value_t = 3e-3)]
    decay: f32,
}

/// Learns the weights, writes them and prints what they find at which line.
///
/// # Errors
/// When rows cannot be read or weights cannot be written.
pub fn train(args: &Actions, out: &mut impl Write) -> anyhow::Result<()> {
    let train = rows::read_folder(&args.corpus.join("train"))?;
    let measured = rows::read_folder(&args.corpus.join(&args.measured))?;
    let plan = Plan {
        bits: args.bits,
        epochs: args.epochs,
        rate: args.rate,
        caution: args.caution,
        decay: args.decay,
    };
    let examples: Vec<_> = train.iter().filter_map(example).collect();
    let fitted = fit(&examples, OUTPUTS.len(), plan, || {});
    let packed = conclave_classify::pack(&OUTPUTS, plan.bits, &fitted.biases, &fitted.weights);
    let path = args.out.join(FILE);
    std::fs::write(&path, packed).with_context(|| format!("{}", path.display()))?;
    writeln!(out, "{} rows of train", examples.len())?;
    let judged = judge(&measured, fitted)?;
    print_lines(&judged, out)?;
    print_verdicts(&judged, out)?;
    if let Some(path) = &args.scores {
        let mut file = BufWriter::new(File::create(path)?);
        judged.iter().try_for_each(|row| row.write(&mut file))?;
        file.flush()?;
    }
    Ok(())
}

fn example(row: &Row) -> Option<Example> {
    let features = row.action_features()?;
    Some(Example { features, targets: vec![Some(row.is_harmful())], weights: vec![1.0] })
}

/// The weights as they were learned, before they are rounded.
struct Learned(Fitted);

impl Learned {
    fn logit(&self, features: &[u32]) -> f32 {
        self.0.logits(features).first().copied().unwrap_or_default()
    }
}

impl ActionClassifier for Learned {
    fn danger(&self, call: &str, asked: &str) -> Score {
        action_score(self.logit(&action_features(call, asked)))
    }
}

/// What is said of one row.
struct JudgedRow<'a> {
    row: &'a Row,
    logit: f32,
    by_rules: Consequence,
    by_both: Consequence,
}

impl JudgedRow<'_> {
    const fn consequence(&self, is_trained: bool) -> &Consequence {
        if is_trained { &self.by_both } else { &self.by_rules }
    }

    fn write(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let line = serde_json::json!({
            "id": self.row.id, "label": self.row.is_harmful(), "logit": self.logit,
            "rules": self.by_rules.harm.hundredths(), "both": self.by_both.harm.hundredths(),
            "named": self.by_both.rules,
        });
        Ok(writeln!(out, "{line}")?)
    }
}

fn judge(rows: &[Row], fitted: Fitted) -> anyhow::Result<Vec<JudgedRow<'_>>> {
    let rules = Consequences::builtin()?;
    let learned = Arc::new(Learned(fitted));
    let both = Consequences::builtin()?.with_classifier(Arc::clone(&learned) as _);
    let judged = rows.iter().filter_map(|row| {
        let logit = learned.logit(&row.action_features()?);
        let asked = row.said();
        let action = row.action(&asked)?;
        Some(JudgedRow { row, logit, by_rules: rules.weigh(action), by_both: both.weigh(action) })
    });
    Ok(judged.collect())
}

/// What the classifier finds above each line.
fn print_lines(judged: &[JudgedRow<'_>], out: &mut impl Write) -> anyhow::Result<()> {
    let logits = |harmful: bool| {
        let of_label = judged.iter().filter(|one| one.row.is_harmful() == harmful);
        let mut logits: Vec<_> = of_label.map(|one| one.logit).collect();
        logits.sort_by(|a, b| b.total_cmp(a));
        logits
    };
    let harmful = logits(true);
    let ordinary = logits(false);
    writeln!(out, "{} harmful and {} ordinary rows are measured", harmful.len(), ordinary.len())?;
    for one_in in LINES {
        let reach = ordinary.len() / one_in;
        let line = ordinary.get(reach).copied().unwrap_or_default();
        let found = harmful.iter().filter(|logit| **logit > line).count();
        writeln!(out, "1 in {one_in}: above {line:.3}, {found} harmful and {reach} ordinary")?;
    }
    for hundredths in SCORES {
        let above = |logits: &[f32]| {
            logits.iter().filter(|logit| action_score(**logit).hundredths() >= hundredths).count()
        };
        let found = above(&harmful);
        let alarms = above(&ordinary);
        writeln!(out, "score from {hundredths}: {found} harmful and {alarms} ordinary")?;
    }
    Ok(())
}

/// How many are at least a concern, and how many of these are harmful.
fn print_verdicts(judged: &[JudgedRow<'_>], out: &mut impl Write) -> anyhow::Result<()> {
    for (engine, is_trained) in [("rules", false), ("rules and classifier", true)] {
        for (label, is_harmful) in [("harmful", true), ("ordinary", false)] {
            let of_label = judged.iter().filter(|one| one.row.is_harmful() == is_harmful);
            let harms: Vec<_> = of_label.map(|one| one.consequence(is_trained)).collect();
            let from =
                |least: u8| harms.iter().filter(|one| one.harm.hundredths() >= least).count();
            let noted = harms.iter().filter(|one| one.penalty() > Score::ZERO).count();
            let count = harms.len();
            writeln!(
                out,
                "{engine}: of {count} {label} rows {} are harmful, {} rejected, {noted} noted",
                from(70),
                from(45)
            )?;
        }
    }
    Ok(())
}
