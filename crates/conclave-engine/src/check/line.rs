//! One line of `check --jsonl`, which is also the body of `/v1/verify`.

use crate::check::Question;
use conclave_core::{Candidate, Message, Mode, Role, ToolCall};
use serde_json::{Map, Value};
use thiserror::Error;

/// Turns in one conversation.
const TURNS_MAX: usize = 2_000;

/// What is wrong with a line, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
pub struct LineError {
    /// The field.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

fn wrong(path: impl Into<String>, message: impl Into<String>) -> LineError {
    LineError { path: path.into(), message: message.into() }
}

impl Question {
    /// Reads a line: `text` or `turns`, and perhaps `response`, `tools`, `candidate_action` and `mode`;
    /// other fields are not looked at.
    ///
    /// # Errors
    /// When a field has the wrong shape, or nothing is left to judge.
    pub fn from_line(line: &Map<String, Value>) -> Result<Self, LineError> {
        let turns = turns(line)?;
        let reply = reply(line)?;
        if turns.is_empty() && reply.is_none() {
            return Err(wrong("text", "there is nothing to judge: give `text` or `turns`"));
        }
        Ok(Self { turns, reply, mode: mode(line)?.unwrap_or_default() })
    }
}

fn mode(line: &Map<String, Value>) -> Result<Option<Mode>, LineError> {
    match line.get("mode") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Mode::parse(name)
            .map(Some)
            .ok_or_else(|| wrong("mode", format!("there is no mode `{name}`"))),
        Some(_) => Err(wrong("mode", "must be a string")),
    }
}

fn turns(line: &Map<String, Value>) -> Result<Vec<Message>, LineError> {
    let given = |name| line.get(name).filter(|value| !value.is_null());
    match (given("text"), given("turns")) {
        (Some(_), Some(_)) => Err(wrong("text", "stands beside `turns`: give one of them")),
        (Some(Value::String(text)), None) => Ok(vec![Message::text(Role::User, text.as_str())]),
        (Some(_), None) => Err(wrong("text", "must be a string")),
        (None, Some(Value::Array(turns))) if turns.len() <= TURNS_MAX => {
            turns.iter().enumerate().map(|(at, value)| turn(at, value)).collect()
        }
        (None, Some(_)) => {
            Err(wrong("turns", format!("must be an array of at most {TURNS_MAX} messages")))
        }
        (None, None) => Ok(Vec::new()),
    }
}

fn turn(at: usize, value: &Value) -> Result<Message, LineError> {
    let text = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| wrong(format!("turns[{at}].{name}"), "must be a string"))
    };
    let role = text("role")?;
    let known = Role::parse(role);
    let role = known
        .ok_or_else(|| wrong(format!("turns[{at}].role"), format!("`{role}` is not a role")))?;
    Ok(Message::text(role, text("content")?))
}

fn reply(line: &Map<String, Value>) -> Result<Option<Candidate>, LineError> {
    let mut tool_calls: Vec<_> = match line.get("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => {
            let calls = calls.iter().enumerate().map(|(at, call)| tool_call(at, call));
            calls.collect::<Result<_, _>>()?
        }
        Some(_) => return Err(wrong("tools", "must be an array of tool calls")),
    };
    tool_calls.extend(described(line)?);
    let text = match line.get("response") {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) if tool_calls.is_empty() => return Ok(None),
        None | Some(Value::Null) => String::new(),
        Some(_) => return Err(wrong("response", "must be a string")),
    };
    Ok(Some(Candidate { text, tool_calls, ..Candidate::default() }))
}

/// An action that is only described: a call of no tool, weighed by what it says.
fn described(line: &Map<String, Value>) -> Result<Option<ToolCall>, LineError> {
    match line.get("candidate_action") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let (id, name) = (String::new(), String::new());
            Ok(Some(ToolCall { id, name, arguments: text.clone() }))
        }
        Some(_) => Err(wrong("candidate_action", "must be a string")),
    }
}

/// `{name, arguments}`, also inside `function`; arguments as text or as JSON.
fn tool_call(at: usize, call: &Value) -> Result<ToolCall, LineError> {
    let function = call.get("function").unwrap_or(call);
    let name = function.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| wrong(format!("tools[{at}].name"), "must be a string"))?;
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(ToolCall { id, name: name.to_owned(), arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(line: &Value) -> Result<Question, LineError> {
        Question::from_line(line.as_object().unwrap())
    }

    #[test]
    fn lines_are_read_in_every_documented_shape() {
        let text = read(&json!({"id": 1, "text": "hello", "label": "safe"})).unwrap();
        assert_eq!(text.turns.len(), 1);
        assert!(text.reply.is_none());
        let reply = read(&json!({
            "turns": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
            "response": "c", "mode": "child_safe",
            "tools": [{"name": "f", "arguments": {"x": 1}}],
        }))
        .unwrap();
        assert_eq!(reply.mode, Mode::ChildSafe);
        assert_eq!(reply.reply.unwrap().tool_calls[0].arguments, r#"{"x":1}"#);
        let action = read(&json!({"text": "a", "candidate_action": "delete all backups"})).unwrap();
        let call = action.reply.unwrap().tool_calls.remove(0);
        assert_eq!((&*call.name, &*call.arguments), ("", "delete all backups"));
    }

    #[test]
    fn wrong_lines_name_the_field() {
        for (line, path) in [
            (json!({}), "text"),
            (json!({"text": 1}), "text"),
            (json!({"text": "a", "turns": []}), "text"),
            (json!({"turns": "a"}), "turns"),
            (json!({"turns": [{"content": "a"}]}), "turns[0].role"),
            (json!({"turns": [{"role": "alien", "content": "a"}]}), "turns[0].role"),
            (json!({"turns": [{"role": "user", "content": 1}]}), "turns[0].content"),
            (json!({"text": "a", "response": 1}), "response"),
            (json!({"text": "a", "tools": [{}]}), "tools[0].name"),
            (json!({"text": "a", "candidate_action": 1}), "candidate_action"),
            (json!({"text": "a", "mode": "gentle"}), "mode"),
        ] {
            assert_eq!(read(&line).unwrap_err().path, path, "{line}");
        }
    }
}
