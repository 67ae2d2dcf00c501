//! Options that exclude each other although one of them may come from the environment.
//!
//! **Invariant:** only what was typed can be a conflict. clap counts a variable like a typed option,
//! so that an exported `CONCLAVE_DATA` would forbid every `--export`; here the variable gives way.

use clap::ArgMatches;
use clap::error::ErrorKind;
use clap::parser::ValueSource;

/// Whether an option stands on the command line itself.
pub fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Whether an option was typed or has its value from a variable, and not only by default.
pub fn is_given(matches: &ArgMatches, id: &str) -> bool {
    is_typed(matches, id) || matches.value_source(id) == Some(ValueSource::EnvVariable)
}

/// Refuses an option that was typed together with one of the others.
///
/// # Errors
/// When two of them were typed.
pub fn refuse_together(matches: &ArgMatches, id: &str, others: &[&str]) -> Result<(), clap::Error> {
    if !is_typed(matches, id) {
        return Ok(());
    }
    match others.iter().find(|other| is_typed(matches, other)) {
        None => Ok(()),
        Some(other) => Err(conflict(&format!("--{id}"), &format!("--{other}"))),
    }
}

/// Says that two arguments exclude each other, in the words of clap.
pub fn conflict(one: &str, other: &str) -> clap::Error {
    let message = format!("the argument '{one}' cannot be used with '{other}'");
    clap::Error::raw(ErrorKind::ArgumentConflict, message)
}
