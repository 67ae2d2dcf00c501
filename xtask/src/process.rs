//! Running other programs, loudly.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Cargo, as it called us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; its failure is ours.
pub fn run(what: &str, command: &mut Command) -> anyhow::Result<()> {
    say(&format!("==> {what}"));
    let status = command.status().with_context(|| format!("{what}: could not start"))?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    Ok(())
}

/// Runs a command to its end as [`run`] does; returns what stands behind `mark` in the lines it prints.
pub fn run_for(what: &str, mark: &str, command: &mut Command) -> anyhow::Result<Vec<String>> {
    say(&format!("==> {what}"));
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = Running(started.with_context(|| format!("{what}: could not start"))?);
    let mut found = Vec::new();
    if let Some(output) = child.0.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.with_context(|| format!("{what}: its output broke off"))?;
            found.extend(line.split_once(mark).map(|(_, rest)| rest.to_owned()));
            say(&line);
        }
    }
    let status = child.0.wait().with_context(|| format!("{what}: no end"))?;
    if !status.success() {
        found.iter().for_each(|figure| print(figure));
        bail!("{what}: {status}");
    }
    Ok(found)
}

/// Whether a program can be started at all.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A line for whoever watches.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line of the result.
pub fn print(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A child that is ended with us.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
