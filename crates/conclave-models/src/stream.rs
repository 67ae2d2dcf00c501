//! Puts a reply together from the events of a stream.
//!
//! **Invariant:** a stream that ends before the provider said that the reply is complete is no
//! reply: half an answer is never judged as if it were whole.

use crate::calls::{CALLS_MAX, WireFunction, named};
use crate::content::Text;
use crate::fault::Fault;
use crate::mend::mended;
use crate::reply::{Draft, Proposal};
use crate::sse::{EventSplitter, TooLong};
use crate::usage::Claim;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A reply that comes as events, whatever protocol they are of.
pub(crate) trait ReplyEvents: Send {
    /// Takes the next bytes. `true` when the provider said that the reply is complete.
    fn feed(&mut self, bytes: &[u8]) -> Result<bool, Fault>;
    /// The text that has come since this was last asked.
    fn fresh_text(&mut self) -> Option<String>;
    /// How many pieces of the reply have come, of whatever it is made: a model that thinks is not silent.
    fn progress(&self) -> u64;
    /// Whether the provider said that the reply is complete, so that nothing of it can still come.
    fn is_complete(&self) -> bool;
    /// The reply, once the stream has ended.
    fn finish(self: Box<Self>) -> Result<Proposal, Fault>;
}

/// A reply of OpenAI's that is still being read.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    splitter: EventSplitter,
    events: Vec<Vec<u8>>,
    draft: Draft,
    calls: BTreeMap<u64, PartialCall>,
    claim: Claim,
    is_done: bool,
    /// How much of the text was handed on.
    handed_on: usize,
    progress: u64,
}

#[derive(Debug, Default)]
struct PartialCall {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    choices: Option<Vec<ChunkChoice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChunkChoice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<DeltaCall<'a>>>,
    #[serde(borrow, default)]
    function_call: Option<WireFunction<'a>>,
}

#[derive(Deserialize)]
struct DeltaCall<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<WireFunction<'a>>,
    #[serde(borrow, default)]
    custom: Option<WireFunction<'a>>,
}

impl ReplyEvents for Accumulator {
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
        let fresh = self.draft.text.as_deref()?.get(self.handed_on..)?.to_owned();
        self.handed_on += fresh.len();
        (!fresh.is_empty()).then_some(fresh)
    }

    fn progress(&self) -> u64 {
        self.progress
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.draft.finish.is_some()
    }

    fn finish(mut self: Box<Self>) -> Result<Proposal, Fault> {
        let rest = std::mem::take(&mut self.splitter);
        if let Some(event) = rest.finish().map_err(too_long)? {
            self.take_event(&event)?;
        }
        if !self.is_complete() {
            return Err(Fault::invalid("the stream ended before the reply did"));
        }
        let calls = std::mem::take(&mut self.calls);
        for (index, call) in calls.into_values().enumerate() {
            let call = named(index, call.id, call.name, call.arguments)?;
            self.draft.tool_calls.push(call);
        }
        let this = *self;
        Ok(Proposal { candidate: this.draft.into_candidate()?, claim: this.claim })
    }
}

impl Accumulator {
    fn take_event(&mut self, event: &[u8]) -> Result<(), Fault> {
        let event = event.trim_ascii();
        if event == b"[DONE]" {
            self.is_done = true;
        }
        // Empty events keep a connection alive.
        if self.is_done || event.is_empty() {
            return Ok(());
        }
        let no_chunk = || Fault::invalid("an event of the stream is no chat completion chunk");
        match serde_json::from_slice(event) {
            Ok(chunk) => self.take_chunk(chunk),
            Err(_) => match mended(event) {
                Cow::Borrowed(_) => Err(no_chunk()),
                Cow::Owned(event) => {
                    self.take_chunk(serde_json::from_slice(&event).map_err(|_| no_chunk())?)
                }
            },
        }
    }

    fn take_chunk(&mut self, chunk: Chunk<'_>) -> Result<(), Fault> {
        if chunk.error.is_some() {
            return Err(Fault::refused("an error in the stream", false));
        }
        if let Some(usage) = chunk.usage {
            self.claim = Claim::read(usage);
        }
        if self.draft.model.is_none() {
            self.draft.model = chunk.model;
        }
        let first = |choice: &ChunkChoice<'_>| choice.index == 0;
        let choices = chunk.choices.unwrap_or_default();
        self.progress += u64::from(!choices.is_empty());
        for choice in choices.into_iter().filter(first) {
            if let Some(delta) = choice.delta {
                self.take_delta(delta)?;
            }
            self.draft.finish = choice.finish_reason.or(self.draft.finish.take());
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: Delta<'_>) -> Result<(), Fault> {
        extend(&mut self.draft.text, delta.content.0);
        extend(&mut self.draft.refusal, delta.refusal);
        for call in delta.tool_calls.unwrap_or_default() {
            self.take_call(call)?;
        }
        if delta.function_call.is_some() {
            self.take_call(DeltaCall {
                index: Some(0),
                id: None,
                function: delta.function_call,
                custom: None,
            })?;
        }
        Ok(())
    }

    fn take_call(&mut self, call: DeltaCall<'_>) -> Result<(), Fault> {
        let index = call.index.unwrap_or_else(|| self.unnumbered(call.id.as_deref()));
        if self.calls.len() == CALLS_MAX && !self.calls.contains_key(&index) {
            return Err(Fault::invalid("the reply calls too many tools"));
        }
        let partial = self.calls.entry(index).or_default();
        partial.id = partial.id.take().or(call.id);
        if let Some(function) = call.function.or(call.custom) {
            partial.arguments.push_str(&function.arguments());
            partial.name = partial.name.take().or(function.name);
        }
        Ok(())
    }

    /// Where a piece without an index belongs: a new id opens a call, anything else continues the
    /// last.
    fn unnumbered(&self, id: Option<&str>) -> u64 {
        let Some((last, call)) = self.calls.last_key_value() else {
            return 0;
        };
        let is_same = id.is_none() || id == call.id.as_deref();
        if is_same { *last } else { last.saturating_add(1) }
    }
}

fn too_long(_: TooLong) -> Fault {
    Fault::too_large("an event of the stream is too long")
}

fn extend(whole: &mut Option<String>, piece: Option<String>) {
    match (whole, piece) {
        (Some(whole), Some(piece)) => whole.push_str(&piece),
        (whole @ None, piece) => *whole = piece,
        (Some(_), None) => {}
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
