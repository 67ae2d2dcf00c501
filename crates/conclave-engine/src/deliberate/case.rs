//! A reply and its circumstances before they are read: what a case is made of.
//!
//! **Invariant:** everything that reaches the client in words is read, also what actions carry.

use crate::matter::long_text::graver;
use crate::matter::{RefusedText, said_before};
use conclave_core::{Candidate, Message, Mode, TurnContext};
use conclave_detect::{Detector, Reading};
use conclave_verifiers::{Case, ToolDescription, words};
use serde_json::{Map, Value};
use std::sync::Arc;

/// From this score of the model of replies on, in hundredths, a reply reads as an answer to what was refused.
const ANSWERS_FROM: u8 = 10;
/// More of a tool's description is not looked at.
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// How long a reading may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as every tier needs.
    Every,
    /// Not long: a slow tier is not asked.
    Little,
}

/// What a case is made of.
#[derive(Clone, Debug)]
pub(crate) struct CaseMaterial {
    /// The conversation so far.
    pub conversation: Arc<[Message]>,
    /// The reply.
    pub candidate: Candidate,
    /// The circumstances.
    pub context: TurnContext,
    /// What the person's words were read as.
    pub input: Arc<Reading>,
    /// What was said earlier and the model was not shown.
    pub refused: Arc<[RefusedText]>,
    /// How it is read.
    pub mode: Mode,
    /// What the application says of the tools that the reply calls.
    pub tools: Arc<[ToolDescription]>,
}

impl CaseMaterial {
    /// Reads the reply, closely.
    pub(crate) fn read(&self, detector: &Detector, patience: Patience) -> Case {
        let said = said_before(&self.conversation);
        let read = |text: &str| match patience {
            Patience::Every => detector.read_reply(&said, text, self.mode),
            Patience::Little => detector.read_reply_at_once(&said, text, self.mode),
        };
        let text = words(&self.candidate);
        let mut reply = read(&text);
        let mut input = self.input.clone();
        if text.trim().is_empty() {
            // Nothing was said: a model of replies has nothing to judge, whatever it makes of an empty text.
            reply.as_reply = None;
        } else {
            input = self.input_borne_out(detector, &text);
        }
        let (candidate, context) = (self.candidate.clone(), self.context.clone());
        Case::new(Arc::clone(&self.conversation), candidate, context, input, reply)
            .with_tools(Arc::clone(&self.tools))
            .read_closely(read)
    }

    /// What the person asks: also what was refused earlier, where the reply reads as an answer to that. Any other
    /// reply is not held against it.
    fn input_borne_out(&self, detector: &Detector, text: &str) -> Arc<Reading> {
        let mut input = self.input.clone();
        for RefusedText { text: asked, reading } in self.refused.iter() {
            let Some(refused) = reading else { continue };
            let reply = detector.read_reply(asked, text, self.mode).as_reply;
            if reply.is_some_and(|reply| reply.harm.hundredths() >= ANSWERS_FROM) {
                input = Arc::new(graver(Reading::clone(&input), Reading::clone(refused)));
            }
        }
        input
    }
}

/// What a request in OpenAI chat form says of the tools that a reply calls.
pub(crate) fn called_tools(
    body: &Map<String, Value>,
    candidate: &Candidate,
) -> Arc<[ToolDescription]> {
    let offered = |field: &str| body.get(field).and_then(Value::as_array).into_iter().flatten();
    let tools = offered("tools").map(|tool| tool.get("function").unwrap_or(tool));
    let is_called = |name: &str| candidate.tool_calls.iter().any(|call| call.name == name);
    let described = tools.chain(offered("functions")).filter_map(|tool| {
        let name = tool.get("name")?.as_str().filter(|name| is_called(name))?;
        let description = tool.get("description")?.as_str()?;
        let description = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
        Some(ToolDescription { name: name.to_owned(), description })
    });
    described.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::ToolCall;
    use serde_json::json;

    #[test]
    fn the_description_of_a_called_tool_is_found_in_either_form() {
        let call =
            |name: &str| ToolCall { id: "1".into(), name: name.into(), arguments: "{}".into() };
        let candidate =
            Candidate { tool_calls: vec![call("pump"), call("old")], ..Candidate::default() };
        let body = json!({
            "tools": [
                {"type": "function", "function": {"name": "pump", "description": "Sets a pump."}},
                {"type": "function", "function": {"name": "other", "description": "Not called."}},
                {"type": "function", "function": {"name": "old"}},
                7,
            ],
            "functions": [{"name": "old", "description": "An old tool."}],
        });
        let tools = called_tools(body.as_object().unwrap(), &candidate);
        let told: Vec<_> = tools.iter().map(|tool| tool.description.as_str()).collect();
        assert_eq!(told, ["Sets a pump.", "An old tool."]);
        assert!(called_tools(&Map::new(), &candidate).is_empty());
    }
}
