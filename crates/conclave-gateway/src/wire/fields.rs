//! Single fields of a request, checked; the error names the place.

use crate::error::ApiError;
use serde_json::{Map, Value};

/// The request as an object.
pub(crate) fn object(document: Value) -> Result<Map<String, Value>, ApiError> {
    match document {
        Value::Object(body) => Ok(body),
        _ => Err(ApiError::malformed("The request body must be a JSON object.")),
    }
}

/// The model that is asked for.
pub(crate) fn model(body: &Map<String, Value>) -> Result<String, ApiError> {
    text(body, "model")?
        .filter(|model| !model.is_empty())
        .ok_or_else(|| ApiError::invalid("model", "You must name a model."))
}

/// A string, if there is one.
pub(crate) fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ApiError::invalid(name, "must be a string")),
    }
}

/// A flag; off when absent.
pub(crate) fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ApiError::invalid(name, "must be true or false")),
    }
}

/// A list; empty when absent.
pub(crate) fn list<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a [Value], ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(ApiError::invalid(name, "must be an array")),
    }
}

/// Takes `metadata` apart: what is addressed to us goes no further.
pub(crate) fn take_metadata(
    body: &mut Map<String, Value>,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let metadata = match body.get_mut("metadata") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err(ApiError::invalid("metadata", "must be an object")),
    };
    let stated = metadata.clone();
    metadata.retain(|key, _| !key.starts_with("conclave_"));
    if metadata.is_empty() {
        body.remove("metadata");
    }
    Ok(Some(stated))
}
