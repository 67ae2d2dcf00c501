//! The tool calls of a reply as providers write them.
//!
//! **Invariant:** every action a reply asks for becomes a [`ToolCall`] or makes the whole reply
//! invalid: none is dropped unjudged.
//!
//! **Invariant:** names and ids are names and ids: nothing that could be read as a sentence.

use crate::fault::Fault;
use conclave_core::ToolCall;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most tools one reply may call.
pub(crate) const CALLS_MAX: usize = 128;

/// The longest name or id of a call.
const NAME_BYTES_MAX: usize = 128;

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
    if !is_plain(&name) {
        return Err(Fault::invalid("a tool call has a name that is none"));
    }
    // An id means nothing but which call is answered, so that ours does as well.
    let id = id.filter(|id| is_plain(id)).unwrap_or_else(|| format!("call_{index}"));
    Ok(ToolCall { id, name, arguments })
}

fn is_plain(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:/-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_of_calls_are_no_place_for_words() {
        let call = |id: &str, name: &str| named(3, Some(id.into()), Some(name.into()), "{}".into());
        for name in ["look_up", "mcp.files/read-all", "functions.look:0"] {
            let made = call("call_A-1", name).unwrap();
            assert_eq!((made.id.as_str(), made.name.as_str()), ("call_A-1", name));
        }
        for words in ["look up", "n\u{e4}me", "a\nb", "<b>", &"x".repeat(129)] {
            assert!(call("call_1", words).is_err(), "{words}");
            assert_eq!(call(words, "look_up").unwrap().id, "call_3", "{words}");
        }
        assert_eq!(call("", "look_up").unwrap().id, "call_3");
        assert!(call("call_1", "").is_err());
    }
}
