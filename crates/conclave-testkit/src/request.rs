//! What the mock keeps of each request.

use serde_json::Value;

/// One request as the mock saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenRequest {
    /// The path asked for.
    pub path: String,
    /// What stands after `?` in it; empty where nothing does.
    pub query: String,
    /// Every header, names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body; null where it was no JSON.
    pub body: Value,
}

impl SeenRequest {
    /// The first header of this name, which is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key == name)?;
        Some(value)
    }
}

/// The text of the last user message in a chat request; empty where there is none.
#[must_use]
pub fn last_user_message(body: &Value) -> &str {
    body["messages"]
        .as_array()
        .and_then(|messages| messages.iter().rfind(|message| message["role"] == "user"))
        .map(|message| &message["content"])
        .and_then(|content| content.as_str().or_else(|| content[0]["text"].as_str()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_user_message_is_found_in_both_forms() {
        let plain = json!({"messages": [
            {"role": "user", "content": "one"},
            {"role": "user", "content": "two"},
            {"role": "assistant", "content": "three"},
        ]});
        assert_eq!(last_user_message(&plain), "two");
        let parts = json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "part"}]},
        ]});
        assert_eq!(last_user_message(&parts), "part");
        assert_eq!(last_user_message(&json!({"messages": 7})), "");
    }
}
