//! A value of the log's data model.
//!
//! **Invariant:** a [`Map`] is sorted at all times, so that encoding never has to sort.

use super::DEPTH_MAX;
use std::cmp::Ordering;

/// A map from text to values, kept in the order of the encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Map(Vec<(String, Value)>);

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A whole number from 0.
    Uint(u64),
    /// The negative number `-1 - n`.
    Nint(u64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// A sequence.
    Array(Vec<Value>),
    /// Named values.
    Map(Map),
    /// Yes or no.
    Bool(bool),
    /// Nothing.
    Null,
}

/// The order RFC 8949 gives to text keys: shorter ones first, then by bytes.
pub(super) fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Map {
    /// A map without keys.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets a key and returns what stood there before.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.position(&key) {
            Ok(at) => self.0.get_mut(at).map(|slot| std::mem::replace(&mut slot.1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// All keys and values in the order of the encoding.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a key known to stand after all others; refuses it otherwise.
    pub(super) fn push_last(&mut self, key: &str, value: Value) -> bool {
        let sorted = self.0.last().is_none_or(|(last, _)| key_order(last, key) == Ordering::Less);
        if sorted {
            self.0.push((key.to_owned(), value));
        }
        sorted
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(held, _)| key_order(held, key))
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::new();
        for (key, value) in pairs {
            map.insert(key, value);
        }
        map
    }
}

impl Value {
    /// A map made of pairs; a key given twice keeps its last value.
    pub fn map<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(pairs.into_iter().collect())
    }

    /// An empty map.
    #[must_use]
    pub const fn empty_map() -> Self {
        Self::Map(Map::new())
    }

    /// A signed number.
    #[must_use]
    pub const fn int(number: i64) -> Self {
        if number < 0 {
            Self::Nint(number.unsigned_abs() - 1)
        } else {
            Self::Uint(number.unsigned_abs())
        }
    }

    /// The value of a key, if this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map().and_then(|map| map.get(key))
    }

    /// The number, if this is one from 0.
    #[must_use]
    pub const fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Uint(number) => Some(*number),
            _ => None,
        }
    }

    /// The text, if this is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if this is bytes.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Yes or no, if this is one of them.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(yes) => Some(*yes),
            _ => None,
        }
    }

    /// The items, if this is a sequence.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The map, if this is one.
    #[must_use]
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Whether the value still decodes when it stands `outer` levels deep. Looks no deeper than the
    /// limit, whatever it is given.
    #[must_use]
    pub fn fits_below(&self, outer: usize) -> bool {
        match self {
            Self::Array(items) => {
                outer < DEPTH_MAX && items.iter().all(|item| item.fits_below(outer + 1))
            }
            Self::Map(map) => {
                outer < DEPTH_MAX && map.iter().all(|(_, value)| value.fits_below(outer + 1))
            }
            _ => true,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Uint(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Uint(number.into())
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Self::Uint(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::int(number)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Bool(yes)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<Self>> for Value {
    fn from(items: Vec<Self>) -> Self {
        Self::Array(items)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
