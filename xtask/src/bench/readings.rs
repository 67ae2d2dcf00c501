//! `cargo xtask bench readings`: the same texts, read by two builds.
//!
//! Whoever makes reading faster must not change what is read. Two builds answer `check --jsonl` on every row of the
//! corpus, and the answers must be the same bytes.

use crate::house;
use crate::process::{print, root};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which build to compare with, and on how much.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The other build.
    #[arg(long, value_name = "FILE")]
    other: PathBuf,
    /// This build; made if it is not given.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Take one row of so many.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    every: u32,
}

/// Compares.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => {
            house::build()?;
            house::conclave()
        }
    };
    let mut rows = Vec::new();
    collect(&root().join("corpus"), &mut rows)?;
    let every = usize::try_from(args.every).unwrap_or(1);
    let chosen: Vec<_> = rows.iter().step_by(every).map(String::as_str).collect();
    let place = house::scratch(None)?;
    let given = place.path().join("rows.jsonl");
    fs::write(&given, chosen.join("\n") + "\n")?;
    let ours = answers(&program, &given, &place.path().join("ours"))?;
    let theirs = answers(&args.other, &given, &place.path().join("theirs"))?;
    let (mut same, mut shown) = (0, 0);
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        if ours == theirs {
            same += 1;
        } else if shown < 3 {
            shown += 1;
            print(&format!("this build:  {ours}\nthe other:   {theirs}\n"));
        }
    }
    print(&format!("{same} of {} rows are read alike", chosen.len()));
    if same != chosen.len() || ours.lines().count() != theirs.lines().count() {
        bail!("some rows are read otherwise");
    }
    Ok(())
}

/// Every row of every file below a directory, in the order of their names.
fn collect(dir: &Path, rows: &mut Vec<String>) -> anyhow::Result<()> {
    let entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, rows)?;
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = fs::read_to_string(&path)?;
            rows.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    Ok(())
}

/// What a build says of every row. A row it cannot read is answered with an error, by both alike.
fn answers(program: &Path, given: &Path, into: &Path) -> anyhow::Result<String> {
    let (rows, out) = (fs::File::open(given)?, fs::File::create(into)?);
    Command::new(program)
        .args(["check", "--jsonl", "--second-tier", "never"])
        .stdin(rows)
        .stdout(out)
        .stderr(Stdio::null())
        .status()
        .with_context(|| program.display().to_string())?;
    Ok(fs::read_to_string(into)?)
}
