//! One turn of a conversation: what a client sent, parsed and permitted, and its texts as guards see
//! them.

use super::MatterContent;
use super::history::{HistoryOrigin, HistoryText};
use crate::conclude::Choice;
use crate::shares::Sharer;
use conclave_core::{
    Content as Said, KeyId, Message, Part, Phase, Role, SessionId, TenantId, TurnContext, UserId,
};
use conclave_money::RequestSize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One request: who asks, what was said so far, and in which circumstances.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Whose application.
    pub tenant: TenantId,
    /// With which key.
    pub key: Option<KeyId>,
    /// Which person; anonymous when absent.
    pub user: Option<UserId>,
    /// Which conversation.
    pub session: SessionId,
    /// The model asked for.
    pub model: String,
    /// How many replies are wanted.
    pub choices: u8,
    /// The conversation as it is judged.
    pub conversation: Arc<[Message]>,
    /// The client's request in OpenAI chat form, for the provider.
    pub body: Arc<Map<String, Value>>,
    /// The circumstances.
    pub context: TurnContext,
    /// What the interface wants back later; sealed beside the decision, and forgotten with it.
    pub kept: Option<Arc<Value>>,
}

impl Turn {
    /// The same with no more of what was said last than its beginning and its end, each so many bytes at most.
    pub(crate) fn in_short(mut self, each: usize) -> Self {
        let said = self.conversation.iter().rev().find(|one| one.role == Role::User);
        let text = said.map(|one| one.content.as_text().into_owned()).unwrap_or_default();
        let (start, end) = (text.floor_char_boundary(each), text.len().saturating_sub(each));
        let end = text.ceil_char_boundary(end).max(start);
        let heard = [&text[..start], &text[end..]].join("\n");
        self.conversation = [Message::text(Role::User, heard.as_str())].into();
        let told = json!([{"role": "user", "content": heard}]);
        self.body = Arc::new(Map::from_iter([("messages".to_owned(), told)]));
        self.kept = None;
        self
    }

    /// With whom it shares the processor.
    pub(crate) fn sharer(&self) -> Sharer {
        Sharer { tenant: self.tenant.clone(), key: self.key.clone() }
    }

    /// The same conversation is sensed and answered the same way.
    pub(crate) fn seed(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(self.session.as_str());
        hash.update(self.conversation.len().to_be_bytes());
        let digest = hash.finalize();
        digest.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }
}

/// What is done with a turn; decides how much it can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnWork {
    /// Replies are written, each in at most so many attempts.
    Write { attempts_max: u8 },
    /// Texts become vectors.
    Embed,
    /// A reply of so many bytes that was made elsewhere is judged.
    Judge { reply_bytes: usize },
    /// It is read, and that is all.
    Read,
}

/// A turn and the replies to it, as guards see them.
pub(crate) struct TurnContent {
    pub turn: Turn,
    pub work: TurnWork,
    /// What the panel has passed or we say ourselves.
    pub choices: Vec<Choice>,
}

impl TurnContent {
    pub(crate) const fn new(turn: Turn, work: TurnWork) -> Self {
        Self { turn, work, choices: Vec::new() }
    }

    /// How large one call for it is.
    pub(crate) fn size_of_call(&self, output_tokens_max: Option<u64>) -> RequestSize {
        RequestSize::of_request(&self.turn.body, output_tokens_max)
    }

    /// Every text of [`MatterContent::texts`] that belongs to the history; `None` for what is asked now and for what
    /// is the tenant's.
    pub(crate) fn history(&self) -> Vec<Option<HistoryText>> {
        let conversation = &self.turn.conversation;
        let last_asked = conversation.iter().rposition(|one| one.role == Role::User);
        let last_answer = conversation.iter().rposition(|one| one.role == Role::Assistant);
        let mut asked = String::new();
        let mut all = Vec::new();
        for (at, message) in conversation.iter().enumerate() {
            let is_now = Some(at) == last_asked || Some(at) > last_answer;
            let origin = match message.role {
                Role::User if is_now => None,
                Role::User => Some(HistoryOrigin::Person),
                Role::Assistant => Some(HistoryOrigin::Assistant),
                Role::Tool => Some(HistoryOrigin::Tool),
                Role::System | Role::Developer => None,
            };
            if message.role == Role::User {
                asked = message.content.as_text().into_owned();
            }
            let asked = if message.role == Role::Assistant { asked.as_str() } else { "" };
            all.extend(spoken_parts(message).into_iter().map(|part| {
                // A file gives no orders, whenever it was brought.
                let origin = if part.is_document { Some(HistoryOrigin::Document) } else { origin };
                let (text, asked) = (part.text.to_owned(), asked.to_owned());
                Some(HistoryText { origin: origin?, text, asked })
            }));
        }
        all.extend(self.unspoken().into_iter().map(|text| {
            let (text, asked) = (text.to_owned(), String::new());
            Some(HistoryText { origin: HistoryOrigin::Aside, text, asked })
        }));
        all
    }

    /// Texts of the request that the conversation does not show: names, calls of tools, what tools are said to do.
    fn unspoken(&self) -> Vec<&str> {
        let mut all = Vec::new();
        if let Some(messages) = self.turn.body.get("messages") {
            each_string(messages, &mut |text| all.push(text));
        }
        for tools in TOOLS.into_iter().filter_map(|member| self.turn.body.get(member)) {
            each_description(tools, &mut |text| all.push(text));
        }
        let spoken: Vec<&str> = self.turn.conversation.iter().flat_map(parts).collect();
        all.retain(|text| !spoken.contains(text));
        all
    }
}

impl MatterContent for TurnContent {
    fn texts(&self, phase: Phase) -> Vec<Cow<'_, str>> {
        match phase {
            Phase::Before => {
                let spoken = self.turn.conversation.iter().flat_map(parts);
                spoken.chain(self.unspoken()).map(Cow::Borrowed).collect()
            }
            Phase::After => {
                let passed = self.choices.iter().filter(|choice| choice.outcome.is_verified());
                let words = passed.flat_map(|choice| {
                    let calls = choice.delivered.tool_calls.iter().map(|call| &call.arguments);
                    std::iter::once(&choice.delivered.text).chain(calls)
                });
                words.map(|text| Cow::Borrowed(text.as_str())).collect()
            }
        }
    }

    fn speakers(&self, phase: Phase) -> HashSet<Cow<'_, str>> {
        let messages = self.turn.body.get("messages").filter(|_| phase == Phase::Before);
        let messages = messages.and_then(Value::as_array).into_iter().flatten();
        // The name in a message of a tool is the tool's.
        let people =
            messages.filter(|one| matches!(one["role"].as_str(), Some("user" | "assistant")));
        people.filter_map(|one| one["name"].as_str()).map(Cow::Borrowed).collect()
    }

    fn has_unjudged(&self) -> bool {
        let is_unjudged = |part: &Part| matches!(part, Part::Unjudged { .. });
        self.turn.conversation.iter().any(|message| match &message.content {
            Said::Text(_) => false,
            Said::Parts(parts) => parts.iter().any(is_unjudged),
        })
    }

    fn replace(&mut self, phase: Phase, texts: Vec<Option<String>>) {
        if phase == Phase::After {
            let passed = self.choices.iter_mut().filter(|choice| choice.outcome.is_verified());
            let words = passed.flat_map(|choice| {
                let calls = choice.delivered.tool_calls.iter_mut().map(|call| &mut call.arguments);
                std::iter::once(&mut choice.delivered.text).chain(calls)
            });
            for (place, text) in words.zip(texts) {
                if let Some(text) = text {
                    *place = text;
                }
            }
            return;
        }
        let before: Vec<String> = self.texts(phase).into_iter().map(Cow::into_owned).collect();
        let pairs = before.into_iter().zip(texts);
        let others: HashMap<String, String> =
            pairs.filter_map(|(old, new)| Some((old, new?))).collect();
        if others.is_empty() {
            return;
        }
        let conversation = self.turn.conversation.iter().map(|one| replaced(one, &others));
        self.turn.conversation = conversation.collect();
        // The provider is sent the body, so that nothing may be left in it that was replaced above.
        let body = Arc::make_mut(&mut self.turn.body);
        if let Some(messages) = body.get_mut("messages") {
            change_strings(messages, &others);
        }
        for member in TOOLS {
            if let Some(tools) = body.get_mut(member) {
                change_descriptions(tools, &others);
            }
        }
    }

    fn size(&self, output_tokens_max: Option<u64>) -> RequestSize {
        let request = RequestSize::of_request(&self.turn.body, output_tokens_max);
        match self.work {
            TurnWork::Write { attempts_max } => {
                let candidates =
                    u64::from(self.turn.choices.max(1)) * u64::from(attempts_max.max(1));
                // A panel may run twice on each.
                RequestSize { calls: candidates, panels: candidates.saturating_mul(2), ..request }
            }
            TurnWork::Embed => RequestSize { calls: 1, panels: 0, ..request },
            TurnWork::Judge { reply_bytes } => RequestSize {
                prompt_tokens: bytes(said_bytes(&self.turn.conversation)),
                output_tokens: bytes(reply_bytes),
                calls: 0,
                panels: 2,
            },
            TurnWork::Read => RequestSize { calls: 0, panels: 0, ..request },
        }
    }

    fn limit_output(&mut self, tokens: u64) {
        let stated = conclave_money::stated_output_tokens(&self.turn.body);
        if stated.is_none_or(|stated| stated > tokens) {
            let body = Arc::make_mut(&mut self.turn.body);
            // A length that is no whole number was not counted, so that it must not reach the model.
            body.shift_remove("max_completion_tokens");
            body.insert("max_tokens".to_owned(), tokens.into());
        }
    }
}

fn bytes(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// How many bytes of text a conversation has.
pub(crate) fn said_bytes(conversation: &[Message]) -> usize {
    conversation.iter().map(|message| message.content.as_text().len()).sum()
}

/// A text of a message, and whether it is that of a file.
struct SpokenPart<'a> {
    text: &'a str,
    is_document: bool,
}

fn parts(message: &Message) -> Vec<&str> {
    spoken_parts(message).into_iter().map(|part| part.text).collect()
}

fn spoken_parts(message: &Message) -> Vec<SpokenPart<'_>> {
    let all = match &message.content {
        Said::Text(text) => vec![SpokenPart { text, is_document: false }],
        Said::Parts(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(SpokenPart { text, is_document: false }),
                Part::Document { text } => Some(SpokenPart { text, is_document: true }),
                Part::Unjudged { .. } => None,
            })
            .collect(),
    };
    all.into_iter().filter(|part| !part.text.is_empty()).collect()
}

fn replaced(message: &Message, others: &HashMap<String, String>) -> Message {
    let other = |text: &String| others.get(text).unwrap_or(text).clone();
    let content = match &message.content {
        Said::Text(text) => Said::Text(other(text)),
        Said::Parts(parts) => Said::Parts(
            parts
                .iter()
                .map(|part| match part {
                    Part::Text { text } => Part::Text { text: other(text) },
                    Part::Document { text } => Part::Document { text: other(text) },
                    unjudged => unjudged.clone(),
                })
                .collect(),
        ),
    };
    Message { role: message.role, content }
}

/// Members that say what kind of thing stands there; no words of anybody.
const MARKS: [&str; 5] = ["role", "type", "id", "tool_call_id", "url"];

/// Every string of a request's messages that may hold words. How deep JSON goes was bounded when it was
/// parsed.
fn each_string<'a>(value: &'a Value, see: &mut impl FnMut(&'a str)) {
    match value {
        Value::String(text) if !text.is_empty() => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_string(item, see)),
        Value::Object(members) => {
            let spoken = members.iter().filter(|(name, _)| !MARKS.contains(&name.as_str()));
            spoken.for_each(|(_, member)| each_string(member, see));
        }
        _ => {}
    }
}

fn change_strings(value: &mut Value, others: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(other) = others.get(text) {
                other.clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| change_strings(item, others)),
        Value::Object(members) => {
            let spoken = members.iter_mut().filter(|(name, _)| !MARKS.contains(&name.as_str()));
            spoken.for_each(|(_, member)| change_strings(member, others));
        }
        _ => {}
    }
}

/// Every description in the definitions of tools and replies, and what else is prose there. Names in them are the
/// tenant's, and the shape of arguments is no prose.
fn each_description<'a>(value: &'a Value, see: &mut impl FnMut(&'a str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_description(item, see)),
        Value::Object(members) => members.iter().for_each(|(name, member)| match member {
            Value::String(text) if name == DESCRIPTION && !text.is_empty() => see(text),
            other => each_description(other, see),
        }),
        Value::String(text) if is_prose(text) => see(text),
        _ => {}
    }
}

fn change_descriptions(value: &mut Value, others: &HashMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| change_descriptions(item, others)),
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
            Value::String(text) if name == DESCRIPTION => {
                if let Some(other) = others.get(text) {
                    other.clone_into(text);
                }
            }
            other => change_descriptions(other, others),
        }),
        Value::String(text) if is_prose(text) => {
            if let Some(other) = others.get(text) {
                other.clone_into(text);
            }
        }
        _ => {}
    }
}

const DESCRIPTION: &str = "description";

/// Where a request defines tools, today and as it was done before, and where the shape of a reply, also in the words
/// of another interface.
const TOOLS: [&str; 4] = ["tools", "functions", "response_format", "conclave"];
/// A string of so many words, or so many letters that are written without blanks, is prose wherever it stands: a
/// choice, an example, a title.
const PROSE_WORDS_MIN: usize = 5;
const PROSE_UNSPACED_MIN: usize = 12;

fn is_prose(text: &str) -> bool {
    let unspaced = |one: &char| !one.is_ascii() && one.is_alphabetic();
    text.split_whitespace().take(PROSE_WORDS_MIN).count() == PROSE_WORDS_MIN
        || text.chars().filter(unspaced).take(PROSE_UNSPACED_MIN).count() == PROSE_UNSPACED_MIN
}

/// What tools and files brought last: everything since the person spoke, and the whole of the last block,
/// because several may have been asked at once. What was brought before was read in its own turn.
pub(crate) fn brought(conversation: &[Message]) -> Vec<String> {
    let is_tool = |message: &Message| message.role == Role::Tool;
    let Some(last) = conversation.iter().rposition(is_tool) else { return Vec::new() };
    let block = conversation[..last].iter().rposition(|one| !is_tool(one)).map_or(0, |at| at + 1);
    let spoke = conversation.iter().rposition(|message| message.role == Role::User);
    let start = spoke.map_or(block, |at| block.min(at + 1));
    let all = conversation[start..=last].iter().filter(|message| is_tool(message));
    let mut texts: Vec<_> = all.map(|one| one.content.as_text().into_owned()).collect();
    texts.split_off(texts.len().saturating_sub(BROUGHT_MAX))
}

/// How many of them are read.
const BROUGHT_MAX: usize = 64;

/// How much of what was said before a reply is looked at with it, in bytes from the end.
const SAID_BYTES_MAX: usize = 6000;

/// What the person and the model said so far: the light in which a reply is read.
pub(crate) fn said_before(conversation: &[Message]) -> String {
    let spoken =
        conversation.iter().filter(|turn| matches!(turn.role, Role::User | Role::Assistant));
    let texts: Vec<_> = spoken.map(|turn| turn.content.as_text()).collect();
    let mut said = texts.join("\n");
    let start = said.ceil_char_boundary(said.len().saturating_sub(SAID_BYTES_MAX));
    said.split_off(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(messages: &Value) -> TurnContent {
        let spoken = messages.as_array().unwrap().iter().filter_map(|one| {
            let role = Role::parse(one["role"].as_str()?)?;
            Some(Message::text(role, one["content"].as_str()?))
        });
        let turn = Turn {
            tenant: TenantId::new("t").unwrap(),
            key: None,
            user: None,
            session: SessionId::new("s").unwrap(),
            model: "m".into(),
            choices: 1,
            conversation: spoken.collect(),
            body: Arc::new(json!({"messages": messages}).as_object().unwrap().clone()),
            context: TurnContext::default(),
            kept: None,
        };
        TurnContent::new(turn, TurnWork::Read)
    }

    #[test]
    fn what_is_replaced_is_replaced_in_what_is_judged_and_in_what_is_sent() {
        let mut content = content(&json!([
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "I am jane@example.com", "name": "jane"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "mail", "arguments": "{\"to\":\"jane@example.com\"}"}}
            ]},
        ]));
        let before: Vec<_> = content.texts(Phase::Before).iter().map(ToString::to_string).collect();
        assert!(before.contains(&"jane".to_owned()) && before.len() == 5, "{before:?}");
        let other = |text: &String| text.contains("jane").then(|| text.replace("jane", "[X]"));
        let others = before.iter().map(other).collect();
        content.replace(Phase::Before, others);
        assert!(!json!(*content.turn.body).to_string().contains("jane"));
        assert_eq!(content.turn.conversation[1].content.as_text(), "I am [X]@example.com");
    }
}
