//! Lists whose entries have names: written as `[[providers]]` with a `name`, or as `[providers.NAME]`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// An entry that has a name.
pub trait Named {
    /// Its name, to be filled in where the table's key is the name.
    fn name_mut(&mut self) -> &mut String;
}

/// Reads either form, in order.
///
/// # Errors
/// When an entry is wrong, or has another name than its key.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Named,
{
    deserializer.deserialize_any(Entries(PhantomData))
}

/// Reads either form, by name.
///
/// # Errors
/// When an entry is wrong, has no name, or one that stands twice.
pub fn table<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Named,
{
    let mut named = BTreeMap::new();
    for mut entry in list::<D, T>(deserializer)? {
        let name = entry.name_mut().clone();
        if name.is_empty() {
            return Err(D::Error::custom("an entry has no `name`"));
        }
        if named.insert(name.clone(), entry).is_some() {
            return Err(D::Error::custom(format!("`{name}` stands twice")));
        }
    }
    Ok(named)
}

/// The JSON Schema of either form.
pub fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({"anyOf": [
        {"type": "array", "items": one},
        {"type": "object", "additionalProperties": one},
    ]})
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Named> Visitor<'de> for Entries<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries with names, or a table of them by name")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            list.push(entry);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let mut entry: T = entries.next_value()?;
            let name = entry.name_mut();
            if !name.is_empty() && *name != key {
                return Err(A::Error::custom(format!("`{key}` is called `{name}` inside")));
            }
            *name = key;
            list.push(entry);
        }
        Ok(list)
    }
}
