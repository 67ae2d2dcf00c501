//! JSON read without mercy: no duplicate keys, bounded depth and size.
//!
//! A duplicate `messages` key is how a request slips past a guard that reads the first and a model that
//! reads the last; here it is an error.
//!
//! **Invariant:** what it returns has at most [`NODES_MAX`] nodes and [`DEPTH_MAX`] levels.

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Levels of nesting.
pub const DEPTH_MAX: usize = 64;
/// Values in one document.
pub const NODES_MAX: usize = 100_000;

/// Reads one JSON document.
///
/// # Errors
/// When it is not JSON, repeats a key, or is too deep or too large; the message says where.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let nodes = Cell::new(0);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { depth: DEPTH_MAX, nodes: &nodes }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    nodes: &'a Cell<usize>,
}

impl Strict<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => Err(E::custom(format_args!("nested deeper than {DEPTH_MAX} levels"))),
        }
    }

    fn count<E: serde::de::Error>(self) -> Result<(), E> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > NODES_MAX {
            return Err(E::custom(format_args!("more than {NODES_MAX} values")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in ["null", "[]", "{}", r#"{"a":[1,-2,3.5,"x",true,null],"b":{"c":{}}}"#] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(parse(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_could_be_read_two_ways_or_without_end() {
        let deep = "[".repeat(100_000);
        let wide = format!("[{}0]", "0,".repeat(NODES_MAX));
        let cases: [(&[u8], &str); 8] = [
            (br#"{"messages":[],"messages":[1]}"#, "`messages` stands twice"),
            (br#"{"a":{"b":1,"b":2}}"#, "`b` stands twice"),
            (deep.as_bytes(), "deeper than 64"),
            (wide.as_bytes(), "more than 100000"),
            (b"{} {}", "trailing characters"),
            (b"1e999", "number out of range"),
            (b"\"\xff\"", "invalid unicode"),
            (b"", "EOF"),
        ];
        for (bytes, expected) in cases {
            let message = parse(bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message} should say {expected}");
        }
    }
}
