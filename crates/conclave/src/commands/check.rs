//! `conclave check`: one text or reply, or a stream of them.
//!
//! **Invariant:** streaming holds one line at a time: memory does not grow with the input.

use super::lines::{LINE_BYTES_MAX, LineRead, next_line};
use super::{Answer, checker};
use crate::cli::CheckArgs;
use crate::output;
use conclave_core::{Candidate, Message, Mode, Role};
use conclave_engine::{CheckAnswer, Checker, Question};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, BufWriter, Write};

/// Runs the command.
///
/// # Errors
/// When stdin or stdout fails.
pub fn run(args: &CheckArgs, as_json: bool) -> anyhow::Result<Answer> {
    let with_replies = args.jsonl || args.response.is_some();
    let checker = checker::build(args.reading.second_tier, with_replies)?;
    if args.jsonl {
        let output = BufWriter::new(io::stdout().lock());
        return stream(&checker, args.mode, io::stdin().lock(), output);
    }
    let question = Question {
        turns: args.text.iter().map(|text| Message::text(Role::User, text.as_str())).collect(),
        reply: args
            .response
            .as_ref()
            .map(|text| Candidate { text: text.clone(), ..Candidate::default() }),
        mode: args.mode.unwrap_or_default(),
    };
    let judgement = checker.check(&question);
    if as_json {
        output::json(&judgement);
    } else {
        print(&judgement);
    }
    let passes = matches!(judgement.action, "deliver" | "flag" | "redact");
    Ok(if passes { Answer::Yes } else { Answer::No })
}

fn print(judgement: &CheckAnswer) {
    let colour = if judgement.verdict == "safe" { "32" } else { "31" };
    output::line(&format!(
        "{}  action {}  harm {:.2}  crisis {:.2}  injection {:.2}  language {}",
        output::coloured(judgement.verdict, colour),
        judgement.action,
        judgement.harm,
        judgement.crisis,
        judgement.injection,
        judgement.language,
    ));
    for signal in &judgement.signals {
        output::line(&format!(
            "  {:<16} {:.2}  {}..{}  {}",
            signal.category.as_str(),
            signal.weight.get(),
            signal.start,
            signal.end,
            signal.source,
        ));
    }
    for vote in &judgement.votes {
        let line = format!("  {:<16} {:<14} {:.2}", vote.verifier, vote.vote, vote.confidence);
        output::line(format!("{line}  {}", vote.reasoning).trim_end());
    }
    if let Some(score) = judgement.safety_score {
        output::line(&format!("  safety score {score:.2}"));
    }
}

/// Judges line by line; an invalid line gets an error in its place and the answer is no at the end.
fn stream(
    checker: &Checker,
    mode: Option<Mode>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> anyhow::Result<Answer> {
    let mut all_read = true;
    let mut line = Vec::new();
    for number in 1u64.. {
        let judged = match next_line(&mut input, &mut line)? {
            LineRead::End => break,
            LineRead::Whole if line.trim_ascii().is_empty() => continue,
            LineRead::Whole => judge_line(checker, mode, &line),
            LineRead::TooLong => Err(format!("the line is longer than {LINE_BYTES_MAX} bytes")),
        };
        all_read &= judged.is_ok();
        let written = match &judged {
            Ok(judged) => serde_json::to_writer(&mut output, judged),
            Err(message) => {
                let error = json!({"error": {"line": number, "message": message}});
                serde_json::to_writer(&mut output, &error)
            }
        };
        if let Err(error) = written.map_err(io::Error::from).and_then(|()| output.write_all(b"\n"))
        {
            // Whoever reads the output has had enough, as in `| head`.
            if error.kind() == io::ErrorKind::BrokenPipe {
                return Ok(Answer::No);
            }
            return Err(error.into());
        }
    }
    output.flush()?;
    Ok(if all_read { Answer::Yes } else { Answer::No })
}

/// The answer to one line. It is written as it is: through a JSON value, every f32 in it would become
/// an f64 with digits that nobody measured.
#[derive(Serialize)]
struct JudgedLine {
    #[serde(flatten)]
    judgement: CheckAnswer,
    id: Value,
}

fn judge_line(checker: &Checker, mode: Option<Mode>, line: &[u8]) -> Result<JudgedLine, String> {
    let mut row: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("not a JSON object: {error}"))?;
    let mut question = Question::from_line(&row).map_err(|error| error.to_string())?;
    question.mode = mode.unwrap_or(question.mode);
    Ok(JudgedLine { judgement: checker.check(&question), id: row.remove("id").unwrap_or_default() })
}
