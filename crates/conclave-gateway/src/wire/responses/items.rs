//! What a stored response answered, put back from chat form into the items of its interface.

use crate::wire::ReplyHead;
use serde_json::{Value, json};

/// The items of messages in chat form, oldest first; their ids are made of the response's.
pub(crate) fn input_items(head: &ReplyHead, messages: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = messages.iter().flat_map(items_of).collect();
    for (at, item) in items.iter_mut().enumerate() {
        let prefix = match item["type"].as_str() {
            Some("function_call") => "fc_in_",
            Some("function_call_output") => "fco_in_",
            _ => "msg_in_",
        };
        item["id"] = json!(format!("{}_{at}", head.visible_id(prefix)));
        item["status"] = json!("completed");
    }
    items
}

fn items_of(message: &Value) -> Vec<Value> {
    let role = message["role"].as_str().unwrap_or("user");
    if role == "tool" {
        return vec![json!({
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": message["content"],
        })];
    }
    let is_own = role == "assistant";
    let content = match &message["content"] {
        Value::String(text) if text.is_empty() && is_own => Vec::new(),
        Value::String(text) => vec![text_part(text, is_own)],
        Value::Array(parts) => parts.iter().map(|part| item_part(part, is_own)).collect(),
        _ => Vec::new(),
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls = calls.map(|call| {
        json!({
            "type": "function_call",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        })
    });
    let said =
        (!content.is_empty()).then(|| json!({"type": "message", "role": role, "content": content}));
    said.into_iter().chain(calls).collect()
}

fn text_part(text: &str, is_own: bool) -> Value {
    if is_own {
        return json!({"type": "output_text", "text": text, "annotations": []});
    }
    json!({"type": "input_text", "text": text})
}

fn item_part(part: &Value, is_own: bool) -> Value {
    match part["type"].as_str() {
        Some("image_url") => {
            let image = &part["image_url"];
            let detail = image.get("detail").cloned().unwrap_or_else(|| json!("auto"));
            json!({"type": "input_image", "image_url": image["url"], "detail": detail})
        }
        Some("file") => {
            let mut file = part["file"].clone();
            if let Some(fields) = file.as_object_mut() {
                fields.insert("type".into(), json!("input_file"));
            }
            file
        }
        _ => text_part(part["text"].as_str().unwrap_or_default(), is_own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::AuditId;

    #[test]
    fn messages_become_the_items_they_were() {
        let head = ReplyHead { id: AuditId(uuid::Uuid::nil()), created_s: 7, model: "m".into() };
        let messages = json!([
            {"role": "user", "content": "Where?"},
            {"role": "user", "content": [{"type": "text", "text": "Here."},
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
                {"type": "file", "file": {"file_id": "f1"}}]},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
            {"role": "assistant", "content": "A cat."},
        ]);
        let items = input_items(&head, messages.as_array().unwrap());
        let kinds: Vec<_> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
        let expected = ["message", "message", "function_call", "function_call_output", "message"];
        assert_eq!(kinds, expected);
        assert_eq!(items[0]["content"], json!([{"type": "input_text", "text": "Where?"}]));
        assert_eq!(items[1]["content"][1]["image_url"], "https://a.example/b.png");
        assert_eq!(items[1]["content"][2], json!({"file_id": "f1", "type": "input_file"}));
        assert_eq!((&items[2]["call_id"], &items[2]["name"]), (&json!("c1"), &json!("look")));
        assert_eq!((&items[3]["call_id"], &items[3]["output"]), (&json!("c1"), &json!("a cat")));
        assert_eq!(items[4]["content"][0]["type"], "output_text");
        let ids: std::collections::BTreeSet<_> =
            items.iter().map(|item| item["id"].to_string()).collect();
        assert_eq!(ids.len(), items.len(), "each has an id of its own");
    }
}
