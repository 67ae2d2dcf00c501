//! The part of the command line that is about the frozen directives.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `conclave directives`
#[derive(Debug, Subcommand)]
pub enum DirectivesCommand {
    /// Print every directive in force.
    List(DirectivesListArgs),
    /// Say whether a set is whole and signed by the key this program was built with.
    Verify(DirectivesSetArgs),
    /// Sign a set of your own; prints the public key to build with.
    Sign(DirectivesSignArgs),
}

/// `conclave directives list`
#[derive(Debug, Args)]
pub struct DirectivesListArgs {
    /// en or ja.
    #[arg(long, default_value = "en")]
    pub language: String,
    /// Which.
    #[command(flatten)]
    pub set: DirectivesSetArgs,
}

/// Which set of directives.
#[derive(Debug, Args)]
pub struct DirectivesSetArgs {
    /// A set of your own, its signature beside it as `.sig`; without one, the set in force.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The configuration file, whose `directives.file` is in force; without one, the set compiled in.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_CONFIG", conflicts_with = "file")]
    pub config: Option<PathBuf>,
}

/// `conclave directives sign`
#[derive(Debug, Args)]
pub struct DirectivesSignArgs {
    /// The set.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file with the private seed: 32 bytes, plain or as 64 hexadecimal digits; never commit it.
    #[arg(long, value_name = "FILE")]
    pub seed: PathBuf,
}
