//! `cargo xtask bench instructions`: how many instructions each part of a turn takes.
//!
//! **Invariant:** a busy machine does not change what is counted. The instructions of many rounds less those of few
//! are what the rounds took, the start of the program left out.

use crate::house;
use crate::process::{exists, print, root};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The parts, as `conclave bench path` names them.
const STAGES: [&str; 5] = ["read", "reply", "panel", "field", "seal"];
/// Few rounds, and many.
const ROUNDS: (u32, u32) = (10, 60);
/// How much more than on record is too much, in hundredths.
const MORE_MAX: u64 = 10;

/// What becomes of the counts.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Put these counts on record instead of comparing them.
    #[arg(long)]
    record: bool,
    /// The program to count in; built if it is not given.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

type Counts = BTreeMap<String, u64>;

/// Counts, and compares with what is on record or replaces it.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if !exists("valgrind") {
        bail!("instructions are counted by valgrind: please install it first");
    }
    let program = match &args.program {
        Some(program) => program.clone(),
        None => {
            house::build()?;
            house::conclave()
        }
    };
    let mut counts = Counts::new();
    for stage in STAGES {
        let (few, many) = (count(&program, stage, ROUNDS.0)?, count(&program, stage, ROUNDS.1)?);
        let each = many.saturating_sub(few) / u64::from(ROUNDS.1 - ROUNDS.0);
        counts.insert(stage.to_owned(), each);
    }
    if args.record {
        let text = serde_json::to_string_pretty(&counts)?;
        std::fs::write(record(), text + "\n")?;
        counts.iter().for_each(|(stage, count)| print(&format!("{stage:<8} {count:>10}")));
        return Ok(());
    }
    let known = std::fs::read_to_string(record()).context("what is on record")?;
    compare(&serde_json::from_str(&known)?, &counts)
}

fn record() -> PathBuf {
    root().join("xtask/instructions.json")
}

fn compare(known: &Counts, counts: &Counts) -> anyhow::Result<()> {
    let mut worse = Vec::new();
    for (stage, count) in counts {
        let before = known.get(stage).copied().unwrap_or_default();
        print(&format!("{stage:<8} {count:>10} instructions a round, on record {before:>10}"));
        if is_worse(before, *count) {
            worse.push(stage.as_str());
        }
    }
    if !worse.is_empty() {
        bail!("more than {MORE_MAX} % over what is on record: {}", worse.join(", "));
    }
    Ok(())
}

const fn is_worse(before: u64, now: u64) -> bool {
    now * 100 > before * (100 + MORE_MAX)
}

/// The instructions of a whole run.
fn count(program: &PathBuf, stage: &str, rounds: u32) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["bench", "path", stage, "--rounds", &rounds.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{stage}: {said}");
    }
    collected(&said).with_context(|| format!("no count in what valgrind says: {said}"))
}

/// The count in a line such as `==12== Collected : 123456`.
fn collected(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_more_is_too_much() {
        assert!(!is_worse(1_000, 900) && !is_worse(1_000, 1_100));
        assert!(is_worse(1_000, 1_101) && is_worse(0, 1));
        let known = Counts::from([("read".to_owned(), 100)]);
        assert!(compare(&known, &Counts::from([("read".to_owned(), 105)])).is_ok());
        assert!(compare(&known, &Counts::from([("read".to_owned(), 150)])).is_err());
        assert!(compare(&known, &Counts::from([("new".to_owned(), 1)])).is_err());
    }

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        assert_eq!(collected("==9== \n==9== Collected : 987654321\n==9== \n"), Some(987_654_321));
        assert_eq!(collected("==9== killed"), None);
    }

    #[test]
    fn every_part_is_on_record() {
        let known: Counts =
            serde_json::from_str(&std::fs::read_to_string(record()).unwrap()).unwrap();
        for stage in STAGES {
            assert!(known.get(stage).is_some_and(|count| *count > 1_000), "{stage}");
        }
    }
}
