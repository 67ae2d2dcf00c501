//! `POST /v1/completions`: OpenAI's older interface, one prompt and its continuation.

use crate::admission::identity;
use crate::error::ApiError;
use crate::wire::chat::reply::usage;
use crate::wire::chat::request::{choices, conversation, include_usage};
use crate::wire::dialect::{Dialect, Head, data, finish, unsent};
use crate::wire::fields;
use crate::wire::inquiry::Inquiry;
use crate::wire::own_fields::own_fields;
use bytes::Bytes;
use conclave_engine::Reply;
use serde_json::{Value, json};

/// What a chat model cannot do.
const UNKNOWN_TO_CHAT: [&str; 3] = ["suffix", "echo", "best_of"];

/// A request, checked.
#[derive(Debug)]
pub(crate) struct CompletionRequest {
    pub inquiry: Inquiry,
    /// Whether a stream ends with what it cost.
    pub include_usage: bool,
}

/// Checks a request and puts it into chat form.
pub(crate) fn parse(document: Value) -> Result<CompletionRequest, ApiError> {
    let mut body = fields::object(document)?;
    let model = fields::model(&body)?;
    let Some(Value::String(prompt)) = body.remove("prompt") else {
        let wrong = "must be one string; send a request for each prompt";
        return Err(ApiError::invalid("prompt", wrong));
    };
    let is_set = |name: &&str| {
        body.get(*name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
    };
    if let Some(name) = UNKNOWN_TO_CHAT.into_iter().find(is_set) {
        return Err(ApiError::invalid(name, "is not offered here"));
    }
    UNKNOWN_TO_CHAT.iter().for_each(|name| drop(body.remove(*name)));
    // Here it is how many there should be; in chat form it is whether there should be any. None are given
    // out either way: nobody judges the words a model did not choose.
    body.remove("logprobs");
    let stream = fields::flag(&body, "stream")?;
    let include_usage = include_usage(&body)?;
    let choices = choices(&body)?;
    let user = identity::user(&body)?;
    let metadata = fields::take_metadata(&mut body)?;
    body.insert("messages".into(), json!([{"role": "user", "content": prompt}]));
    let inquiry = Inquiry {
        model,
        conversation: conversation(body.get("messages"))?,
        stream,
        choices,
        metadata,
        user,
        body,
        ..Inquiry::default()
    };
    Ok(CompletionRequest { inquiry, include_usage })
}

/// OpenAI's older completion interface.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    omit_own_fields: bool,
    include_usage: bool,
    head: Option<Head>,
    sent: usize,
}

impl Completion {
    pub(crate) const fn new(omit_own_fields: bool, include_usage: bool) -> Self {
        Self { omit_own_fields, include_usage, head: None, sent: 0 }
    }

    fn object(head: Option<&Head>, choices: &Value) -> Value {
        json!({
            "id": head.map(|head| head.visible_id("cmpl-")),
            "object": "text_completion",
            "created": head.map(|head| head.created_s),
            "model": head.map(|head| head.model.as_str()),
            "choices": choices,
        })
    }

    fn chunk(&self, index: usize, text: &str, finish: Option<&str>) -> Value {
        Self::object(self.head.as_ref(), &json!([choice(index, text, finish)]))
    }
}

fn choice(index: usize, text: &str, finish: Option<&str>) -> Value {
    json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish})
}

impl Dialect for Completion {
    fn whole(&self, reply: &Reply) -> Value {
        let choices = reply
            .decision
            .choices
            .iter()
            .enumerate()
            .map(|(index, one)| choice(index, &one.delivered.text, Some(finish(one))));
        let mut body = Self::object(Some(&Head::of(reply)), &choices.collect());
        body["usage"] = usage(reply);
        if !self.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn opening(&mut self, head: &Head) -> Vec<Bytes> {
        self.head = Some(head.clone());
        Vec::new()
    }

    fn piece(&mut self, text: &str) -> Vec<Bytes> {
        self.sent += text.len();
        vec![data(&self.chunk(0, text, None))]
    }

    fn closing(&mut self, reply: &Reply) -> Vec<Bytes> {
        let choices = &reply.decision.choices;
        let mut frames = Vec::new();
        for (index, one) in choices.iter().enumerate() {
            let sent = if index == 0 { self.sent } else { 0 };
            let rest = unsent(&one.delivered.text, sent);
            let mut last = self.chunk(index, rest, Some(finish(one)));
            if !self.omit_own_fields && index + 1 == choices.len() {
                last["conclave"] = own_fields(reply);
            }
            frames.push(data(&last));
        }
        if self.include_usage {
            let mut last = Self::object(self.head.as_ref(), &json!([]));
            last["usage"] = usage(reply);
            frames.push(data(&last));
        }
        frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
        frames
    }

    fn broken(&mut self, error: &ApiError) -> Vec<Bytes> {
        vec![data(&error.body(self.envelope()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_else_in_chat_form_goes_no_further() {
        let request = parse(json!({
            "model": "m", "prompt": "Once", "logprobs": 3, "echo": false, "stream": true,
            "stream_options": {"include_usage": true}, "max_tokens": 5,
        }))
        .unwrap();
        assert!(request.include_usage && request.inquiry.stream);
        let body = request.inquiry.body;
        assert!(!body.contains_key("logprobs") && !body.contains_key("echo"));
        assert_eq!(body["max_tokens"], 5);
        assert_eq!(body["messages"][0]["content"], "Once");
        assert!(parse(json!({"model": "m", "prompt": "x", "stream_options": 1})).is_err());
    }
}
