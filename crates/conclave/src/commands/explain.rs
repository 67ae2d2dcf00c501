//! `conclave explain`: how a text was read.

use super::Answer;
use crate::cli::ExplainArgs;
use crate::output;
use conclave_detect::Detector;

/// Runs the command.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn run(args: &ExplainArgs, as_json: bool) -> anyhow::Result<Answer> {
    let explanation = Detector::builtin()?.explain(&args.text, args.mode);
    if as_json {
        output::json(&explanation);
    } else {
        output::line(explanation.to_text().trim_end());
    }
    Ok(Answer::Yes)
}
