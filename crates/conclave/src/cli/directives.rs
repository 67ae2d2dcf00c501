//! The part of the command line that is about the frozen directives.

use super::typed::{conflict, is_typed};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::path::PathBuf;

/// `conclave directives`
#[derive(Debug, Subcommand)]
pub enum DirectivesCommand {
    /// Print every directive in force.
    List(DirectivesListArgs),
    /// Say whether a set is whole and signed by the key this program was built with.
    Verify(DirectivesSet),
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
    pub set: DirectivesSet,
}

/// Which set of directives.
#[derive(Debug)]
pub enum DirectivesSet {
    /// A set of one's own, its signature beside it.
    File(PathBuf),
    /// The set in force under a configuration; without one, the set compiled in.
    InForce(Option<PathBuf>),
}

/// What can be typed to choose a [`DirectivesSet`].
#[derive(Debug, Args)]
struct DirectivesSetArgs {
    /// A set of your own, its signature beside it as `.sig`; without one, the set in force.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The configuration file, whose `directives.file` is in force; without one, the set compiled in.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_CONFIG")]
    config: Option<PathBuf>,
}

impl Args for DirectivesSet {
    fn augment_args(command: Command) -> Command {
        DirectivesSetArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DirectivesSetArgs::augment_args_for_update(command)
    }
}

impl FromArgMatches for DirectivesSet {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        if is_typed(matches, "file") && is_typed(matches, "config") {
            return Err(conflict("FILE", "--config"));
        }
        let DirectivesSetArgs { file, config } = DirectivesSetArgs::from_arg_matches(matches)?;
        Ok(file.map_or(Self::InForce(config), Self::File))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
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
