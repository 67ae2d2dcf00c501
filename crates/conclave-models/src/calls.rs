//! The tool calls of a reply as providers write them.
//!
//! **Invariant:** every action a reply asks for becomes a [`ToolCall`] or makes the whole reply
//! invalid: none is dropped unjudged.

use crate::fault::Fault;
use conclave_core::ToolCall;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most tools one reply may call.
pub(crate) const CALLS_MAX: usize = 128;

/// The longest name or id of a call.
const NAME_BYTES_MAX: usize = 256;

/// One call, whole.
#[derive(Debug, Deserialize)]
pub(crate) struct WireCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<WireFunction<'a>>,
    #[serde(borrow, default)]
    custom: Option<WireFunction<'a>>,
}

/// What is called and with what; custom tools call their arguments input.
#[derive(Debug, Deserialize)]
pub(crate) struct WireFunction<'a> {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(borrow, default, alias = "input")]
    arguments: Option<&'a RawValue>,
}

impl WireFunction<'_> {
    /// The arguments as the model wrote them: the inside of a string, or an object as it stands.
    pub(crate) fn arguments(&self) -> String {
        let raw = self.arguments.map_or("", RawValue::get);
        serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
    }
}

/// Reads the calls of a whole reply, the older single form included.
pub(crate) fn read_calls(
    calls: Vec<WireCall<'_>>,
    legacy: Option<WireFunction<'_>>,
) -> Result<Vec<ToolCall>, Fault> {
    if calls.len() > CALLS_MAX {
        return Err(Fault::invalid("the reply calls too many tools"));
    }
    let old = legacy.map(|function| WireCall { id: None, function: Some(function), custom: None });
    calls.into_iter().chain(old).enumerate().map(|(index, call)| read_call(index, call)).collect()
}

fn read_call(index: usize, call: WireCall<'_>) -> Result<ToolCall, Fault> {
    let function = call
        .function
        .or(call.custom)
        .ok_or_else(|| Fault::invalid("a tool call names no function"))?;
    let arguments = function.arguments();
    named(index, call.id, function.name, arguments)
}

/// A call with everything a client needs to answer it.
pub(crate) fn named(
    index: usize,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
) -> Result<ToolCall, Fault> {
    let name = name
        .filter(|name| !name.is_empty())
        .ok_or_else(|| Fault::invalid("a tool call has no name"))?;
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{index}"));
    if name.len().max(id.len()) > NAME_BYTES_MAX {
        return Err(Fault::invalid("a tool call has too long a name or id"));
    }
    Ok(ToolCall { id, name, arguments })
}
