//! The request as it goes to a provider.
//!
//! **Invariant:** fields that choose a host, a key or a header are removed, whatever their case;
//! what is unknown passes through.
//!
//! **Invariant:** no field is sent that a lenient reader could take for one that was judged: a
//! second `Messages` beside `messages` is removed.
//!
//! **Invariant:** no field is sent by which words reach a model beside the messages that were judged, or
//! in their place.

use conclave_core::Role;
use conclave_engine::ModelRequest;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};

/// Fields that this crate writes itself or leaves out.
const OWN: [&str; 5] = ["messages", "stream", "stream_options", "n", "conclave"];

/// Fields by which other gateways let a client choose where a request goes and with which key.
const ROUTING: [&str; 45] = [
    "access_token",
    "api_base",
    "api_key",
    "api_type",
    "api_version",
    "authorization",
    "base_url",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "caching",
    "client",
    "context_window_fallback_dict",
    "custom_llm_provider",
    "data_sources",
    "datasources",
    "default_headers",
    "deployment_id",
    "endpoint",
    "engine",
    "extra_body",
    "extra_headers",
    "extra_query",
    "fallbacks",
    "headers",
    "http_client",
    "kv_transfer_params",
    "lora_path",
    "max_retries",
    "mock_response",
    "model_list",
    "models",
    "num_retries",
    "openai_organization",
    "organization",
    "organization_id",
    "project_id",
    "provider",
    "proxies",
    "proxy",
    "request_timeout",
    "route",
    "timeout",
    "url",
    "use_litellm_proxy",
];

/// The same, by how they begin.
const ROUTING_PREFIXES: [&str; 6] = ["aws_", "azure_", "vertex_", "litellm_", "watsonx_", "x_api"];

/// Fields by which some servers are told what a model reads, beside the messages or in their place, less
/// the dashes: a template, passages, numbers of a vocabulary, what is cut away.
const UNREAD: [&str; 33] = [
    "addgenerationprompt",
    "addspecialtokens",
    "assistantprefix",
    "cachedcontent",
    "chattemplate",
    "context",
    "continuefinalmessage",
    "documents",
    "history",
    "imagedata",
    "input",
    "inputembeds",
    "inputids",
    "inputprefix",
    "inputsuffix",
    "instructions",
    "logitsprocessors",
    "mmprocessorkwargs",
    "plugins",
    "prefix",
    "prompt",
    "promptembeds",
    "prompttemplate",
    "prompttokenids",
    "raw",
    "responseprefix",
    "suffix",
    "system",
    "systemprompt",
    "template",
    "transforms",
    "truncateprompttokens",
    "vllmxargs",
];

/// Settings of a template: those that are no words pass, such as whether a model thinks first.
const TEMPLATE_SETTINGS: &str = "chattemplatekwargs";

/// Names within a message whose words nobody judged: what a model thought is not brought up again.
const UNREAD_IN_MESSAGES: [&str; 6] =
    ["reasoning", "reasoningcontent", "reasoningdetails", "thinking", "thinkingblocks", "prefix"];

/// Names within a message that are judged or that steer the reading of it.
const MESSAGE_NAMES: [&str; 10] = [
    "role",
    "content",
    "type",
    "text",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "function",
    "arguments",
];

/// Marks of Anthropic's interface in messages and tools that came by it.
const MARKS: [&str; 2] = ["cache_control", "is_error"];

/// Entries of `metadata` that are meant for us.
const METADATA_PREFIX: &str = "conclave_";

/// The two names for how much a model may write; models that reason take the first only.
const REPLY_LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Highest temperature the protocol knows.
const TEMPERATURE_MAX: f32 = 2.0;

/// A request in the provider's form; serialising it copies nothing but the bytes that are sent.
pub(crate) struct UpstreamBody<'a> {
    pub(crate) request: &'a ModelRequest,
    /// Replaces the name the client used.
    pub(crate) model: Option<&'a str>,
    /// Asks for events.
    pub(crate) stream: bool,
    /// Set where the client set none.
    pub(crate) temperature: Option<f32>,
    /// The model refuses `max_tokens`; the same number is sent as `max_completion_tokens`.
    pub(crate) is_reasoning: bool,
}

impl UpstreamBody<'_> {
    fn suggested_temperature(&self) -> Option<f32> {
        let client = self.request.body.get("temperature");
        let is_open = client.is_none_or(Value::is_null);
        self.temperature
            .filter(|value| is_open && value.is_finite())
            .map(|value| value.clamp(0.0, TEMPERATURE_MAX))
    }

    /// How much a model that reasons may write, under whichever name that was said.
    fn completion_limit(&self) -> Option<&Value> {
        let said = |name: &&str| self.request.body.get(*name).filter(|value| !value.is_null());
        REPLY_LIMITS.iter().find_map(said).filter(|_| self.is_reasoning)
    }

    /// Whether a field of the client's request is sent as it stands.
    fn passes(&self, field: &str, has_temperature: bool) -> bool {
        let is_replaced = (self.model.is_some() && is_same(field, "model"))
            || (has_temperature && is_same(field, "temperature"))
            || (self.is_reasoning && REPLY_LIMITS.contains(&field));
        !is_replaced
            && !is_withheld(field)
            && !is_one_of(field, &UNREAD)
            && !is_disguised(field, &["model", "metadata"])
    }
}

impl Serialize for UpstreamBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let temperature = self.suggested_temperature();
        let mut map = serializer.serialize_map(None)?;
        if let Some(model) = self.model {
            map.serialize_entry("model", model)?;
        }
        map.serialize_entry("messages", &Messages(self.request))?;
        if let Some(temperature) = temperature {
            map.serialize_entry("temperature", &temperature)?;
        }
        if let Some(limit) = self.completion_limit() {
            map.serialize_entry(REPLY_LIMITS[0], limit)?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
            map.serialize_entry("stream_options", &json!({"include_usage": true}))?;
        }
        for (field, value) in self.request.body.iter() {
            match value {
                Value::Object(entries) if field == "metadata" => {
                    serialize_metadata(&mut map, entries)?;
                }
                Value::Array(tools)
                    if field == "tools" && came_by_anthropic(&self.request.body) =>
                {
                    map.serialize_entry("tools", &Unmarked(tools))?;
                }
                _ if is_one_of(field, &[TEMPLATE_SETTINGS]) => {
                    serialize_settings(&mut map, value)?;
                }
                _ if self.passes(field, temperature.is_some()) => {
                    map.serialize_entry(field, value)?;
                }
                _ => {}
            }
        }
        map.end()
    }
}

/// What the client told us about the person is not the provider's business.
fn serialize_metadata<M: SerializeMap>(
    map: &mut M,
    entries: &Map<String, Value>,
) -> Result<(), M::Error> {
    let others: Vec<_> =
        entries.iter().filter(|(name, _)| !name.starts_with(METADATA_PREFIX)).collect();
    if others.is_empty() {
        return Ok(());
    }
    map.serialize_entry("metadata", &Entries(&others))
}

/// What sets a template without words, less what says where the conversation ends.
fn serialize_settings<M: SerializeMap>(map: &mut M, value: &Value) -> Result<(), M::Error> {
    let is_setting = |name: &str, value: &Value| {
        (value.is_boolean() || value.is_number()) && !is_one_of(name, &UNREAD)
    };
    let entries = value.as_object().into_iter().flatten();
    let settings: Vec<_> = entries.filter(|(name, value)| is_setting(name, value)).collect();
    if settings.is_empty() {
        return Ok(());
    }
    map.serialize_entry("chat_template_kwargs", &Entries(&settings))
}

/// Tools without marks that mean nothing to this provider.
struct Unmarked<'a>(&'a [Value]);

impl Serialize for Unmarked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_mark = |name: &str| MARKS.contains(&name);
        let tools = self.0.iter().filter_map(Value::as_object);
        let unmarked = |tool: &Map<String, Value>| {
            let fields = tool.iter().filter(|(name, _)| !is_mark(name));
            fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
        };
        serializer.collect_seq(tools.map(unmarked))
    }
}

struct Entries<'a>(&'a [(&'a String, &'a Value)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Equal but for case and the kind of dash.
fn is_same(field: &str, name: &str) -> bool {
    let plain = |byte: u8| match byte {
        b'-' => b'_',
        other => other.to_ascii_lowercase(),
    };
    field.len() == name.len() && field.bytes().map(plain).eq(name.bytes())
}

/// Equal to one of them but for case and dashes.
fn is_one_of(field: &str, names: &[&str]) -> bool {
    let plain = || {
        let bytes = field.bytes().filter(|byte| !matches!(byte, b'-' | b'_'));
        bytes.map(|byte| byte.to_ascii_lowercase())
    };
    names.iter().any(|name| plain().eq(name.bytes()))
}

/// A request for vectors: what the client sent, less what chooses a host or a key.
pub(crate) fn vector_request(
    request: &Map<String, Value>,
    model: Option<&str>,
) -> Map<String, Value> {
    let passes = |field: &str| !is_withheld(field) && !is_disguised(field, &["model", "input"]);
    let mut body: Map<_, _> = request
        .iter()
        .filter(|(field, _)| passes(field))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    if let Some(model) = model {
        body.insert("model".to_owned(), model.into());
    }
    body
}

fn is_withheld(field: &str) -> bool {
    let has_prefix =
        |prefix: &&str| field.get(..prefix.len()).is_some_and(|start| is_same(start, prefix));
    OWN.iter().chain(&ROUTING).any(|name| is_same(field, name))
        || ROUTING_PREFIXES.iter().any(has_prefix)
}

/// Whether some reader could take this name for one of `names` though it is not: readers that
/// ignore case also fold letters outside ASCII, such as the long s.
fn is_disguised(field: &str, names: &[&str]) -> bool {
    !field.is_ascii() || names.iter().any(|name| field != *name && field.eq_ignore_ascii_case(name))
}

/// The messages with what the system adds, after the tenant's own instructions.
struct Messages<'a>(&'a ModelRequest);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(Value::Array(messages)) = self.0.body.get("messages") else {
            return self.serialize_conversation(serializer);
        };
        let is_translated = came_by_anthropic(&self.0.body);
        let lead = messages.iter().take_while(|message| is_instruction(message));
        let (before, after) = messages.split_at(lead.count());
        let mut sequence = serializer.serialize_seq(Some(messages.len() + 1))?;
        for message in before {
            sequence.serialize_element(&Clean { value: message, is_translated })?;
        }
        if let Some(guidance) = &self.0.guidance {
            let role = before.first().map_or("system", instruction_role);
            sequence.serialize_element(&json!({"role": role, "content": guidance}))?;
        }
        for message in after {
            sequence.serialize_element(&Clean { value: message, is_translated })?;
        }
        sequence.end()
    }
}

impl Messages<'_> {
    /// For requests that came in another form and carry no messages of their own.
    fn serialize_conversation<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let conversation = &self.0.conversation;
        let lead = conversation.iter().take_while(|message| message.role.is_tenant()).count();
        let mut messages: Vec<(&str, String)> = conversation
            .iter()
            .map(|message| (message.role.as_str(), message.content.as_text().into_owned()))
            .collect();
        if let Some(guidance) = &self.0.guidance {
            messages.insert(lead, (Role::System.as_str(), guidance.clone()));
        }
        serializer.collect_seq(
            messages.iter().map(|(role, content)| json!({"role": role, "content": content})),
        )
    }
}

/// Whether a request came by Anthropic's interface and was put into this one.
fn came_by_anthropic(body: &Map<String, Value>) -> bool {
    body.get("conclave").is_some_and(|own| own.get("anthropic").is_some())
}

fn is_instruction(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

/// Some providers refuse both kinds of instruction in one request.
fn instruction_role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or("system")
}

/// A message without disguised names.
struct Clean<'a> {
    value: &'a Value,
    /// The request came by Anthropic's interface: marks of its own mean nothing elsewhere.
    is_translated: bool,
}

impl<'a> Clean<'a> {
    const fn within(&self, value: &'a Value) -> Self {
        Self { value, is_translated: self.is_translated }
    }
}

impl Serialize for Clean<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Array(items) => {
                serializer.collect_seq(items.iter().map(|item| self.within(item)))
            }
            Value::Object(entries) => serializer.collect_map(
                entries
                    .iter()
                    .filter(|(name, _)| !is_disguised(name, &MESSAGE_NAMES))
                    .filter(|(name, _)| !is_one_of(name, &UNREAD_IN_MESSAGES))
                    .filter(|(name, _)| !self.is_translated || !MARKS.contains(&name.as_str()))
                    .map(|(name, value)| (name, self.within(value))),
            ),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
