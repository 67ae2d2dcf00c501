//! `conclave explain`: how a text was read.

use super::{Answer, checker};
use crate::cli::ExplainArgs;
use crate::output;

/// Runs the command.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn run(args: &ExplainArgs, as_json: bool) -> anyhow::Result<Answer> {
    let explanation = checker::asked_detector(&args.reading)?.explain(&args.text, args.mode);
    if as_json {
        output::json(&explanation);
    } else {
        output::line(explanation.to_text().trim_end());
    }
    Ok(Answer::Yes)
}
