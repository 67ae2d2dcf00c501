//! The text of a message as providers write it: a string, null, or a list of parts.
//!
//! **Invariant:** only parts that are text are kept; reasoning, images and whatever else a list may
//! hold are dropped, because nobody judges them.

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use std::fmt;

/// Text, or none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Option<String>);

#[derive(serde::Deserialize)]
struct Part {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl Part {
    fn into_text(self) -> Option<String> {
        match self.kind.as_deref() {
            None | Some("text" | "output_text") => self.text,
            Some("refusal") => self.refusal,
            Some(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, null or a list of parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(Some(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Text, E> {
        Ok(Text(Some(text)))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut joined: Option<String> = None;
        while let Some(part) = parts.next_element::<Part>()? {
            if let Some(text) = part.into_text() {
                joined.get_or_insert_default().push_str(&text);
            }
        }
        Ok(Text(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_nothing_else() {
        for (json, expected) in [
            ("\"hello\"", Some("hello")),
            (r#""with \"escape\"""#, Some("with \"escape\"")),
            ("\"\"", Some("")),
            ("null", None),
            ("[]", None),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, Some("ab")),
            (r#"[{"text":"a"},{"type":"refusal","refusal":"no"}]"#, Some("ano")),
            (r#"[{"type":"thinking","text":"secret thought"}]"#, None),
            (r#"[{"type":"image_url","image_url":{"url":"x"}}]"#, None),
        ] {
            let text: Text = serde_json::from_str(json).unwrap();
            assert_eq!(text.0.as_deref(), expected, "{json}");
        }
        for json in ["1", "true", "{}", "[1]", r#"[{"type":"text","text":{}}]"#] {
            assert!(serde_json::from_str::<Text>(json).is_err(), "{json}");
        }
    }
}
