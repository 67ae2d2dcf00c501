//! Puts a message of Anthropic's together from the events of a stream.
//!
//! **Invariant:** once it is whole, it is read as one that came in one piece: there is one reading of a
//! message, whichever way it came.
//!
//! **Invariant:** a stream that ends before `message_stop` or a reason to stop is no reply.

use super::REPLY_TOOL;
use super::reply::read_reply;
use crate::calls::CALLS_MAX;
use crate::fault::Fault;
use crate::mend::mended;
use crate::reply::Proposal;
use crate::sse::{EventSplitter, TooLong};
use crate::stream::ReplyEvents;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How many parts a message may have: calls of tools, and about as many texts and thoughts between
/// them.
const BLOCKS_MAX: usize = 4 * CALLS_MAX;

/// A message that is still being read.
#[derive(Debug, Default)]
pub(crate) struct MessageStream {
    splitter: EventSplitter,
    events: Vec<Vec<u8>>,
    model: Option<String>,
    blocks: Vec<Part>,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
    is_done: bool,
    /// Text that has come and was not handed on yet.
    fresh: String,
    progress: u64,
}

/// A part of the message; only the last one grows.
#[derive(Debug)]
struct Part {
    index: u64,
    kind: String,
    text: String,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    message: Option<Start<'a>>,
    #[serde(default)]
    content_block: Option<Opening>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Opening {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

/// The whole message, as it would have come in one piece.
#[derive(Serialize)]
struct Whole {
    #[serde(rename = "type")]
    kind: &'static str,
    model: Option<String>,
    content: Vec<WholePart>,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
}

#[derive(Serialize)]
struct WholePart {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    id: Option<String>,
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
}

impl ReplyEvents for MessageStream {
    fn feed(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let mut events = std::mem::take(&mut self.events);
        self.splitter.feed(bytes, &mut events).map_err(too_long)?;
        for event in events.drain(..) {
            self.take_event(&event)?;
        }
        self.events = events;
        Ok(self.is_done)
    }

    fn fresh_text(&mut self) -> Option<String> {
        let fresh = std::mem::take(&mut self.fresh);
        (!fresh.is_empty()).then_some(fresh)
    }

    fn progress(&self) -> u64 {
        self.progress
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.stop_reason.is_some()
    }

    fn finish(mut self: Box<Self>) -> Result<Proposal, Fault> {
        let rest = std::mem::take(&mut self.splitter);
        if let Some(event) = rest.finish().map_err(too_long)? {
            self.take_event(&event)?;
        }
        if !self.is_complete() {
            return Err(Fault::invalid("the stream ended before the reply did"));
        }
        let parts = self.blocks.into_iter().map(Part::whole).collect::<Result<_, Fault>>()?;
        let whole = Whole {
            kind: "message",
            model: self.model,
            content: parts,
            stop_reason: self.stop_reason,
            usage: self.usage,
        };
        let bytes =
            serde_json::to_vec(&whole).map_err(|_| Fault::invalid("the reply has no JSON form"))?;
        read_reply(&bytes)
    }
}

impl MessageStream {
    fn take_event(&mut self, event: &[u8]) -> Result<(), Fault> {
        // Empty events keep a connection alive.
        if self.is_done || event.trim_ascii().is_empty() {
            return Ok(());
        }
        let no_event = || Fault::invalid("an event of the stream is none of a message");
        match serde_json::from_slice(event) {
            Ok(event) => self.take_read_event(event),
            Err(_) => match mended(event) {
                Cow::Borrowed(_) => Err(no_event()),
                Cow::Owned(event) => {
                    self.take_read_event(serde_json::from_slice(&event).map_err(|_| no_event())?)
                }
            },
        }
    }

    fn take_read_event(&mut self, event: Event<'_>) -> Result<(), Fault> {
        self.progress += u64::from(event.kind != "ping");
        match event.kind.as_str() {
            "message_start" => {
                if let Some(start) = event.message {
                    self.model = self.model.take().or(start.model);
                    self.count(start.usage);
                }
            }
            "content_block_start" => self.open(event.index, event.content_block)?,
            "content_block_delta" => self.extend(event.index, event.delta)?,
            "message_delta" => {
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.or(self.stop_reason.take());
                self.count(event.usage);
            }
            "message_stop" => self.is_done = true,
            "error" => return Err(Fault::refused("an error in the stream", false)),
            // Pings, ends of parts, and what a later version may add.
            _ => {}
        }
        Ok(())
    }

    /// Later counts go over earlier ones: they are of the whole message.
    fn count(&mut self, usage: Option<&RawValue>) {
        let read = usage.and_then(|usage| serde_json::from_str::<Map<_, _>>(usage.get()).ok());
        let numbers = read.into_iter().flatten().filter(|(_, value)| value.is_number());
        self.usage.extend(numbers.take(16));
    }

    fn open(&mut self, index: u64, opening: Option<Opening>) -> Result<(), Fault> {
        let Some(opening) = opening else {
            return Err(Fault::invalid("a part of the reply begins with nothing"));
        };
        if self.blocks.len() == BLOCKS_MAX {
            return Err(Fault::invalid("the reply has too many parts"));
        }
        if self.blocks.last().is_some_and(|last| last.index >= index) {
            return Err(Fault::invalid("the parts of the reply are out of order"));
        }
        let text = opening.text.filter(|_| opening.kind == "text").unwrap_or_default();
        self.hand_on(&text);
        self.blocks.push(Part {
            index,
            kind: opening.kind,
            text,
            id: opening.id,
            name: opening.name,
            arguments: String::new(),
        });
        Ok(())
    }

    fn extend(&mut self, index: u64, delta: Option<Delta>) -> Result<(), Fault> {
        let Some(delta) = delta else { return Ok(()) };
        let Some(last) = self.blocks.last_mut().filter(|last| last.index == index) else {
            return Err(Fault::invalid("a piece of the reply belongs to no open part"));
        };
        match delta.kind.as_deref() {
            Some("text_delta") if last.kind == "text" => {
                let text = delta.text.unwrap_or_default();
                last.text.push_str(&text);
                self.hand_on(&text);
            }
            Some("input_json_delta") => {
                last.arguments.push_str(&delta.partial_json.unwrap_or_default());
            }
            // Thoughts and signatures are not for the person.
            _ => {}
        }
        Ok(())
    }

    /// Text may go on to whoever waits for it, unless something stands before it that does not.
    fn hand_on(&mut self, text: &str) {
        let is_apart = |part: &Part| part.name.as_deref() == Some(REPLY_TOOL);
        if !self.blocks.iter().any(is_apart) {
            self.fresh.push_str(text);
        }
    }
}

impl Part {
    fn whole(self) -> Result<WholePart, Fault> {
        let input = match self.arguments.as_str() {
            "" => None,
            arguments => Some(RawValue::from_string(arguments.to_owned()).map_err(|_| {
                Fault::invalid("the arguments of a tool call are cut off or no JSON")
            })?),
        };
        let Self { kind, text, id, name, .. } = self;
        Ok(WholePart { kind, text, id, name, input })
    }
}

fn too_long(_: TooLong) -> Fault {
    Fault::too_large("an event of the stream is too long")
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
