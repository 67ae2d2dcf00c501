//! Every pattern rule on trial: how often it fires on ordinary text, and on the harm it is about.
//!
//! **Invariant:** only rows of training are read; what is kept for choosing and testing stays unseen.

mod record;
mod side;
mod table;
#[cfg(test)]
mod tests;

use crate::cores::on_all_cores;
use crate::progress;
use crate::rows::{self, Row};
use clap::Args;
use conclave_core::{Category, Mode};
use conclave_detect::{Detector, Reading};
use record::{RuleRecord, Tally};
use side::RuleGroups;
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The rows of the public sets that train.
const PUBLIC_FILES: [&str; 2] = ["train.jsonl.gz", "coconot_train.jsonl.gz"];

/// Where the rows of the trial come from, and how its result is written.
#[derive(Debug, Args)]
pub struct Rules {
    /// The folder with train.jsonl.gz and coconot_train.jsonl.gz.
    #[arg(long)]
    data: PathBuf,
    /// The folder of the corpus, with train in it.
    #[arg(long)]
    corpus: PathBuf,
    /// Write JSON instead of a Markdown page.
    #[arg(long)]
    json: bool,
}

/// Tries every rule and writes what was counted.
///
/// # Errors
/// When rows cannot be read or the result cannot be written.
pub fn try_rules(args: &Rules, out: &mut impl Write) -> anyhow::Result<()> {
    let mut rows = public_rows(&args.data)?;
    rows.extend(rows::read_folder(&args.corpus.join("train"))?);
    let trial = Trial::hold(&rows)?;
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &trial.records)?;
        writeln!(out)?;
        return Ok(());
    }
    table::write(out, &trial)
}

fn public_rows(folder: &Path) -> anyhow::Result<Vec<Row>> {
    let read = PUBLIC_FILES.iter().map(|file| rows::read(&folder.join(file)));
    Ok(read.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The rules, worst first, and the texts they were tried on.
pub struct Trial {
    pub records: Vec<RuleRecord>,
    /// What harm rules were tried on; the others leave out what nobody labelled for them.
    pub texts: Tally,
}

impl Trial {
    /// Reads every row with the patterns alone and counts for each rule.
    ///
    /// # Errors
    /// When a built-in pattern file is broken.
    pub fn hold(rows: &[Row]) -> anyhow::Result<Self> {
        let detector = Detector::builtin()?;
        let rows: Vec<&Row> = rows.iter().filter(|row| side::is_tried(row)).collect();
        let bar = progress::bar("rules: read", rows.len())?;
        let fired = on_all_cores(&rows, |row| {
            bar.inc(1);
            fired_rules(&detector.read(&row.said(), Mode::Normal))
        });
        bar.finish_and_clear();
        let mut by_rule: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, sources) in fired.iter().enumerate() {
            for source in sources {
                by_rule.entry(source).or_default().push(at);
            }
        }
        let mut texts: HashMap<RuleGroups, Tally> = HashMap::new();
        let mut records = Vec::new();
        for rule in detector.rules() {
            let groups = RuleGroups::of_categories(rule.categories);
            let tried = *texts
                .entry(groups.clone())
                .or_insert_with(|| Tally::of_rows(rows.iter().copied(), &groups));
            let fired = by_rule.get(rule.source).map(Vec::as_slice).unwrap_or_default();
            let fired = Tally::of_rows(fired.iter().map(|at| rows[*at]), &groups);
            records.push(RuleRecord::new(rule, fired, tried));
        }
        records.sort_by(RuleRecord::worst_first);
        let texts =
            Tally::of_rows(rows.iter().copied(), &RuleGroups::of_categories(&[Category::Violence]));
        Ok(Self { records, texts })
    }
}

/// The rules that fired in a reading, through a disguise or not, each once.
fn fired_rules(reading: &Reading) -> BTreeSet<String> {
    let plain =
        |source: &str| source.split_once(" through ").map_or(source, |(rule, _)| rule).to_owned();
    reading.signals.iter().map(|signal| plain(&signal.source)).collect()
}
