//! `conclave check`: one text or reply, or a stream of them.
//!
//! **Invariant:** streaming holds a fixed number of lines and answers: memory does not grow with the input.

use super::lines::{LineReader, NumberedLine};
use super::{Answer, checker};
use crate::cli::CheckArgs;
use crate::output;
use conclave_core::{Candidate, Message, Mode, Role};
use conclave_engine::{CheckAnswer, Checker, Question};
use conclave_eval::{all_cores, map_in_order};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroUsize;

/// Runs the command.
///
/// # Errors
/// When stdin or stdout fails.
pub fn run(args: &CheckArgs, as_json: bool) -> anyhow::Result<Answer> {
    let with_replies = args.jsonl || args.response.is_some();
    let checker = checker::build(&args.reading, with_replies)?;
    if args.jsonl {
        let jobs = args.jobs.unwrap_or_else(all_cores);
        let input = BufReader::new(io::stdin());
        return stream(&checker, args.mode, jobs, input, io::stdout().lock());
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
    Ok(if judgement.is_withheld() { Answer::No } else { Answer::Yes })
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

/// Why a stream ended before its input did.
enum StreamStop {
    /// Whoever reads the output has had enough, as in `| head`.
    OutputClosed,
    Failed(io::Error),
}

impl StreamStop {
    fn from_writing(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(error)
        }
    }
}

/// Judges every line on so many threads; an invalid line gets an error in its place and the answer is no
/// at the end. Each line is written as soon as it and all before it are judged.
fn stream(
    checker: &Checker,
    mode: Option<Mode>,
    jobs: NonZeroUsize,
    input: impl BufRead + Send,
    mut output: impl Write,
) -> anyhow::Result<Answer> {
    let mut all_read = true;
    let judge =
        |line: io::Result<NumberedLine>| line.map(|line| AnsweredLine::judge(checker, mode, &line));
    let write = |answered: io::Result<AnsweredLine>| {
        let AnsweredLine { bytes, is_judged } = answered.map_err(StreamStop::Failed)?;
        all_read &= is_judged;
        output.write_all(&bytes).map_err(StreamStop::from_writing)
    };
    let written = map_in_order(jobs, LineReader::new(input), judge, write);
    match written.and_then(|()| output.flush().map_err(StreamStop::from_writing)) {
        Ok(()) if all_read => Ok(Answer::Yes),
        Ok(()) | Err(StreamStop::OutputClosed) => Ok(Answer::No),
        Err(StreamStop::Failed(error)) => Err(error.into()),
    }
}

/// What is written for a line, its end included: whole, so that whoever interrupts this finds no half of
/// a line.
struct AnsweredLine {
    bytes: Vec<u8>,
    is_judged: bool,
}

impl AnsweredLine {
    fn judge(checker: &Checker, mode: Option<Mode>, line: &NumberedLine) -> Self {
        let judged = match &line.bytes {
            Ok(bytes) => judge_line(checker, mode, bytes),
            Err(message) => Err(message.clone()),
        };
        let is_judged = judged.is_ok();
        let mut bytes = judged.unwrap_or_else(|message| {
            let error = json!({"error": {"line": line.number, "message": message}});
            error.to_string().into_bytes()
        });
        bytes.push(b'\n');
        Self { bytes, is_judged }
    }
}

/// The answer to one line. It is written as it is: through a JSON value, every f32 in it would become
/// an f64 with digits that nobody measured.
#[derive(Serialize)]
struct JudgedLine {
    #[serde(flatten)]
    judgement: CheckAnswer,
    id: Value,
}

fn judge_line(checker: &Checker, mode: Option<Mode>, line: &[u8]) -> Result<Vec<u8>, String> {
    let mut row: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("not a JSON object: {error}"))?;
    let mut question = Question::from_line(&row).map_err(|error| error.to_string())?;
    question.mode = mode.unwrap_or(question.mode);
    let judgement = checker.check(&question);
    let judged = JudgedLine { judgement, id: row.remove("id").unwrap_or_default() };
    serde_json::to_vec(&judged).map_err(|error| format!("the answer cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn judged(checker: &Checker, jobs: usize, input: &str) -> Vec<u8> {
        let mut output = Vec::new();
        let jobs = NonZeroUsize::new(jobs).unwrap();
        let answer = stream(checker, None, jobs, input.as_bytes(), &mut output).unwrap();
        assert_eq!(answer, Answer::No, "a line is bad");
        output
    }

    #[test]
    fn lines_of_very_different_length_come_out_in_order_with_any_number_of_jobs() {
        let checker = checker::quick(true);
        let row = |id: usize| {
            let words = if id.is_multiple_of(9) { 400 } else { 1 };
            let text = "how do I kill a Python process ".repeat(words);
            format!("{}\n", json!({"id": id, "text": text}))
        };
        let mut input: String = (0..30).map(row).collect();
        input.push_str("\nnot json\n");
        input.extend((30..60).map(row));
        let one = judged(&checker, 1, &input);
        assert_eq!(one, judged(&checker, 8, &input));
        let lines: Vec<Value> = one
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 61);
        assert_eq!((&lines[29]["id"], &lines[31]["id"]), (&json!(29), &json!(30)));
        assert_eq!(lines[30]["error"]["line"], 32, "the blank line counts");
    }

    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_reader_that_went_away_ends_an_input_without_end() {
        let checker = checker::quick(false);
        let endless = BufReader::new(io::repeat(b'\n').take(3).chain(Endless));
        let jobs = NonZeroUsize::new(4).unwrap();
        let answer = stream(&checker, None, jobs, endless, ClosedPipe).unwrap();
        assert_eq!(answer, Answer::No);
        // An answer short enough to wait in a buffer was an error at the last flush.
        let nothing = stream(&checker, None, jobs, io::empty(), ClosedPipe).unwrap();
        assert_eq!(nothing, Answer::No);
    }

    /// The same row again and again.
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let row = b"{\"text\":\"hello\"}\n";
            let count = row.len().min(buffer.len());
            buffer[..count].copy_from_slice(&row[..count]);
            Ok(count)
        }
    }
}
