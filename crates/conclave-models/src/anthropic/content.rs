//! The parts of a message, from OpenAI's form into Anthropic's blocks.

use crate::fault::Fault;
use serde_json::{Value, json};

/// Blocks of a message's content: text, images and documents.
pub(super) fn blocks(content: Option<&Value>) -> Result<Vec<Value>, Fault> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text_block(text).into_iter().collect()),
        Some(Value::Array(parts)) => {
            let blocks = parts.iter().map(|part| Ok(block(part)?.map(|block| marked(block, part))));
            let blocks: Result<Vec<_>, Fault> = blocks.collect();
            Ok(blocks?.into_iter().flatten().collect())
        }
        Some(_) => Err(unreadable()),
    }
}

/// All text of blocks.
pub(super) fn joined_text(blocks: &[Value]) -> String {
    let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Whether a block ends what the provider may keep to read it once.
pub(super) fn is_marked(block: &Value) -> bool {
    block.get("cache_control").is_some_and(Value::is_object)
}

/// The same block, with the mark of what it was made of.
pub(super) fn marked(mut block: Value, from: &Value) -> Value {
    if is_marked(from) {
        block["cache_control"] = from["cache_control"].clone();
    }
    block
}

/// Anthropic refuses empty text, which says nothing anyway.
pub(super) fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn block(part: &Value) -> Result<Option<Value>, Fault> {
    let field = |path: &str| part.pointer(path).and_then(Value::as_str).ok_or_else(unreadable);
    match part["type"].as_str() {
        Some("text") => Ok(text_block(field("/text")?)),
        Some("refusal") => Ok(text_block(field("/refusal")?)),
        Some("image_url") => {
            let url = part["image_url"].as_str().map_or_else(|| field("/image_url/url"), Ok)?;
            Ok(Some(json!({"type": "image", "source": source(url)?})))
        }
        Some("file") => {
            let data = field("/file/file_data")?;
            Ok(Some(json!({"type": "document", "source": source(data)?})))
        }
        _ => Err(Fault::refused("this provider reads text, images and documents only", false)
            .conclusive()),
    }
}

/// A `data:` URL holds the bytes; any other is fetched by the provider.
fn source(url: &str) -> Result<Value, Fault> {
    let Some(data) = url.strip_prefix("data:") else {
        return Ok(json!({"type": "url", "url": url}));
    };
    let (kind, bytes) = data.split_once(',').ok_or_else(unreadable)?;
    let media_type = kind.strip_suffix(";base64").ok_or_else(unreadable)?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    Ok(json!({"type": "base64", "media_type": media_type, "data": bytes}))
}

pub(super) fn unreadable() -> Fault {
    Fault::refused("the request has a message this provider cannot be sent", false).conclusive()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_content_is_translated() {
        for (content, expected) in [
            (json!("hello"), json!([{"type": "text", "text": "hello"}])),
            (json!(" "), json!([])),
            (json!(null), json!([])),
            (json!([{"type": "text", "text": "a"}]), json!([{"type": "text", "text": "a"}])),
            (
                json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]),
                json!([{"type": "image", "source":
                    {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]),
            ),
            (
                json!([{"type": "image_url", "image_url": "https://example.com/a.png"}]),
                json!([{"type": "image", "source":
                    {"type": "url", "url": "https://example.com/a.png"}}]),
            ),
            (
                json!([{"type": "file",
                    "file": {"file_data": "data:application/pdf;base64,AAAA"}}]),
                json!([{"type": "document", "source":
                    {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}]),
            ),
        ] {
            assert_eq!(json!(blocks(Some(&content)).unwrap()), expected, "{content}");
        }
    }

    #[test]
    fn what_cannot_be_translated_is_refused() {
        for content in [
            json!(7),
            json!([{"type": "input_audio", "input_audio": {}}]),
            json!([{"type": "text"}]),
            json!([{"type": "image_url", "image_url": {"url": "data:image/png"}}]),
            json!([{"type": "image_url"}]),
            json!(["text"]),
        ] {
            assert!(blocks(Some(&content)).unwrap_err().is_conclusive, "{content}");
        }
    }
}
