//! `conclave bench path`: one part of a turn, done so many times, for whoever counts instructions.
//!
//! **Invariant:** the same work every time: no clock, no chance, no network and no disk. What two runs differ in
//! is the number of rounds alone, so that the difference of their counts is what the rounds cost.

use super::{Answer, checker};
use crate::cli::{BenchPathArgs, PathStage};
use crate::config::SecondTier;
use crate::output;
use anyhow::{Context, anyhow};
use conclave_core::{Candidate, Message, Mode, Role, Score, TurnContext};
use conclave_detect::{Detector, Reading};
use conclave_ledger::{Body, Draft, EntryId, Kind, Leaf, SealingKey, leaf_hash};
use conclave_verifiers::Case;
use conclave_voice::Field;
use std::hint::black_box;
use std::sync::Arc;

/// What somebody says on an ordinary day, as in `cargo xtask bench gateway`.
const ASKED: &str = "My day was long and my boss was unfair to me in front of everyone. I keep \
    thinking about it and cannot settle down this evening.";
/// What a model answers.
const REPLIED: &str = "That sounds like a hard evening after an unfair day. What part of it stays \
    with you the most?";
/// The fields of a decision's words, and about how many bytes each has.
const FIELDS: [(&str, usize); 8] = [
    ("who", 160),
    ("request", 280),
    ("reading", 900),
    ("memory", 240),
    ("field", 1_100),
    ("candidate.0.0", 260),
    ("votes.0.0", 900),
    ("delivered.0", 220),
];

/// Runs the command.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn run(args: &BenchPathArgs, as_json: bool) -> anyhow::Result<Answer> {
    let done = match args.stage {
        PathStage::Read => read(args.rounds)?,
        PathStage::Reply => reply(args.rounds)?,
        PathStage::Panel => panel(args.rounds)?,
        PathStage::Field => field(args.rounds)?,
        PathStage::Seal => seal(args.rounds)?,
    };
    if as_json {
        output::json(&serde_json::json!({ "rounds": args.rounds, "done": done }));
    } else {
        output::line(&format!("{} rounds, {done} done", args.rounds));
    }
    Ok(Answer::Yes)
}

fn detector() -> anyhow::Result<Detector> {
    checker::detector(SecondTier::Never)
}

fn read(rounds: u32) -> anyhow::Result<usize> {
    let detector = detector()?;
    Ok(times(rounds, || detector.read(black_box(ASKED), Mode::Normal).signals.len()))
}

fn reply(rounds: u32) -> anyhow::Result<usize> {
    let detector = detector()?;
    let said = || detector.read_reply(black_box(ASKED), black_box(REPLIED), Mode::Normal);
    Ok(times(rounds, || said().signals.len()))
}

fn panel(rounds: u32) -> anyhow::Result<usize> {
    let judges = checker::judges()?;
    let (input, reply) = (Arc::new(Reading::empty(Mode::Normal)), Reading::empty(Mode::Normal));
    let candidate = Candidate { text: REPLIED.to_owned(), ..Candidate::default() };
    let case =
        Case::new(conversation().into(), candidate, TurnContext::default(), input, reply.clone());
    // A clone is read anew, as each reply is.
    let votes = |case: &Case| judges.iter().filter(|judge| judge.judge(case).is_some()).count();
    Ok(times(rounds, || votes(&case.clone())))
}

fn field(rounds: u32) -> anyhow::Result<usize> {
    let field = Field::builtin().context("field files")?;
    let conversation = conversation();
    Ok(times(rounds, || {
        black_box(field.sense(black_box(&conversation), Score::ZERO, 7));
        1
    }))
}

fn seal(rounds: u32) -> anyhow::Result<usize> {
    let key = SealingKey::new([3; 16], &[5; 32]);
    let draft = Draft::new(Kind::Decision, 1);
    let mut failed = None;
    let mut n = 0;
    let sealed = times(rounds, || {
        let mut body = Body::empty();
        for (name, bytes) in FIELDS {
            body.push(name, [9; 32], vec![b'x'; bytes]);
        }
        n += 1;
        let id = EntryId { replica: [1; 8], epoch: 1, n };
        match body.lay_out(key.id(), &[4; 24]).seal(&key, id, draft.tenant) {
            Ok((commitments, bytes)) => {
                let mut leaf = Vec::new();
                Leaf::write(&mut leaf, id, 1, &draft, &commitments);
                black_box(leaf_hash(&leaf));
                bytes.len()
            }
            Err(error) => {
                failed = Some(error);
                0
            }
        }
    });
    failed.map_or(Ok(sealed), |error| Err(anyhow!("{error}")))
}

fn conversation() -> Vec<Message> {
    vec![Message::text(Role::System, "You are a kind listener."), Message::text(Role::User, ASKED)]
}

/// Does something so many times; what it came to in all, so that nothing can be left out.
fn times(rounds: u32, mut work: impl FnMut() -> usize) -> usize {
    (0..rounds).map(|_| black_box(work())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_does_its_work() {
        assert!(read(1).is_ok());
        assert!(reply(1).is_ok());
        // Nothing asks for an action, so that one of the seven has nothing to say.
        assert_eq!(panel(2).unwrap(), 12);
        assert_eq!(field(3).unwrap(), 3);
        assert_eq!(seal(2).unwrap(), 2 * seal(1).unwrap());
    }
}
