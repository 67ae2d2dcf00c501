//! The request as Anthropic wants it.

use super::REPLY_TOOL;
use super::content::{blocks, is_marked, joined_text, marked, text_block, unreadable};
use crate::fault::Fault;
use bytes::Bytes;
use conclave_core::Role;
use conclave_engine::ModelRequest;
use serde_json::{Map, Value, json};

/// Highest temperature the protocol knows.
const TEMPERATURE_MAX: f64 = 1.0;
/// A conversation must begin with the person; where it does not, this stands there.
const OPENING: &str = "(The conversation begins.)";

/// Fields that came by Anthropic's own interface and are sent as they came.
const NATIVE: [&str; 4] = ["output_config", "output_format", "metadata", "service_tier"];

/// What a request that came by Anthropic's own interface holds of it.
fn native_fields(from: &Map<String, Value>) -> Option<&Value> {
    from.get("conclave")?.get("anthropic")
}

/// Whether the provider is told the shape of the reply in its own words.
fn has_own_format(native: Option<&Value>) -> bool {
    let places = ["/output_config/format", "/output_format"];
    let stated = |place: &&str| native?.pointer(place).filter(|value| !value.is_null());
    places.iter().any(|place| stated(place).is_some())
}

/// The betas that a request asks for, as the header says them.
pub(crate) fn betas(from: &Map<String, Value>) -> Option<String> {
    let names = native_fields(from)?.get("betas")?.as_array()?;
    let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// The request in Anthropic's form.
pub(crate) fn body(
    request: &ModelRequest,
    (model, stream): (&str, bool),
    tokens_max: u32,
    temperature: Option<f32>,
) -> Result<Bytes, Fault> {
    let from = &*request.body;
    let mut spoken = Spoken::default();
    match from.get("messages") {
        Some(Value::Array(messages)) => {
            messages.iter().try_for_each(|message| spoken.take(message))?;
        }
        _ => request.conversation.iter().try_for_each(|message| {
            spoken.take(&json!({
                "role": message.role.as_str(), "content": message.content.as_text(),
            }))
        })?,
    }
    spoken.system.extend(request.guidance.as_deref().and_then(text_block));
    let mut to = Map::new();
    to.insert("model".into(), model.into());
    to.insert("max_tokens".into(), tokens(from, tokens_max));
    tools(from, &mut to)?;
    let native = native_fields(from);
    if !has_own_format(native) {
        let asked = schema(from, &mut to);
        spoken.system.extend(asked.as_deref().and_then(text_block));
    }
    if let Some(system) = spoken.instructions() {
        to.insert("system".into(), system);
    }
    to.insert("messages".into(), spoken.finish());
    sampling(from, temperature, &mut to);
    for name in NATIVE {
        if let Some(value) = native.and_then(|native| native.get(name)) {
            to.insert(name.into(), value.clone());
        }
    }
    if stream {
        to.insert("stream".into(), true.into());
    }
    serde_json::to_vec(&to)
        .map(Bytes::from)
        .map_err(|_| Fault::invalid("the request has no JSON form"))
}

/// The messages so far: instructions apart, the rest in turns of user and assistant.
#[derive(Default)]
struct Spoken {
    system: Vec<Value>,
    turns: Vec<(&'static str, Vec<Value>)>,
}

impl Spoken {
    fn take(&mut self, message: &Value) -> Result<(), Fault> {
        let content = message.get("content");
        let role = message["role"].as_str().and_then(Role::parse).ok_or_else(unreadable)?;
        match role {
            Role::System | Role::Developer => {
                let said = blocks(content)?;
                if said.iter().any(is_marked) {
                    self.system.extend(said.into_iter().filter(|block| block["text"].is_string()));
                } else {
                    self.system.extend(text_block(&joined_text(&said)));
                }
            }
            Role::User => self.say("user", blocks(content)?),
            Role::Assistant => {
                let mut said = blocks(content)?;
                said.extend(calls(message)?);
                self.say("assistant", said);
            }
            Role::Tool => self.say("user", vec![tool_result(message)?]),
        }
        Ok(())
    }

    /// Whoever speaks twice in a row has said it in one turn.
    fn say(&mut self, role: &'static str, said: Vec<Value>) {
        match self.turns.last_mut() {
            Some((last, blocks)) if *last == role => blocks.extend(said),
            _ if said.is_empty() => {}
            _ => self.turns.push((role, said)),
        }
    }

    /// One text, or blocks where one of them ends what may be kept.
    fn instructions(&mut self) -> Option<Value> {
        let blocks = std::mem::take(&mut self.system);
        if blocks.iter().any(is_marked) {
            return Some(blocks.into());
        }
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n").into())
    }

    fn finish(mut self) -> Value {
        if self.turns.first().is_none_or(|(role, _)| *role != "user") {
            self.turns.insert(0, ("user", text_block(OPENING).into_iter().collect()));
        }
        // The beginning of a reply may not end in blanks.
        if let Some(("assistant", blocks)) = self.turns.last_mut()
            && let Some(Value::String(text)) = blocks.last_mut().and_then(|b| b.get_mut("text"))
        {
            text.truncate(text.trim_end().len());
        }
        let message = |(role, content)| json!({"role": role, "content": content});
        self.turns.into_iter().map(message).collect()
    }
}

/// The tool calls of an earlier reply, the older single form included.
fn calls(message: &Value) -> Result<Vec<Value>, Fault> {
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let legacy = message.get("function_call").filter(|call| call.is_object());
    let legacy = legacy.map(|call| tool_use(&legacy_id(&call["name"]), call));
    let new = calls.iter().map(|call| {
        let id = call["id"].as_str().ok_or_else(unreadable)?;
        Ok(marked(tool_use(id, &call["function"])?, call))
    });
    new.chain(legacy).collect()
}

fn tool_use(id: &str, function: &Value) -> Result<Value, Fault> {
    let name = function["name"].as_str().ok_or_else(unreadable)?;
    let arguments = function["arguments"].as_str().unwrap_or_default();
    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
    let input = if input.is_object() { input } else { json!({}) };
    Ok(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

fn tool_result(message: &Value) -> Result<Value, Fault> {
    let id = message["tool_call_id"].as_str().map(str::to_owned);
    let id = id.unwrap_or_else(|| legacy_id(&message["name"]));
    let content = blocks(message.get("content"))?;
    let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    if message.get("is_error") == Some(&Value::Bool(true)) {
        result["is_error"] = true.into();
    }
    Ok(marked(result, message))
}

/// The older form has no ids; a call and its result have the name in common.
fn legacy_id(name: &Value) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.as_str().unwrap_or_default().chars().filter(plain).collect();
    format!("function_{name}")
}

fn tokens(from: &Map<String, Value>, tokens_max: u32) -> Value {
    let named = ["max_completion_tokens", "max_tokens"];
    let asked = named.iter().find_map(|name| from.get(*name).and_then(Value::as_u64));
    asked.filter(|tokens| *tokens > 0).unwrap_or_else(|| tokens_max.into()).into()
}

fn tools(from: &Map<String, Value>, to: &mut Map<String, Value>) -> Result<(), Fault> {
    let new = from.get("tools").and_then(Value::as_array).into_iter().flatten();
    let old = from.get("functions").and_then(Value::as_array).into_iter().flatten();
    let new = new.map(|offered| Ok(marked(tool(&offered["function"])?, offered)));
    let tools: Result<Vec<_>, Fault> = new.chain(old.map(tool)).collect();
    let tools = tools?;
    if tools.is_empty() {
        return Ok(());
    }
    to.insert("tools".into(), tools.into());
    let choice = from.get("tool_choice").or_else(|| from.get("function_call"));
    let mut choice = choice.and_then(tool_choice).unwrap_or_else(|| json!({"type": "auto"}));
    if from.get("parallel_tool_calls") == Some(&Value::Bool(false)) && choice["type"] != "none" {
        choice["disable_parallel_tool_use"] = true.into();
    }
    to.insert("tool_choice".into(), choice);
    Ok(())
}

fn tool(function: &Value) -> Result<Value, Fault> {
    let unknown = || Fault::refused("this provider is offered functions only", false).conclusive();
    let name = function["name"].as_str().ok_or_else(unknown)?;
    let schema = function.get("parameters").filter(|schema| schema.is_object());
    let schema = schema.cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let mut tool = json!({"name": name, "input_schema": schema});
    if let Some(description) = function["description"].as_str() {
        tool["description"] = description.into();
    }
    if function["strict"] == true {
        tool["strict"] = true.into();
    }
    Ok(tool)
}

fn tool_choice(choice: &Value) -> Option<Value> {
    match choice.as_str() {
        Some("required") => return Some(json!({"type": "any"})),
        Some("none") => return Some(json!({"type": "none"})),
        Some(_) => return None,
        None => {}
    }
    let name = choice.pointer("/function/name").or_else(|| choice.get("name"))?.as_str()?;
    Some(json!({"type": "tool", "name": name}))
}

/// Structured output: without tools of the client's the reply is made to be the arguments of one of
/// ours; beside them, it is asked for in words, which are returned.
fn schema(from: &Map<String, Value>, to: &mut Map<String, Value>) -> Option<String> {
    let format = from.get("response_format")?;
    let schema = match format["type"].as_str()? {
        "json_schema" => format.pointer("/json_schema/schema")?.clone(),
        "json_object" => {
            return Some("Answer with one JSON object and nothing else.".to_owned());
        }
        _ => return None,
    };
    if to.contains_key("tools") || schema["type"] != "object" {
        return Some(format!(
            "Where you answer in words, answer with one JSON value and nothing else. It must fit \
             this JSON Schema: {schema}"
        ));
    }
    let description = "Gives the answer.";
    let tool = json!({"name": REPLY_TOOL, "description": description, "input_schema": schema});
    to.insert("tools".into(), json!([tool]));
    to.insert("tool_choice".into(), json!({"type": "tool", "name": REPLY_TOOL}));
    None
}

fn sampling(from: &Map<String, Value>, temperature: Option<f32>, to: &mut Map<String, Value>) {
    let number = |name: &str| from.get(name).and_then(Value::as_f64);
    let suggested = temperature.filter(|value| value.is_finite()).map(f64::from);
    if let Some(value) = number("temperature").or(suggested) {
        to.insert("temperature".into(), value.clamp(0.0, TEMPERATURE_MAX).into());
    }
    for name in ["top_p", "top_k"] {
        if let Some(value) = from.get(name).filter(|value| value.is_number()) {
            to.insert(name.into(), value.clone());
        }
    }
    let stop = match from.get("stop") {
        Some(Value::String(word)) => vec![Value::from(word.as_str())],
        Some(Value::Array(words)) => words.clone(),
        _ => Vec::new(),
    };
    // Anthropic refuses blank ones.
    let is_said = |word: &Value| word.as_str().is_some_and(|word| !word.trim().is_empty());
    let stop: Vec<_> = stop.into_iter().filter(is_said).collect();
    if !stop.is_empty() {
        to.insert("stop_sequences".into(), stop.into());
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
