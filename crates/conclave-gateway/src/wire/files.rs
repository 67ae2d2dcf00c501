//! Files and images of a request in chat form: what is text in them is opened so that it is judged, and what they
//! point at may be nothing inside.
//!
//! **Invariant:** a file whose bytes are text reaches a model as the text that was judged, in no other form.

use crate::error::ApiError;
use crate::state::LinkCheck;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};

/// Kinds of bytes that are text, beside `text/...`.
const TEXT_KINDS: [&str; 9] = [
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-ndjson",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/x-sh",
];
/// How the names of files that are text end.
const TEXT_ENDINGS: [&str; 16] = [
    ".txt", ".md", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".html", ".htm", ".yaml", ".yml",
    ".toml", ".log", ".rst", ".ini", ".svg",
];
/// Where a part of a message may name what is to be fetched.
const LINKS: [&str; 5] = ["url", "image_url", "video_url", "file_url", "file_data"];
/// The longest name of a file that is told to a model.
const NAME_BYTES_MAX: usize = 200;
/// Base64 as clients write it, with or without its end.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What stands in a part that is an image or a file, if it is text; the error says what is wrong with it.
pub(crate) fn text_of_file(part: &Value) -> Result<Option<String>, &'static str> {
    let place = match part.get("type").and_then(Value::as_str) {
        Some("image_url") => &part["image_url"],
        Some("file") => &part["file"],
        _ => return Ok(None),
    };
    let field = |name: &str| place.get(name).and_then(Value::as_str);
    let name = field("filename").unwrap_or_default();
    let Some(said) = place.as_str().or_else(|| field("url")).or_else(|| field("file_data")) else {
        return Ok(None);
    };
    let bytes = match data_url(said) {
        Some(data) if data.is_text() => data.bytes()?,
        Some(_) => return Ok(None),
        None if place.is_object() && field("file_data") == Some(said) && is_named_text(name) => {
            decode_base64(said)?
        }
        None => return Ok(None),
    };
    let text = String::from_utf8(bytes).map_err(|_| "is a text file and must be UTF-8")?;
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    Ok(Some(if name.is_empty() { text } else { format!("{name}:\n\n{text}") }))
}

/// A text as a part that [`text_of_file`] opens again.
pub(crate) fn text_file(name: Option<&str>, text: &str) -> Value {
    let mut file = Map::new();
    if let Some(name) = name {
        file.insert("filename".into(), name.into());
    }
    let data = format!("data:text/plain;base64,{}", LENIENT.encode(text));
    file.insert("file_data".into(), data.into());
    json!({"type": "file", "file": file})
}

/// The parts of a `data:` URL.
struct DataUrl<'a> {
    kind: String,
    is_base64: bool,
    data: &'a str,
}

fn data_url(url: &str) -> Option<DataUrl<'_>> {
    let url = url.trim_start();
    let scheme = url.get(..5)?;
    let (head, data) =
        url.get(5..).filter(|_| scheme.eq_ignore_ascii_case("data:"))?.split_once(',')?;
    let mut fields = head.split(';').map(str::trim);
    let kind = fields.next().unwrap_or_default().to_ascii_lowercase();
    // Without a kind it is plain text.
    let kind = if kind.is_empty() { "text/plain".to_owned() } else { kind };
    let is_base64 = fields.any(|field| field.eq_ignore_ascii_case("base64"));
    Some(DataUrl { kind, is_base64, data })
}

impl DataUrl<'_> {
    fn is_text(&self) -> bool {
        self.kind.starts_with("text/")
            || TEXT_KINDS.contains(&self.kind.as_str())
            || self.kind.ends_with("+json")
            || self.kind.ends_with("+xml")
    }

    fn bytes(&self) -> Result<Vec<u8>, &'static str> {
        let bytes = percent_decoded(self.data);
        if !self.is_base64 {
            return Ok(bytes);
        }
        decode_base64(std::str::from_utf8(&bytes).map_err(|_| NO_BASE64)?)
    }
}

const NO_BASE64: &str = "is no base64";

fn decode_base64(text: &str) -> Result<Vec<u8>, &'static str> {
    let plain: String = text.chars().filter(|one| !one.is_ascii_whitespace()).collect();
    LENIENT.decode(plain).map_err(|_| NO_BASE64)
}

/// What is no escape stands for itself, as browsers read it.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *byte == b'%');
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

fn is_named_text(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TEXT_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Holds every address that a provider would be asked to fetch from to `check`; the error names the part.
pub(crate) fn check_links(body: &Map<String, Value>, check: LinkCheck) -> Result<(), ApiError> {
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    for (at, message) in messages.enumerate() {
        let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
        for (place, part) in parts.enumerate() {
            if part.get("type").and_then(Value::as_str) == Some("text") {
                continue;
            }
            let mut wrong = None;
            each_link(part, &mut |link| wrong = wrong.take().or_else(|| (check.0)(link).err()));
            if let Some(wrong) = wrong {
                let message = format!(
                    "It points at what may not be fetched: {wrong}. Send the bytes as a `data:` \
                     URL, or have the operator set `policy.allow_private_urls`."
                );
                return Err(ApiError::invalid(format!("messages[{at}].content[{place}]"), message));
            }
        }
    }
    Ok(())
}

/// Every address in a part. How deep it goes was bounded when it was parsed.
fn each_link(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if is_link("", text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_link(item, see)),
        Value::Object(members) => members.iter().for_each(|(name, member)| match member {
            Value::String(text) if is_link(name, text) => see(text),
            other => each_link(other, see),
        }),
        _ => {}
    }
}

fn is_link(name: &str, text: &str) -> bool {
    let has_data = data_url(text).is_some() || text.trim_start().starts_with("data:");
    // Bytes without a kind in front stand where a file's do.
    let is_bytes = name == "file_data" && !text.contains("://");
    !has_data && !is_bytes && (LINKS.contains(&name) || text.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Envelope;

    fn file(data: &str) -> Value {
        json!({"type": "file", "file": {"file_data": data}})
    }

    #[test]
    fn what_is_text_is_opened_in_every_form() {
        for (part, expected) in [
            (file("data:text/plain;base64,SGVsbG8="), "Hello"),
            (file("DATA:Text/Markdown;charset=utf-8;base64,SGVsbG8"), "Hello"),
            (file("data:text/plain,Hello%2C%20you"), "Hello, you"),
            (file("data:,100%"), "100%"),
            (file("data:application/ld+json;base64,e30="), "{}"),
            (
                json!({"type": "image_url", "image_url": {"url": "data:text/html;base64,SGk="}}),
                "Hi",
            ),
            (json!({"type": "image_url", "image_url": "data:image/svg+xml,<svg/>"}), "<svg/>"),
            (
                json!({"type": "file", "file": {"filename": "a.TXT", "file_data": "SGk="}}),
                "a.TXT:\n\nHi",
            ),
            (text_file(None, "Gr\u{fc}\u{df}e"), "Gr\u{fc}\u{df}e"),
            (text_file(Some("notes"), "x"), "notes:\n\nx"),
        ] {
            assert_eq!(text_of_file(&part), Ok(Some(expected.to_owned())), "{part}");
        }
    }

    #[test]
    fn what_is_no_text_is_left_as_it_is() {
        for part in [
            file("data:application/pdf;base64,SGk="),
            file("data:image/png;base64,SGk="),
            file("SGk="),
            file("https://a.example/b.txt"),
            json!({"type": "file", "file": {"file_id": "f1"}}),
            json!({"type": "text", "text": "data:text/plain,x"}),
            json!({"type": "image_url"}),
        ] {
            assert_eq!(text_of_file(&part), Ok(None), "{part}");
        }
    }

    #[test]
    fn what_cannot_be_opened_is_an_error() {
        for part in [file("data:text/plain;base64,%%%"), file("data:text/plain;base64,//79")] {
            assert!(text_of_file(&part).is_err(), "{part}");
        }
    }

    #[test]
    fn every_address_in_a_part_is_looked_at() {
        let check =
            LinkCheck(|link| if link.contains("inside") { Err("inside".into()) } else { Ok(()) });
        let body = |part: Value| {
            let said = json!([{"role": "user", "content": [{"type": "text", "text": "x"}, part]}]);
            Map::from_iter([("messages".to_owned(), said)])
        };
        for part in [
            json!({"type": "image_url", "image_url": {"url": "http://inside/"}}),
            json!({"type": "image_url", "image_url": "//inside/"}),
            json!({"type": "video_url", "video_url": {"url": "inside"}}),
            json!({"type": "file", "file": {"file_data": "ftp://inside/"}}),
            json!({"type": "file", "file": {"anything": ["http://inside/"]}}),
        ] {
            let error = check_links(&body(part.clone()), check).unwrap_err();
            let error = error.body(Envelope::OpenAi);
            assert_eq!(error["error"]["param"], "messages[0].content[1]", "{part}");
        }
        for part in [
            json!({"type": "image_url", "image_url": {"url": "https://a.example/"}}),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,inside"}}),
            json!({"type": "file", "file": {"file_data": "inside", "filename": "inside"}}),
            json!({"type": "text", "text": "http://inside/"}),
        ] {
            assert!(check_links(&body(part.clone()), check).is_ok(), "{part}");
        }
    }
}
