//! What a mock model can do when it is asked something, and in which order.

use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How the mock answers one request. Where the request says `"stream": true`, replies and tool
/// calls are sent as server-sent events; the faults are the same bytes either way unless they say
/// otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// An ordinary reply with this text.
    Reply(String),
    /// Asks for one tool to be called.
    ToolCall {
        /// The tool.
        name: String,
        /// Its arguments; sent as a JSON string, as providers do.
        arguments: Value,
    },
    /// A 200 with this JSON as its body.
    Json(Value),
    /// A 200 with these pieces as an event stream, each written on its own.
    Sse(Vec<Vec<u8>>),
    /// An error with this status and body.
    Status(u16, String),
    /// An error with this status that asks to come back after so many seconds.
    RetryAfter(u16, u32),
    /// An error with this status and a body of so many bytes.
    HugeStatus(u16, u64),
    /// Takes the request and never answers.
    Hang,
    /// A 200 with these bytes as its body, called JSON.
    Garbage(Vec<u8>),
    /// Declares a length, sends half of it and closes.
    HalfClose,
    /// Declares fewer bytes than the reply has.
    ShortLength,
    /// Takes the request and closes without one byte.
    HangUp,
    /// Sends half a body, then resets the connection.
    Reset,
    /// An ordinary reply that drips.
    Slow {
        /// The text of the reply.
        text: String,
        /// How many bytes are written at a time.
        bytes: usize,
        /// How long it waits between them.
        every: Duration,
    },
    /// A well-formed reply whose text has this many bytes, with its length declared.
    Huge(u64),
    /// The same without a declared length.
    HugeChunked(u64),
    /// A reply with no choices.
    EmptyChoices,
    /// A reply whose content is null and that calls no tool.
    NullContent,
    /// A reply with this text that does not say what it cost.
    MissingUsage(String),
    /// A reply with this text that claims to have cost less than nothing.
    NegativeUsage(String),
    /// A reply with this text whose cost is the word `NaN`, which is not JSON.
    NanUsage(String),
    /// A web page with status 200, as a captive portal sends.
    Html200,
    /// Points somewhere else.
    Redirect(String),
    /// A reply whose text is not UTF-8.
    InvalidUtf8,
    /// An event stream whose first line never ends.
    EndlessSseLine,
    /// A small gzip body that would unpack to 100 MiB, declared as gzip.
    GzipBomb,
}

/// Behaviours in order; the last one is repeated for ever.
#[derive(Debug)]
pub struct Script {
    steps: Vec<Behaviour>,
    next: AtomicUsize,
}

impl Script {
    /// Always does this.
    #[must_use]
    pub fn always(behaviour: Behaviour) -> Self {
        Self::sequence(vec![behaviour])
    }

    /// Does these one after another. An empty sequence hangs.
    #[must_use]
    pub fn sequence(steps: Vec<Behaviour>) -> Self {
        Self { steps, next: AtomicUsize::new(0) }
    }

    /// What comes next.
    #[must_use]
    pub fn step(&self) -> Behaviour {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let last = self.steps.len().saturating_sub(1);
        self.steps.get(next.min(last)).cloned().unwrap_or(Behaviour::Hang)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_repeated() {
        let script =
            Script::sequence(vec![Behaviour::Html200, Behaviour::Reply("then this".into())]);
        assert_eq!(script.step(), Behaviour::Html200);
        assert_eq!(script.step(), Behaviour::Reply("then this".into()));
        assert_eq!(script.step(), Behaviour::Reply("then this".into()));
    }

    #[test]
    fn an_empty_script_hangs() {
        assert_eq!(Script::sequence(Vec::new()).step(), Behaviour::Hang);
    }
}
