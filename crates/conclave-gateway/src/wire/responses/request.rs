//! `POST /v1/responses`, as it comes in: put into chat form.
//!
//! **Invariant:** what is passed on is what was put into chat form here, and that is what is judged:
//! an item that is not understood is an error, never passed unread.

use crate::error::ApiError;
use crate::wire::chat::{read_conversation, wants_json};
use crate::wire::{
    Inquiry, flag_field, json_object, keep_stream, list_field, model_field, take_metadata,
    text_field, user_field,
};
use conclave_core::SessionId;
use conclave_engine::Delivered;
use serde_json::{Map, Value, json};

/// Fields that have their own place in chat form, or none.
const TRANSLATED: [&str; 15] = [
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "store",
    "include",
    "truncation",
    "background",
    "text",
    "reasoning",
    "max_output_tokens",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
];

/// Fields that the response says again.
const ECHOED: [&str; 13] = [
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "user",
];

/// The conversation a request goes on with.
#[derive(Clone, Debug)]
pub(crate) struct EarlierResponse {
    /// Its messages in chat form, without instructions.
    pub messages: Vec<Value>,
    pub delivered: Delivered,
    pub session: Option<SessionId>,
}

/// A request, checked, before the conversation it goes on with is known.
#[derive(Debug)]
pub(crate) struct ResponsesRequest {
    body: Map<String, Value>,
    /// The response it goes on from.
    pub previous: Option<String>,
    /// Whether it can be gone on from.
    pub store: bool,
}

/// A request in chat form, and what the response will say again of it.
#[derive(Debug)]
pub(crate) struct ResponsesInquiry {
    pub inquiry: Inquiry,
    pub echo: Map<String, Value>,
}

impl ResponsesRequest {
    /// Checks what can be checked at once.
    pub(crate) fn parse(document: Value) -> Result<Self, ApiError> {
        let body = json_object(document)?;
        if flag_field(&body, "background")? {
            return Err(ApiError::invalid("background", "is not offered here; leave it out"));
        }
        if body.get("prompt").is_some_and(|prompt| !prompt.is_null()) {
            return Err(ApiError::invalid("prompt", "stored prompts are not offered here"));
        }
        let previous = text_field(&body, "previous_response_id")?;
        let store = !matches!(body.get("store"), Some(Value::Bool(false)));
        Ok(Self { body, previous, store })
    }

    pub(crate) fn inquire(
        mut self,
        earlier: Option<EarlierResponse>,
    ) -> Result<ResponsesInquiry, ApiError> {
        let model = model_field(&self.body)?;
        let stream = flag_field(&self.body, "stream")?;
        let session = match earlier.as_ref().and_then(|earlier| earlier.session.clone()) {
            Some(session) => Some(session),
            None => named_conversation(self.body.get("conversation"))?,
        };
        let user = user_field(&self.body)?;
        let said = self.said(earlier)?;
        let mut messages = self.instructions()?;
        messages.extend(said.iter().cloned());
        let renamed = self.renamed_fields()?;
        let metadata = take_metadata(&mut self.body)?;
        let echo = self.echoed_fields();
        let mut body = self.body;
        body.retain(|name, _| !TRANSLATED.contains(&name.as_str()));
        body.extend(renamed);
        body.insert("messages".into(), messages.into());
        keep_stream(&mut body, stream);
        let kept = self.store.then(|| json!({"messages": said, "echo": echo}));
        let inquiry = Inquiry {
            model,
            conversation: read_conversation(&mut body)?,
            stream,
            choices: 1,
            structured: wants_json(body.get("response_format")),
            metadata,
            user,
            session,
            kept,
            body,
        };
        Ok(ResponsesInquiry { inquiry, echo })
    }

    fn instructions(&self) -> Result<Vec<Value>, ApiError> {
        let text = text_field(&self.body, "instructions")?;
        Ok(text.map(|text| json!({"role": "system", "content": text})).into_iter().collect())
    }

    fn said(&self, earlier: Option<EarlierResponse>) -> Result<Vec<Value>, ApiError> {
        let mut said = Vec::new();
        if let Some(earlier) = earlier {
            said = earlier.messages;
            said.push(answer_message(&earlier.delivered));
        }
        match self.body.get("input") {
            Some(Value::String(text)) => said.push(json!({"role": "user", "content": text})),
            Some(Value::Array(items)) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    translate_item(&format!("input[{at}]"), item, &mut said)?;
                }
            }
            _ => return Err(ApiError::invalid("input", "must be a string or an array of items")),
        }
        Ok(said)
    }

    /// Fields that chat form has under another name.
    fn renamed_fields(&self) -> Result<Map<String, Value>, ApiError> {
        let mut moved = Map::new();
        let mut put = |name: &str, value: Option<&Value>| {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                moved.insert(name.to_owned(), value.clone());
            }
        };
        put("max_completion_tokens", self.body.get("max_output_tokens"));
        let inner =
            |outer: &str, name: &str| self.body.get(outer).and_then(|value| value.get(name));
        put("reasoning_effort", inner("reasoning", "effort"));
        put("verbosity", inner("text", "verbosity"));
        put("response_format", inner("text", "format").map(chat_response_format).as_ref());
        let tools = chat_tools(&self.body)?;
        if !tools.is_empty() {
            put("tools", Some(&tools.into()));
            put("tool_choice", chat_tool_choice(self.body.get("tool_choice"))?.as_ref());
        }
        Ok(moved)
    }

    fn echoed_fields(&self) -> Map<String, Value> {
        let defaults = [
            ("instructions", Value::Null),
            ("max_output_tokens", Value::Null),
            ("metadata", json!({})),
            ("parallel_tool_calls", json!(true)),
            ("previous_response_id", Value::Null),
            ("reasoning", json!({"effort": null, "summary": null})),
            ("store", json!(true)),
            ("temperature", json!(1.0)),
            ("text", json!({"format": {"type": "text"}})),
            ("tool_choice", json!("auto")),
            ("tools", json!([])),
            ("top_p", json!(1.0)),
            ("truncation", json!("disabled")),
            ("user", Value::Null),
        ];
        let mut echo: Map<_, _> =
            defaults.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for name in ECHOED {
            if let Some(value) = self.body.get(name).filter(|value| !value.is_null()) {
                echo.insert(name.to_owned(), value.clone());
            }
        }
        echo
    }
}

/// What was delivered, as the model's own message.
fn answer_message(delivered: &Delivered) -> Value {
    let mut message = json!({"role": "assistant", "content": delivered.text});
    if !delivered.tool_calls.is_empty() {
        let calls = delivered.tool_calls.iter();
        message["tool_calls"] =
            calls.map(|call| call_object(&call.id, &call.name, &call.arguments)).collect();
    }
    message
}

fn call_object(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": id, "type": "function", "function": {"name": name, "arguments": arguments},
    })
}

/// A conversation that the client names; its items are not kept here, the name is the session.
fn named_conversation(conversation: Option<&Value>) -> Result<Option<SessionId>, ApiError> {
    let name = match conversation {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => name.as_str(),
        Some(other) => other.get("id").and_then(Value::as_str).unwrap_or_default(),
    };
    let session = SessionId::new(name);
    session.map(Some).map_err(|error| ApiError::invalid("conversation", error.to_string()))
}

fn translate_item(path: &str, item: &Value, said: &mut Vec<Value>) -> Result<(), ApiError> {
    let field = |name: &str| {
        let text = item.get(name).and_then(Value::as_str);
        text.ok_or_else(|| ApiError::invalid(format!("{path}.{name}"), "must be a string"))
    };
    match item.get("type").and_then(Value::as_str).unwrap_or("message") {
        "message" => {
            let role = field("role")?;
            let content = chat_content(path, item.get("content"))?;
            said.push(json!({"role": role, "content": content}));
        }
        "function_call" => {
            let call = call_object(field("call_id")?, field("name")?, field("arguments")?);
            push_call(said, call);
        }
        "function_call_output" => {
            let output = match item.get("output") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(parts)) => joined_texts(&format!("{path}.output"), parts)?,
                _ => {
                    let wrong = "must be a string or an array of parts";
                    return Err(ApiError::invalid(format!("{path}.output"), wrong));
                }
            };
            said.push(
                json!({"role": "tool", "tool_call_id": field("call_id")?, "content": output}),
            );
        }
        // Nobody judged what was thought, so it is not brought up again.
        "reasoning" => {}
        other => {
            let other = &other[..other.floor_char_boundary(64)];
            let wrong = format!("an item `{other}` cannot be read here");
            return Err(ApiError::invalid(path, wrong));
        }
    }
    Ok(())
}

/// A call stands with the others of the same turn.
fn push_call(said: &mut Vec<Value>, call: Value) {
    if let Some(last) = said.last_mut()
        && last["role"] == "assistant"
    {
        match last.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(calls) => calls.push(call),
            None => last["tool_calls"] = json!([call]),
        }
        return;
    }
    said.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
}

fn chat_content(path: &str, content: Option<&Value>) -> Result<Value, ApiError> {
    let parts = match content {
        Some(Value::String(text)) => return Ok(json!(text)),
        Some(Value::Array(parts)) => parts.iter().enumerate(),
        _ => {
            let wrong = "must be a string or an array of parts";
            return Err(ApiError::invalid(format!("{path}.content"), wrong));
        }
    };
    parts.map(|(at, value)| chat_part(&format!("{path}.content[{at}]"), value)).collect()
}

fn chat_part(path: &str, part: &Value) -> Result<Value, ApiError> {
    let field = |name: &str| part.get(name).and_then(Value::as_str);
    let missing = || ApiError::invalid(path, "lacks what its type needs");
    match field("type").unwrap_or_default() {
        "input_text" | "output_text" | "text" => {
            Ok(json!({"type": "text", "text": field("text").ok_or_else(missing)?}))
        }
        "refusal" => Ok(json!({"type": "text", "text": field("refusal").ok_or_else(missing)?})),
        "input_image" => {
            let mut image = json!({"url": field("image_url").ok_or_else(missing)?});
            if let Some(detail) = field("detail") {
                image["detail"] = json!(detail);
            }
            Ok(json!({"type": "image_url", "image_url": image}))
        }
        "input_file" => {
            let mut file = Map::new();
            for name in ["file_id", "file_data", "filename"] {
                if let Some(value) = field(name) {
                    file.insert(name.to_owned(), value.into());
                }
            }
            // In chat form an address stands where the bytes would.
            if let Some(url) = field("file_url") {
                file.insert("file_data".to_owned(), url.into());
            }
            Ok(json!({"type": "file", "file": file}))
        }
        other => {
            let other = &other[..other.floor_char_boundary(64)];
            Err(ApiError::invalid(path, format!("a part `{other}` cannot be read here")))
        }
    }
}

fn joined_texts(path: &str, parts: &[Value]) -> Result<String, ApiError> {
    let texts = parts.iter().enumerate().map(|(at, value)| {
        let place = format!("{path}[{at}]");
        let part = chat_part(&place, value)?;
        let text = part.get("text").and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| ApiError::invalid(place, "must be text: tools answer with words here"))
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn chat_tools(body: &Map<String, Value>) -> Result<Vec<Value>, ApiError> {
    let tools = list_field(body, "tools")?.iter().enumerate();
    tools
        .map(|(at, tool)| {
            let name = tool.get("name").and_then(Value::as_str);
            if tool.get("type").and_then(Value::as_str) != Some("function") || name.is_none() {
                let wrong = "must be a function with a name; other tools are not offered here";
                return Err(ApiError::invalid(format!("tools[{at}]"), wrong));
            }
            let mut function = tool.clone();
            function.as_object_mut().map(|fields| fields.shift_remove("type"));
            Ok(json!({"type": "function", "function": function}))
        })
        .collect()
}

fn chat_tool_choice(choice: Option<&Value>) -> Result<Option<Value>, ApiError> {
    match choice {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) => Ok(Some(json!(word))),
        Some(other) => {
            let name = other.get("name").and_then(Value::as_str).ok_or_else(|| {
                ApiError::invalid("tool_choice", "must be a word or name a function")
            })?;
            Ok(Some(json!({"type": "function", "function": {"name": name}})))
        }
    }
}

/// `text.format` as chat form has it: the schema one level deeper.
fn chat_response_format(format: &Value) -> Value {
    if format.get("type").and_then(Value::as_str) != Some("json_schema") {
        return format.clone();
    }
    let mut schema = format.clone();
    schema.as_object_mut().map(|fields| fields.shift_remove("type"));
    json!({"type": "json_schema", "json_schema": schema})
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
