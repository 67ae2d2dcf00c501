//! `POST /v1/completions`: OpenAI's older interface, one prompt and its continuation.

use crate::error::ApiError;
use crate::wire::chat::{read_choices, read_conversation, read_include_usage, usage_object};
use crate::wire::{
    Dialect, Inquiry, ReplyHead, data_event, finish_reason, flag_field, json_object, model_field,
    own_fields, take_metadata, unsent_text, user_field,
};
use bytes::Bytes;
use conclave_engine::Reply;
use serde_json::{Value, json};

/// What a chat model cannot do.
const UNKNOWN_TO_CHAT: [&str; 3] = ["suffix", "echo", "best_of"];

#[derive(Debug)]
pub(crate) struct CompletionRequest {
    pub inquiry: Inquiry,
    /// Whether a stream ends with what it cost.
    pub include_usage: bool,
}

/// Checks a request and puts it into chat form.
pub(crate) fn parse_completion(document: Value) -> Result<CompletionRequest, ApiError> {
    let mut body = json_object(document)?;
    let model = model_field(&body)?;
    let Some(Value::String(prompt)) = body.shift_remove("prompt") else {
        let wrong = "must be one string; send a request for each prompt";
        return Err(ApiError::invalid("prompt", wrong));
    };
    let is_set = |name: &&str| {
        body.get(*name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
    };
    if let Some(name) = UNKNOWN_TO_CHAT.into_iter().find(is_set) {
        return Err(ApiError::invalid(name, "is not offered here"));
    }
    UNKNOWN_TO_CHAT.iter().for_each(|name| drop(body.shift_remove(*name)));
    // Here it is how many there should be; in chat form it is whether there should be any. None are given
    // out either way: nobody judges the words a model did not choose.
    body.shift_remove("logprobs");
    let stream = flag_field(&body, "stream")?;
    let include_usage = read_include_usage(&body)?;
    let choices = read_choices(&body)?;
    let user = user_field(&body)?;
    let metadata = take_metadata(&mut body)?;
    body.insert("messages".into(), json!([{"role": "user", "content": prompt}]));
    let inquiry = Inquiry {
        model,
        conversation: read_conversation(&mut body)?,
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
pub(crate) struct CompletionDialect {
    omit_own_fields: bool,
    include_usage: bool,
    head: Option<ReplyHead>,
    sent: usize,
}

impl CompletionDialect {
    pub(crate) const fn new(omit_own_fields: bool, include_usage: bool) -> Self {
        Self { omit_own_fields, include_usage, head: None, sent: 0 }
    }

    fn completion_object(head: Option<&ReplyHead>, choices: &Value) -> Value {
        json!({
            "id": head.map(|head| head.visible_id("cmpl-")),
            "object": "text_completion",
            "created": head.map(|head| head.created_s),
            "model": head.map(|head| head.model.as_str()),
            "choices": choices,
        })
    }

    fn chunk(&self, index: usize, text: &str, finish: Option<&str>) -> Value {
        Self::completion_object(self.head.as_ref(), &json!([choice_object(index, text, finish)]))
    }
}

fn choice_object(index: usize, text: &str, finish: Option<&str>) -> Value {
    json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish})
}

impl Dialect for CompletionDialect {
    fn whole_reply(&self, reply: &Reply) -> Value {
        let choices = reply.decision.choices.iter().enumerate().map(|(index, one)| {
            choice_object(index, &one.delivered.text, Some(finish_reason(one)))
        });
        let mut body =
            Self::completion_object(Some(&ReplyHead::of_reply(reply)), &choices.collect());
        body["usage"] = usage_object(reply);
        if !self.omit_own_fields {
            body["conclave"] = own_fields(reply);
        }
        body
    }

    fn open_stream(&mut self, head: &ReplyHead) -> Vec<Bytes> {
        self.head = Some(head.clone());
        Vec::new()
    }

    fn stream_piece(&mut self, text: &str) -> Vec<Bytes> {
        self.sent += text.len();
        vec![data_event(&self.chunk(0, text, None))]
    }

    fn close_stream(&mut self, reply: &Reply) -> Vec<Bytes> {
        let choices = &reply.decision.choices;
        let mut frames = Vec::new();
        for (index, one) in choices.iter().enumerate() {
            let sent = if index == 0 { self.sent } else { 0 };
            let rest = unsent_text(&one.delivered.text, sent);
            let mut last = self.chunk(index, rest, Some(finish_reason(one)));
            if !self.omit_own_fields && index + 1 == choices.len() {
                last["conclave"] = own_fields(reply);
            }
            frames.push(data_event(&last));
        }
        if self.include_usage {
            let mut last = Self::completion_object(self.head.as_ref(), &json!([]));
            last["usage"] = usage_object(reply);
            frames.push(data_event(&last));
        }
        frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
        frames
    }

    fn break_stream(&mut self, error: &ApiError) -> Vec<Bytes> {
        vec![data_event(&error.body(self.envelope()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_else_in_chat_form_goes_no_further() {
        let request = parse_completion(json!({
            "model": "m", "prompt": "Once", "logprobs": 3, "echo": false, "stream": true,
            "stream_options": {"include_usage": true}, "max_tokens": 5,
        }))
        .unwrap();
        assert!(request.include_usage && request.inquiry.stream);
        let body = request.inquiry.body;
        assert!(!body.contains_key("logprobs") && !body.contains_key("echo"));
        assert_eq!(body["max_tokens"], 5);
        assert_eq!(body["messages"][0]["content"], "Once");
        assert!(
            parse_completion(json!({"model": "m", "prompt": "x", "stream_options": 1})).is_err()
        );
    }
}
