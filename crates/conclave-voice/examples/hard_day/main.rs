//! Plays ten exchanges about a hard day with the built-in responder, in English and in Japanese.
//!
//! `cargo run -p conclave-voice --example hard_day [SEED]`

mod script;

use conclave_core::{Message, Role, Score};
use conclave_voice::{Field, Responder};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let seed = match std::env::args().nth(1) {
        Some(seed) => seed.parse()?,
        None => 1,
    };
    let mut out = std::io::stdout().lock();
    for said in [script::ENGLISH, script::JAPANESE] {
        play(&mut out, &said, seed)?;
        writeln!(out)?;
    }
    Ok(())
}

fn play(out: &mut impl Write, said: &[&str], seed: u64) -> Result<(), Box<dyn Error>> {
    let (field, responder) = (Field::builtin()?, Responder::builtin()?);
    let mut conversation = Vec::new();
    for text in said {
        conversation.push(Message::text(Role::User, *text));
        let state = field.sense(&conversation, Score::ZERO, seed);
        let reply = responder.respond(&conversation, &state, Score::ZERO, &[], seed);
        writeln!(out, "> {text}\n{reply}\n")?;
        conversation.push(Message::text(Role::Assistant, reply));
    }
    Ok(())
}
