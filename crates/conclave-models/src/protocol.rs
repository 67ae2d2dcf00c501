//! What differs between the interfaces providers speak: where a request goes and how its key is sent.

use crate::ssrf::BaseUrl;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

/// The version of Anthropic's interface that is spoken.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// What a provider speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProviderProtocol {
    /// OpenAI's chat interface, as spoken by OpenAI, vLLM, Ollama, llama.cpp and many others.
    #[default]
    OpenAi,
    /// The same as Azure serves it: a path for each deployment, and a version in the query.
    Azure {
        /// Such as `2024-10-21`.
        api_version: String,
    },
    /// Anthropic's Messages.
    Anthropic,
}

impl ProviderProtocol {
    /// Where a model is asked.
    pub(crate) fn endpoint(&self, base: &BaseUrl, model: Option<&str>) -> Url {
        match self {
            Self::OpenAi => base.endpoint("chat/completions"),
            Self::Anthropic => base.endpoint("messages"),
            Self::Azure { api_version } => {
                deployment(base, model, api_version, &["chat", "completions"])
            }
        }
    }

    /// Where a model turns texts into vectors, if the provider does.
    pub(crate) fn vectors(&self, base: &BaseUrl, model: Option<&str>) -> Option<Url> {
        match self {
            Self::OpenAi => Some(base.endpoint("embeddings")),
            Self::Anthropic => None,
            Self::Azure { api_version } => {
                Some(deployment(base, model, api_version, &["embeddings"]))
            }
        }
    }

    /// The header a key is sent in.
    pub(crate) const fn key_header(&self) -> HeaderName {
        match self {
            Self::OpenAi => AUTHORIZATION,
            Self::Azure { .. } => HeaderName::from_static("api-key"),
            Self::Anthropic => HeaderName::from_static("x-api-key"),
        }
    }

    /// The key as it stands in that header; `None` when no header can hold it.
    pub(crate) fn key_value(&self, secret: &SecretString) -> Option<HeaderValue> {
        let secret = secret.expose_secret();
        let value = match self {
            Self::OpenAi => HeaderValue::from_str(&format!("Bearer {secret}")),
            Self::Azure { .. } | Self::Anthropic => HeaderValue::from_str(secret),
        };
        let mut value = value.ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Headers every request has.
    pub(crate) fn headers(&self) -> Option<(HeaderName, HeaderValue)> {
        let version = HeaderName::from_static("anthropic-version");
        (*self == Self::Anthropic).then_some((version, ANTHROPIC_VERSION))
    }
}

/// A place of an Azure deployment.
fn deployment(base: &BaseUrl, model: Option<&str>, api_version: &str, place: &[&str]) -> Url {
    let mut url = base.itself();
    if let Ok(mut path) = url.path_segments_mut() {
        // Segments are escaped one by one, so a name cannot leave its place.
        path.pop_if_empty().extend(["openai", "deployments", model.unwrap_or_default()]);
        path.extend(place);
    }
    url.query_pairs_mut().append_pair("api-version", api_version);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(protocol: &ProviderProtocol, base: &str, model: &str) -> String {
        let base = BaseUrl::parse(base, false).unwrap();
        protocol.endpoint(&base, Some(model)).to_string()
    }

    #[test]
    fn each_protocol_has_its_place() {
        let azure = ProviderProtocol::Azure { api_version: "2024-10-21".into() };
        for (protocol, base, expected) in [
            (
                ProviderProtocol::OpenAi,
                "https://api.example.com/v1/",
                "https://api.example.com/v1/chat/completions",
            ),
            (
                ProviderProtocol::Anthropic,
                "https://api.example.com/v1",
                "https://api.example.com/v1/messages",
            ),
            (
                azure.clone(),
                "https://name.example.com",
                "https://name.example.com/openai/deployments/large/chat/completions\
                 ?api-version=2024-10-21",
            ),
        ] {
            assert_eq!(endpoint(&protocol, base, "large"), expected);
        }
        let odd = endpoint(&azure, "https://name.example.com/", "../../x?y#z");
        assert!(odd.contains("/openai/deployments/..%2F..%2Fx%3Fy%23z/chat/"), "{odd}");
    }

    #[test]
    fn keys_are_sent_as_each_protocol_wants_them_and_never_shown() {
        for (protocol, header, value) in [
            (ProviderProtocol::OpenAi, "authorization", "Bearer secret"),
            (ProviderProtocol::Azure { api_version: String::new() }, "api-key", "secret"),
            (ProviderProtocol::Anthropic, "x-api-key", "secret"),
        ] {
            assert_eq!(protocol.key_header().as_str(), header);
            let sent = protocol.key_value(&"secret".into()).unwrap();
            assert_eq!(sent, value);
            assert!(!format!("{sent:?}").contains("secret"));
            assert!(protocol.key_value(&"two\nlines".into()).is_none());
        }
    }
}
