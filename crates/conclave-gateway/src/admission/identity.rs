//! Who the person is and in which circumstances, from metadata and headers.

use crate::error::ApiError;
use conclave_core::{Mode, Persona, Role, Sensitivity, SessionId, TenantId, TurnContext, UserId};
use http::HeaderMap;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Reads `x-conclave-NAME`, else `metadata.conclave_NAME`.
struct Stated<'a> {
    headers: &'a HeaderMap,
    metadata: Option<&'a Map<String, Value>>,
}

impl Stated<'_> {
    fn get(&self, name: &str) -> Result<Option<String>, ApiError> {
        let header = format!("x-conclave-{}", name.replace('_', "-"));
        if let Some(value) = self.headers.get(&header) {
            let text = value
                .to_str()
                .map_err(|_| ApiError::invalid(header.clone(), "must be visible ASCII"))?;
            return Ok(Some(text.trim().to_owned()));
        }
        let key = format!("conclave_{name}");
        match self.metadata.and_then(|metadata| metadata.get(&key)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(Value::Bool(flag)) => Ok(Some(flag.to_string())),
            Some(_) => Err(ApiError::invalid(format!("metadata.{key}"), "must be a string")),
        }
    }

    fn named<T>(&self, name: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name)? else {
            return Ok(None);
        };
        parse(&text).map(Some).ok_or_else(|| {
            ApiError::invalid(format!("conclave_{name}"), format!("`{text}` is not known"))
        })
    }
}

/// The circumstances a request states.
pub(crate) fn context(
    headers: &HeaderMap,
    metadata: Option<&Map<String, Value>>,
    modes_allowed: &[Mode],
) -> Result<TurnContext, ApiError> {
    let stated = Stated { headers, metadata };
    let mode = stated.named("mode", Mode::parse)?.unwrap_or_default();
    if !modes_allowed.contains(&mode) {
        return Err(ApiError::forbidden(format!(
            "The mode `{}` is not allowed here.",
            mode.as_str()
        )));
    }
    Ok(TurnContext {
        mode,
        country: stated.named("country", country)?,
        language: stated.named("language", language)?,
        persona: stated.named("persona", Persona::parse)?.unwrap_or_default(),
        sensitivity: stated.named("sensitivity", Sensitivity::parse)?.unwrap_or_default(),
        affiliations: stated.named("affiliations", list)?.unwrap_or_default(),
        labels: stated.named("labels", list)?.unwrap_or_default(),
        audience: stated.named("audience", audience)?,
        minor: stated.named("minor", flag)?.unwrap_or_default(),
        vulnerable: stated.named("vulnerable", flag)?.unwrap_or_default(),
    })
}

fn country(text: &str) -> Option<String> {
    let letters = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    letters.then(|| text.to_ascii_uppercase())
}

fn language(text: &str) -> Option<String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let primary = text.split('-').next()?;
    (plain && (2..=3).contains(&primary.len())).then(|| primary.to_ascii_lowercase())
}

fn list(text: &str) -> Option<Vec<String>> {
    let items: Vec<_> = text
        .split(',')
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect();
    (items.len() <= 32).then_some(items)
}

fn audience(text: &str) -> Option<String> {
    (1..=120).contains(&text.len()).then(|| text.to_owned())
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// The person: `safety_identifier`, else `user`; nobody when both are absent.
pub(crate) fn user(body: &Map<String, Value>) -> Result<Option<UserId>, ApiError> {
    for field in ["safety_identifier", "user"] {
        match body.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name.is_empty() => {}
            Some(Value::String(name)) => {
                return UserId::new(name.as_str())
                    .map(Some)
                    .map_err(|error| ApiError::invalid(field, error.to_string()));
            }
            Some(_) => return Err(ApiError::invalid(field, "must be a string")),
        }
    }
    Ok(None)
}

/// The header that names a conversation.
pub(crate) const SESSION_HEADER: &str = "x-conclave-session-id";

/// The conversation: the header, else a digest of the person and their first words.
pub(crate) fn session(
    headers: &HeaderMap,
    tenant: &TenantId,
    user: Option<&UserId>,
    conversation: &[conclave_core::Message],
) -> Result<SessionId, ApiError> {
    const HEADER: &str = SESSION_HEADER;
    if let Some(value) = headers.get(HEADER) {
        let name =
            value.to_str().map_err(|_| ApiError::invalid(HEADER, "must be visible ASCII"))?;
        return SessionId::new(name).map_err(|error| ApiError::invalid(HEADER, error.to_string()));
    }
    let mut hash = Sha256::new();
    for part in [tenant.as_str(), user.map_or("", UserId::as_str)] {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    if let Some(first) = conversation.iter().find(|message| message.role == Role::User) {
        hash.update(first.content.as_text().as_bytes());
    }
    let digest = hex::encode(&hash.finalize()[..16]);
    SessionId::new(digest).map_err(|error| ApiError::invalid(HEADER, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn headers_win_over_metadata_and_both_are_checked() {
        let mut headers = HeaderMap::new();
        headers.insert("x-conclave-country", "jp".parse().unwrap());
        let stated = metadata(&json!({
            "conclave_country": "AU", "conclave_mode": "child_safe", "conclave_minor": true, "conclave_vulnerable": true,
            "conclave_affiliations": "Sea People, River People", "other": "kept",
        }));
        let context = context(&headers, Some(&stated), &Mode::ALL).unwrap();
        assert_eq!(context.country.as_deref(), Some("JP"));
        assert_eq!(context.mode, Mode::ChildSafe);
        assert!(context.minor && context.vulnerable);
        assert_eq!(context.affiliations, ["Sea People", "River People"]);
    }

    #[test]
    fn nonsense_is_refused_and_disallowed_modes_too() {
        for bad in [
            json!({"conclave_mode": "lenient"}),
            json!({"conclave_country": "Japan"}),
            json!({"conclave_minor": "perhaps"}),
            json!({"conclave_persona": 3}),
        ] {
            assert!(
                context(&HeaderMap::new(), Some(&metadata(&bad)), &Mode::ALL).is_err(),
                "{bad}"
            );
        }
        let debug = metadata(&json!({"conclave_mode": "debug"}));
        assert!(context(&HeaderMap::new(), Some(&debug), &[Mode::Normal]).is_err());
    }

    #[test]
    fn the_person_is_the_safety_identifier_first() {
        let body = metadata(&json!({"safety_identifier": "a", "user": "b"}));
        assert_eq!(user(&body).unwrap().unwrap().as_str(), "a");
        assert_eq!(user(&metadata(&json!({"user": ""}))).unwrap(), None);
        assert!(user(&metadata(&json!({"user": 7}))).is_err());
    }
}
