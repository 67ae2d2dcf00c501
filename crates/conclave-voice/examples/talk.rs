//! Talks with the built-in responder: one message a line on standard input; an empty line starts anew.
//!
//! `cargo run -p conclave-voice --example talk [SEED]`

use conclave_core::{Message, Role, Score};
use conclave_voice::{Field, Responder};
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = match std::env::args().nth(1) {
        Some(seed) => seed.parse()?,
        None => 1,
    };
    let (field, responder) = (Field::builtin()?, Responder::builtin()?);
    let mut out = std::io::stdout().lock();
    let mut conversation = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            conversation.clear();
            writeln!(out, "----\n")?;
            continue;
        }
        // A line that begins with `!` is read as a crisis, which here no detector judges.
        let (crisis, text) = match line.strip_prefix('!') {
            Some(rest) => (Score::ONE, rest.trim()),
            None => (Score::ZERO, line.as_str()),
        };
        conversation.push(Message::text(Role::User, text));
        let state = field.sense(&conversation, crisis, seed);
        let reply = responder.respond(&conversation, &state, crisis, &[], seed);
        writeln!(out, "> {text}\n{reply}\n")?;
        conversation.push(Message::text(Role::Assistant, reply));
    }
    Ok(())
}
