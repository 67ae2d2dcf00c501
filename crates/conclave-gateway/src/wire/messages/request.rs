//! `POST /v1/messages`, as it comes in: Anthropic's interface, put into chat form.
//!
//! **Invariant:** what is passed on is what was put into chat form here, and that is what is judged:
//! a block that is not understood is an error, never passed unread.

use crate::error::ApiError;
use crate::wire::chat::{read_conversation, wants_json};
use crate::wire::files::text_file;
use crate::wire::{
    Inquiry, OWN_FIELDS, flag_field, json_object, keep_stream, list_field, model_field,
    take_metadata, user_field,
};
use conclave_core::{Usage, UserId};
use http::HeaderMap;
use serde_json::{Map, Value, json};

/// Fields that have their own place in chat form, or no place at all: thinking is never shown, because
/// nobody judges it.
const TRANSLATED: [&str; 11] = [
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stop_sequences",
    "metadata",
    "thinking",
    "stream",
    "output_config",
    "output_format",
    "service_tier",
];

/// Fields that only a provider of this interface understands; it is sent them as they came.
const NATIVE: [&str; 4] = ["output_config", "output_format", "metadata", "service_tier"];
/// How many betas a request may name, and how long the name of one is at most.
const BETAS_MAX: usize = 32;
const BETA_BYTES_MAX: usize = 80;
/// How long the kind and the age of a cache mark are at most.
const CACHE_WORD_BYTES_MAX: usize = 16;

/// Checks a request and puts it into chat form.
pub(crate) fn parse_messages(document: Value, betas: &[String]) -> Result<Inquiry, ApiError> {
    let mut body = json_object(document)?;
    let model = model_field(&body)?;
    let stream = flag_field(&body, "stream")?;
    if body.contains_key("mcp_servers") {
        return Err(ApiError::invalid("mcp_servers", "a request cannot choose hosts"));
    }
    check_max_tokens(&body)?;
    let messages = chat_messages(&body)?;
    let tools = chat_tools(&body)?;
    let stop = body.get("stop_sequences").cloned();
    let choice = chat_tool_choice(body.get("tool_choice"))?;
    let metadata = take_metadata(&mut body)?;
    let user = read_user(&body, metadata.as_ref())?;
    let native = native_fields(&body, betas);
    let format = chat_response_format(&body);
    let effort = chat_effort(&body);
    body.retain(|name, _| !TRANSLATED.contains(&name.as_str()));
    body.insert("messages".into(), messages.into());
    if let Some(user) = &user {
        body.insert("user".into(), user.as_str().into());
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        body.extend(choice);
    }
    if let Some(stop) = stop.filter(|stop| !stop.is_null()) {
        body.insert("stop".into(), stop);
    }
    let others = [("response_format", format), ("reasoning_effort", effort)];
    for (name, value) in others {
        if let Some(value) = value.filter(|_| !body.contains_key(name)) {
            body.insert(name.into(), value);
        }
    }
    body.insert(OWN_FIELDS.into(), native);
    keep_stream(&mut body, stream);
    Ok(Inquiry {
        model,
        conversation: read_conversation(&mut body)?,
        stream,
        choices: 1,
        structured: wants_json(body.get("response_format")),
        metadata,
        user,
        body,
        ..Inquiry::default()
    })
}

/// An estimate of what a model reads in a request: a quarter of the bytes of its texts and tools.
pub(crate) fn count_tokens(document: Value) -> Result<u64, ApiError> {
    let inquiry = parse_messages(document, &[])?;
    let texts = inquiry.conversation.iter().map(|message| message.content.as_text().len());
    let calls = inquiry.body.get("messages").and_then(Value::as_array).into_iter().flatten();
    let calls = calls.filter_map(|message| message.get("tool_calls"));
    let tools = calls.chain(inquiry.body.get("tools")).map(|value| value.to_string().len());
    Ok(Usage::tokens_of(texts.chain(tools).sum()))
}

/// The betas that a request asks for, by name: a header that names features of the provider and nothing else.
pub(crate) fn read_betas(headers: &HeaderMap) -> Result<Vec<String>, ApiError> {
    let wrong = || {
        let message = format!("must be names of betas, {BETAS_MAX} at most, separated by commas");
        ApiError::invalid("anthropic-beta", message)
    };
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let mut betas = Vec::new();
    for value in headers.get_all("anthropic-beta") {
        let value = value.to_str().map_err(|_| wrong())?;
        for name in value.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let is_name = name.len() <= BETA_BYTES_MAX && name.bytes().all(is_sign);
            if !is_name || betas.len() == BETAS_MAX {
                return Err(wrong());
            }
            betas.push(name.to_owned());
        }
    }
    Ok(betas)
}

/// What goes to a provider of this interface as it came.
fn native_fields(body: &Map<String, Value>, betas: &[String]) -> Value {
    let stated = |name: &&str| body.get(*name).filter(|value| !value.is_null());
    let mut native: Map<String, Value> = NATIVE
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), stated(name)?.clone())))
        .collect();
    if !betas.is_empty() {
        native.insert("betas".into(), betas.into());
    }
    json!({"anthropic": native})
}

/// The shape a reply is to have, for providers of another interface.
fn chat_response_format(body: &Map<String, Value>) -> Option<Value> {
    let inner = body.get("output_config").and_then(|config| config.get("format"));
    let format = inner.or_else(|| body.get("output_format"))?;
    if kind_of(format) != "json_schema" {
        return None;
    }
    let schema = format.get("schema")?;
    Some(json!({
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": true, "schema": schema},
    }))
}

/// How hard a model is to think, in the words of the other interface.
fn chat_effort(body: &Map<String, Value>) -> Option<Value> {
    match body.get("output_config")?.get("effort")?.as_str()? {
        effort @ ("low" | "medium" | "high") => Some(json!(effort)),
        "xhigh" | "max" => Some(json!("high")),
        _ => None,
    }
}

/// Marks a part as the end of what a provider may keep to read it once.
fn with_cache_mark(mut part: Value, path: &str, block: &Value) -> Result<Value, ApiError> {
    let mark = match block.get("cache_control") {
        None | Some(Value::Null) => return Ok(part),
        Some(mark) => mark,
    };
    let path = format!("{path}.cache_control");
    let is_word = |word: &str| {
        (1..=CACHE_WORD_BYTES_MAX).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let kind = mark.get("type").and_then(Value::as_str).filter(|word| is_word(word));
    let kind = kind.ok_or_else(|| ApiError::invalid(path.clone(), "must have a `type`"))?;
    let mut kept = json!({"type": kind});
    match mark.get("ttl") {
        None | Some(Value::Null) => {}
        Some(Value::String(ttl)) if is_word(ttl) => kept["ttl"] = json!(ttl),
        Some(_) => return Err(ApiError::invalid(path, "must have a `ttl` such as `5m` or `1h`")),
    }
    part["cache_control"] = kept;
    Ok(part)
}

fn check_max_tokens(body: &Map<String, Value>) -> Result<(), ApiError> {
    match body.get("max_tokens") {
        None | Some(Value::Null) => Ok(()),
        Some(number) if number.as_u64().is_some_and(|number| number > 0) => Ok(()),
        Some(_) => Err(ApiError::invalid("max_tokens", "must be a whole number, 1 at least")),
    }
}

fn read_user(
    body: &Map<String, Value>,
    metadata: Option<&Map<String, Value>>,
) -> Result<Option<UserId>, ApiError> {
    if let Some(user) = user_field(body)? {
        return Ok(Some(user));
    }
    match metadata.and_then(|metadata| metadata.get("user_id")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) if name.is_empty() => Ok(None),
        Some(Value::String(name)) => UserId::new(name.as_str())
            .map(Some)
            .map_err(|error| ApiError::invalid("metadata.user_id", error.to_string())),
        Some(_) => Err(ApiError::invalid("metadata.user_id", "must be a string")),
    }
}

fn chat_messages(body: &Map<String, Value>) -> Result<Vec<Value>, ApiError> {
    let mut out = Vec::new();
    match body.get("system") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => out.push(json!({"role": "system", "content": text})),
        Some(Value::Array(blocks)) => out.push(system_message(blocks)?),
        Some(_) => return Err(ApiError::invalid("system", "must be a string or an array")),
    }
    let Some(Value::Array(list)) = body.get("messages") else {
        return Err(ApiError::invalid("messages", "must be an array of messages"));
    };
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "must hold at least one message"));
    }
    for (at, message) in list.iter().enumerate() {
        translate_message(&format!("messages[{at}]"), message, &mut out)?;
    }
    Ok(out)
}

/// Instructions in blocks are one text, unless one of them ends what may be kept.
fn system_message(blocks: &[Value]) -> Result<Value, ApiError> {
    let parts = blocks.iter().enumerate().map(|(at, block)| {
        let text = json!({"type": "text", "text": text_of(block, "system", at)?});
        with_cache_mark(text, &format!("system[{at}]"), block)
    });
    let parts = parts.collect::<Result<Vec<_>, ApiError>>()?;
    if parts.iter().any(|part| part.get("cache_control").is_some()) {
        return Ok(json!({"role": "system", "content": parts}));
    }
    let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    Ok(json!({"role": "system", "content": texts.join("\n")}))
}

fn translate_message(path: &str, message: &Value, out: &mut Vec<Value>) -> Result<(), ApiError> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    if !matches!(role, "user" | "assistant") {
        let wrong = "must be `user` or `assistant`; instructions go into `system`";
        return Err(ApiError::invalid(format!("{path}.role"), wrong));
    }
    let path = format!("{path}.content");
    match message.get("content") {
        Some(Value::String(text)) => out.push(json!({"role": role, "content": text})),
        Some(Value::Array(blocks)) if role == "user" => said_by_user(&path, blocks, out)?,
        Some(Value::Array(blocks)) => out.push(said_by_model(&path, blocks)?),
        _ => return Err(ApiError::invalid(path, "must be a string or an array of blocks")),
    }
    Ok(())
}

/// Results of tools become messages of their own, before what else the person says.
fn said_by_user(path: &str, blocks: &[Value], out: &mut Vec<Value>) -> Result<(), ApiError> {
    let mut parts = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if kind_of(block) == "tool_result" {
            let ToolResult { text, images } = tool_result(&format!("{path}[{at}]"), block)?;
            let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
            let mut result = json!({"role": "tool", "tool_call_id": id, "content": text});
            if block.get("is_error") == Some(&Value::Bool(true)) {
                result["is_error"] = true.into();
            }
            out.push(with_cache_mark(result, &format!("{path}[{at}]"), block)?);
            parts.extend(images);
        } else {
            parts.push(chat_part(path, at, block)?);
        }
    }
    if !parts.is_empty() || blocks.is_empty() {
        out.push(json!({"role": "user", "content": parts}));
    }
    Ok(())
}

/// What a tool said, and the images it brought: chat form has no place for them in a tool's message.
#[derive(Default)]
struct ToolResult {
    text: String,
    images: Vec<Value>,
}

fn tool_result(path: &str, block: &Value) -> Result<ToolResult, ApiError> {
    match block.get("content") {
        None | Some(Value::Null) => Ok(ToolResult::default()),
        Some(Value::String(text)) => Ok(ToolResult { text: text.clone(), images: Vec::new() }),
        Some(Value::Array(blocks)) => {
            let mut texts = Vec::new();
            let mut images = Vec::new();
            for (at, block) in blocks.iter().enumerate() {
                let part = chat_part(path, at, block)?;
                match part.get("text").and_then(Value::as_str) {
                    Some(text) => texts.push(text.to_owned()),
                    None => images.push(part),
                }
            }
            Ok(ToolResult { text: texts.join("\n"), images })
        }
        Some(_) => Err(ApiError::invalid(path, "must hold a string or an array of blocks")),
    }
}

fn said_by_model(path: &str, blocks: &[Value]) -> Result<Value, ApiError> {
    let mut text = String::new();
    let mut mark = json!({});
    let mut calls = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        match kind_of(block) {
            "text" => {
                text.push_str(text_of(block, path, at)?);
                mark = with_cache_mark(mark, &format!("{path}[{at}]"), block)?;
            }
            "tool_use" => {
                let call = json!({
                    "id": block.get("id"),
                    "type": "function",
                    "function": {
                        "name": block.get("name"),
                        "arguments": block.get("input").unwrap_or(&Value::Null).to_string(),
                    },
                });
                calls.push(with_cache_mark(call, &format!("{path}[{at}]"), block)?);
            }
            // Nobody judged what was thought, so it is not brought up again.
            "thinking" | "redacted_thinking" => {}
            other => return Err(unknown_block(path, at, other)),
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if let Some(mark) = mark.get("cache_control") {
        message["content"] = json!([{"type": "text", "text": text, "cache_control": mark}]);
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Ok(message)
}

fn chat_part(path: &str, at: usize, block: &Value) -> Result<Value, ApiError> {
    with_cache_mark(unmarked_part(path, at, block)?, &format!("{path}[{at}]"), block)
}

fn unmarked_part(path: &str, at: usize, block: &Value) -> Result<Value, ApiError> {
    match kind_of(block) {
        "text" => Ok(json!({"type": "text", "text": text_of(block, path, at)?})),
        "image" => {
            Ok(json!({"type": "image_url", "image_url": {"url": source_url(path, at, block)?}}))
        }
        "document" => {
            let source_kind = block.pointer("/source/type").and_then(Value::as_str);
            if source_kind == Some("text") {
                let text = block.pointer("/source/data").and_then(Value::as_str);
                let title = block.get("title").and_then(Value::as_str);
                return Ok(text_file(title, text.unwrap_or_default()));
            }
            Ok(json!({"type": "file", "file": {
                "filename": block.get("title").and_then(Value::as_str).unwrap_or("document"),
                "file_data": source_url(path, at, block)?,
            }}))
        }
        other => Err(unknown_block(path, at, other)),
    }
}

/// Where an image or file is: its bytes, or a URL for the provider to fetch.
fn source_url(path: &str, at: usize, block: &Value) -> Result<String, ApiError> {
    let field = |name: &str| block.pointer(&format!("/source/{name}")).and_then(Value::as_str);
    match (field("type"), field("media_type"), field("data"), field("url")) {
        (Some("base64"), Some(kind), Some(data), _) => Ok(format!("data:{kind};base64,{data}")),
        (Some("url"), _, _, Some(url)) => Ok(url.to_owned()),
        _ => {
            let wrong = "must have a source of type `base64` or `url`";
            Err(ApiError::invalid(format!("{path}[{at}]"), wrong))
        }
    }
}

fn kind_of(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn text_of<'a>(block: &'a Value, path: &str, at: usize) -> Result<&'a str, ApiError> {
    let text = block.get("text").and_then(Value::as_str);
    text.filter(|_| kind_of(block) == "text").ok_or_else(|| {
        ApiError::invalid(format!("{path}[{at}]"), "must be a block of type `text` with its text")
    })
}

fn unknown_block(path: &str, at: usize, kind: &str) -> ApiError {
    let kind = &kind[..kind.floor_char_boundary(64)];
    ApiError::invalid(format!("{path}[{at}]"), format!("a block `{kind}` cannot stand here"))
}

fn chat_tools(body: &Map<String, Value>) -> Result<Vec<Value>, ApiError> {
    let tools = list_field(body, "tools")?.iter().enumerate();
    tools
        .map(|(at, tool)| {
            let kind = tool.get("type").and_then(Value::as_str).unwrap_or("custom");
            let name = tool.get("name").and_then(Value::as_str);
            let (Some(name), "custom") = (name, kind) else {
                let wrong = "must be a tool of the client, with a name; others are not offered";
                return Err(ApiError::invalid(format!("tools[{at}]"), wrong));
            };
            let mut function = json!({"name": name});
            let fields = [
                ("description", "description"),
                ("input_schema", "parameters"),
                ("strict", "strict"),
            ];
            for (theirs, ours) in fields {
                if let Some(value) = tool.get(theirs) {
                    function[ours] = value.clone();
                }
            }
            let function = json!({"type": "function", "function": function});
            with_cache_mark(function, &format!("tools[{at}]"), tool)
        })
        .collect()
}

fn chat_tool_choice(choice: Option<&Value>) -> Result<Map<String, Value>, ApiError> {
    let Some(choice) = choice.filter(|choice| !choice.is_null()) else {
        return Ok(Map::new());
    };
    let name = choice.get("name").and_then(Value::as_str);
    let ours = match (kind_of(choice), name) {
        ("auto", _) => json!("auto"),
        ("any", _) => json!("required"),
        ("none", _) => json!("none"),
        ("tool", Some(name)) => json!({"type": "function", "function": {"name": name}}),
        _ => {
            let wrong = "must be `auto`, `any`, `none`, or `tool` with a name";
            return Err(ApiError::invalid("tool_choice.type", wrong));
        }
    };
    let mut fields = Map::from_iter([("tool_choice".to_owned(), ours)]);
    if choice.get("disable_parallel_tool_use") == Some(&Value::Bool(true)) {
        fields.insert("parallel_tool_calls".to_owned(), Value::Bool(false));
    }
    Ok(fields)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
