//! What the corpus buys: the models learned without it, from it alone and with it, each measured on
//! the same rows.
//!
//! **Invariant:** nothing that is measured is learned from: `train` teaches, the public `dev` and
//! the corpus's `test` are measured, and the corpus's `dev` is not read.

mod bootstrap;
mod figure;
mod measure;
mod report;
mod scores;

use crate::examples::TrainedModel;
use crate::fit::Plan;
use crate::rows::{self, Row};
use crate::{Learning, frames, learn, packed, progress};
use anyhow::{Context, bail, ensure};
use bootstrap::{Groups, RESAMPLES, compare};
use clap::Args;
use conclave_classify::Transformer;
use figure::Figure;
use report::{FigureLine, Report, Training};
use scores::{Output, Scores, Trained};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where rows come from, and how to learn and report.
#[derive(Debug, Args)]
pub struct Ablate {
    /// The folder with train.jsonl.gz and dev.jsonl.gz.
    #[arg(long)]
    data: PathBuf,
    /// The folder of the corpus, with train and test in it.
    #[arg(long)]
    corpus: PathBuf,
    /// A transformer that was trained on the same rows; NAME is public, corpus or both.
    #[arg(long, value_name = "NAME=FILE")]
    transformer: Vec<Given>,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Also write the table there.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    learning: Learning,
}

/// What is learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Public,
    Corpus,
    Both,
}

impl Set {
    const ALL: [Self; 3] = [Self::Public, Self::Corpus, Self::Both];

    const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Corpus => "corpus",
            Self::Both => "both",
        }
    }
}

/// A transformer's file, and the set it was trained on.
#[derive(Clone, Debug)]
struct Given {
    set: Set,
    file: PathBuf,
}

impl FromStr for Given {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, file) = text.split_once('=').context("it is NAME=FILE")?;
        let set = Set::ALL.into_iter().find(|set| set.name() == name);
        let set = set.context("NAME is public, corpus or both")?;
        Ok(Self { set, file: file.into() })
    }
}

/// Rows that are measured, with the figures on them.
struct Measured {
    name: &'static str,
    rows: Vec<Row>,
    figures: Vec<Figure>,
}

impl Measured {
    fn new(name: &'static str, mut rows: Vec<Row>, figures: fn(&[Row]) -> Vec<Figure>) -> Self {
        rows.retain(figure::is_measured);
        let figures = figures(&rows);
        Self { name, rows, figures }
    }
}

/// Learns, measures, and prints the table or JSON.
///
/// # Errors
/// When rows or a transformer cannot be read, or the report cannot be written.
pub fn ablate(args: &Ablate) -> anyhow::Result<()> {
    let report = measure(args)?;
    if let Some(path) = &args.out {
        crate::write(path, report.markdown().as_bytes())?;
    }
    let mut text = report.markdown();
    if args.json {
        text = serde_json::to_string_pretty(&report)? + "\n";
    }
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn measure(args: &Ablate) -> anyhow::Result<Report> {
    let seconds = transformers(&args.transformer)?;
    let public = some(rows::read(&args.data.join("train.jsonl.gz"))?, "public")?;
    let corpus = some(rows::read_folder(&args.corpus.join("train"))?, "corpus")?;
    let dev = rows::read(&args.data.join("dev.jsonl.gz"))?;
    let test = rows::read_folder(&args.corpus.join("test"))?;
    let sets = [
        Measured::new("dev", dev, figure::of_dev),
        Measured::new("corpus/test", test, figure::of_corpus),
    ];
    let mut trainings = Vec::new();
    let mut said: [Vec<Scores>; 2] = [Vec::new(), Vec::new()];
    for (set, second) in Set::ALL.into_iter().zip(seconds) {
        let train = framed(match set {
            Set::Public => public.clone(),
            Set::Corpus => corpus.clone(),
            Set::Both => [public.as_slice(), corpus.as_slice()].concat(),
        });
        let trained = trained(set, &train, args.learning.plan(), second)?;
        trainings.push(training(set, &train, &trained));
        for (measured, said) in sets.iter().zip(&mut said) {
            said.push(scored(set, &trained, measured)?);
        }
    }
    let mut figures = Vec::new();
    for (measured, said) in sets.iter().zip(&said) {
        figures.extend(lines(measured, said)?);
    }
    Ok(Report { resamples: RESAMPLES, trainings, figures })
}

fn some(rows: Vec<Row>, name: &str) -> anyhow::Result<Vec<Row>> {
    ensure!(!rows.is_empty(), "there is nothing to learn from in the {name} training rows");
    Ok(rows)
}

/// The transformers by the place of their set.
fn transformers(given: &[Given]) -> anyhow::Result<[Option<Transformer>; 3]> {
    let mut found = [const { None }; 3];
    for Given { set, file } in given {
        let place = &mut found[*set as usize];
        if place.replace(transformer(file)?).is_some() {
            bail!("there are two transformers for {}", set.name());
        }
    }
    Ok(found)
}

fn transformer(file: &Path) -> anyhow::Result<Transformer> {
    let bytes = std::fs::read(file).with_context(|| format!("{}", file.display()))?;
    // Weights are read in place, and these are needed until the program ends.
    let read = Transformer::parse(bytes.leak()).with_context(|| format!("{}", file.display()))?;
    for output in Output::ALL.map(Output::name) {
        let has = read.outputs().iter().any(|one| one == output);
        ensure!(has, "{} says nothing of {output}", file.display());
    }
    Ok(read)
}

/// The rows with the frames that `ngrams` gives them too.
fn framed(mut rows: Vec<Row>) -> Vec<Row> {
    rows.extend(frames::framed(&rows));
    rows
}

fn trained(
    set: Set,
    rows: &[Row],
    plan: Plan,
    second: Option<Transformer>,
) -> anyhow::Result<Trained> {
    let weights = |model: TrainedModel| {
        let name = format!("{} {}", set.name(), model.file());
        anyhow::Ok(packed(model, &learn(&name, model, rows, plan)?, plan))
    };
    Ok(Trained { text: weights(TrainedModel::Text)?, reply: weights(TrainedModel::Reply)?, second })
}

fn training(set: Set, rows: &[Row], trained: &Trained) -> Training {
    let untaught = |output: &Output| !rows.iter().any(|row| output.is_shown_by(row));
    Training {
        name: set.name(),
        rows: rows.len(),
        transformer: trained.second.is_some(),
        untaught: Output::ALL.into_iter().filter(untaught).map(Output::name).collect(),
    }
}

fn scored(set: Set, trained: &Trained, measured: &Measured) -> anyhow::Result<Scores> {
    let bar = progress::bar(&format!("{} on {}", set.name(), measured.name), measured.rows.len())?;
    let scores = trained.scores(&measured.rows, || bar.inc(1))?;
    bar.finish_and_clear();
    Ok(scores)
}

fn lines(measured: &Measured, said: &[Scores]) -> anyhow::Result<Vec<FigureLine>> {
    let [public, corpus, both] = said else {
        bail!("three trainings are compared, not {}", said.len());
    };
    let bar = progress::bar(&format!("intervals on {}", measured.name), measured.figures.len())?;
    let line = |figure: &Figure| {
        let groups = |scores: &Scores| Groups {
            measured: scores.of(figure.output, &figure.measured),
            against: scores.of(figure.output, &figure.against),
        };
        let compared = compare(figure.measure, &[public, corpus, both].map(groups));
        bar.inc(1);
        FigureLine {
            set: measured.name,
            name: figure.name.clone(),
            measured: figure.measured.len(),
            against: figure.against.len(),
            compared,
        }
    };
    let lines = crate::cores::on_all_cores(&measured.figures, line);
    bar.finish_and_clear();
    Ok(lines)
}

#[cfg(test)]
mod tests;
