//! Whether a value has the shape that a schema of the description asks for.

use regex::Regex;
use serde_json::{Map, Value};

/// The description.
pub struct Page(pub Value);

impl Page {
    /// What a reference leads to, else the value itself.
    pub fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let found = self.0.pointer(reference.trim_start_matches('#'));
                self.resolve(found.unwrap_or_else(|| panic!("{reference} leads nowhere")))
            }
            None => value,
        }
    }

    /// The first thing in which the value differs from its schema.
    pub fn fault(&self, schema: &Value, value: &Value, at: &str) -> Option<String> {
        let Value::Object(rules) = self.resolve(schema) else { return None };
        let wrong = |what: &str| Some(format!("{at}: {what}: {}", short(value)));
        for (rule, of) in rules {
            let broken = match rule.as_str() {
                "type" => !is_of_type(of, value),
                "const" => of != value,
                "enum" => !of.as_array().is_some_and(|all| all.contains(value)),
                "minimum" => value.as_f64() < of.as_f64() && value.is_number(),
                "maximum" => value.as_f64() > of.as_f64() && value.is_number(),
                "minLength" => length(value).is_some_and(|n| n < of.as_u64().unwrap_or(0)),
                "maxLength" => length(value).is_some_and(|n| n > of.as_u64().unwrap_or(u64::MAX)),
                "minItems" => items(value).is_some_and(|n| n < of.as_u64().unwrap_or(0)),
                "maxItems" => items(value).is_some_and(|n| n > of.as_u64().unwrap_or(u64::MAX)),
                "pattern" => value.as_str().is_some_and(|text| {
                    !Regex::new(of.as_str().unwrap_or("")).unwrap().is_match(text)
                }),
                "required" => value.as_object().is_some_and(|fields| {
                    let names = of.as_array().into_iter().flatten().filter_map(Value::as_str);
                    names.into_iter().any(|name| !fields.contains_key(name))
                }),
                "oneOf" => self.matching(of, value) != 1,
                "anyOf" => self.matching(of, value) == 0,
                _ => false,
            };
            if broken {
                return wrong(&format!("breaks `{rule}` {}", short(of)));
            }
        }
        self.fault_inside(rules, value, at)
    }

    fn fault_inside(&self, rules: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
        let all = rules.get("allOf").and_then(Value::as_array).into_iter().flatten();
        if let Some(fault) = all.into_iter().find_map(|schema| self.fault(schema, value, at)) {
            return Some(fault);
        }
        if let (Some(schema), Some(list)) = (rules.get("items"), value.as_array()) {
            let each = list.iter().enumerate();
            return each
                .into_iter()
                .find_map(|(number, item)| self.fault(schema, item, &format!("{at}[{number}]")));
        }
        let fields = value.as_object()?;
        let known = rules.get("properties").and_then(Value::as_object);
        fields.iter().find_map(|(name, field)| {
            let place = format!("{at}.{name}");
            match known.and_then(|known| known.get(name)) {
                Some(schema) => self.fault(schema, field, &place),
                None => match rules.get("additionalProperties") {
                    Some(Value::Bool(false)) => Some(format!("{place}: is not described")),
                    Some(schema @ Value::Object(_)) => self.fault(schema, field, &place),
                    _ => None,
                },
            }
        })
    }

    fn matching(&self, schemas: &Value, value: &Value) -> usize {
        let schemas = schemas.as_array().into_iter().flatten();
        schemas.filter(|schema| self.fault(schema, value, "").is_none()).count()
    }
}

fn is_of_type(named: &Value, value: &Value) -> bool {
    match named {
        Value::Array(names) => names.iter().any(|name| is_of_type(name, value)),
        _ => match named.as_str().unwrap_or("") {
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            other => panic!("the type {other} is not known"),
        },
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn items(value: &Value) -> Option<u64> {
    value.as_array().map(|list| list.len() as u64)
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}
