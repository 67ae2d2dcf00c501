//! The arguments of a call as a tree.
//!
//! **Invariant:** a name that stands twice is kept twice: who reads the call may take either.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The parser goes no deeper; text with more brackets is read as text, and does not count as read.
const DEPTH_MAX: usize = 127;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Nothing.
    Empty,
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Values under names.
    Fields(Vec<Field>),
}

/// A value under its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name.
    pub key: String,
    /// The value.
    pub value: Tree,
}

impl Tree {
    /// The tree that a text writes; `None` for a text that is no JSON.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The list or the fields that a text writes: a bare number or word is a text.
    pub fn parse_nested(text: &str) -> Option<Self> {
        let opens = text.trim_start().starts_with(['{', '[', '"']);
        opens.then(|| Self::parse(text)).flatten()
    }
}

/// Whether a text has more brackets within brackets than any parser here follows.
pub fn is_too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH_MAX
    })
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Empty)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Tree, E> {
        Ok(Tree::Flag(flag))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "how large a number is matters, not its last digit"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Number(number as f64))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "how large a number is matters, not its last digit"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(Tree::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key()? {
            fields.push(Field { key, value: map.next_value()? });
        }
        Ok(Tree::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_twice_is_kept_twice_and_in_order() {
        let Some(Tree::Fields(fields)) = Tree::parse(r#"{"b":1,"a":"x","b":[true,null]}"#) else {
            panic!("fields");
        };
        let keys: Vec<_> = fields.iter().map(|field| field.key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "b"]);
        assert_eq!(fields[2].value, Tree::List(vec![Tree::Flag(true), Tree::Empty]));
        assert_eq!(Tree::parse("{\"a\":"), None);
        assert_eq!(Tree::parse_nested("7"), None);
        assert_eq!(Tree::parse_nested("\"x\""), Some(Tree::Text("x".into())));
    }

    #[test]
    fn depth_is_parsed_up_to_a_limit_and_known_beyond() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Tree::parse(&nested(60)).is_some() && !is_too_deep(&nested(60)));
        assert!(Tree::parse(&nested(127)).is_some() && !is_too_deep(&nested(127)));
        assert!(Tree::parse(&nested(128)).is_none() && is_too_deep(&nested(128)));
        assert!(is_too_deep(&"[".repeat(200_000)));
    }
}
