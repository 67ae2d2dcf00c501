//! Plain HTTP to one place an operator named, with the same guard as for providers.
//!
//! **Invariant:** no redirect is followed, no proxy of the environment is used, and an address that
//! answers with credentials is never connected to.

use crate::ssrf::{BaseUrl, Lookup, system_lookup};
use crate::transport::guarded;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request};
use std::time::Duration;
use thiserror::Error;

/// Why a place could not be reached or answered badly.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct WebError(String);

/// Speaks to one place.
pub struct WebClient {
    client: Client,
    base: BaseUrl,
    timeout: Duration,
}

impl WebClient {
    /// Makes the client; opens no connection yet. Loopback is permitted where the URL names it
    /// literally; other private addresses only with `allow_private`.
    ///
    /// # Errors
    /// When the address is none that may be used.
    pub fn new(url: &str, allow_private: bool, timeout: Duration) -> Result<Self, WebError> {
        let base = BaseUrl::parse(url, allow_private);
        let base = base.map_err(|error| WebError(format!("the URL cannot be used: {error}")))?;
        Self::of(base, system_lookup(), timeout)
    }

    /// The same for a URL that was parsed, with a way of its own to find addresses.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn of(base: BaseUrl, lookup: Lookup, timeout: Duration) -> Result<Self, WebError> {
        let builder = guarded(&base, lookup).connect_timeout(timeout.min(Duration::from_secs(5)));
        let client = builder.build().map_err(|error| sentence(&error))?;
        Ok(Self { client, base, timeout })
    }

    /// Gets what stands at a path below the place: status and body, which may not be larger than
    /// allowed.
    ///
    /// # Errors
    /// When there is no answer, or too much of it.
    pub async fn get(
        &self,
        path: &str,
        bearer: Option<&str>,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), WebError> {
        let mut request = Request::new(Method::GET, self.base.endpoint(path));
        if let Some(key) = bearer {
            let odd = |_| WebError("the key cannot stand in a header".to_owned());
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(odd)?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        self.send(request, bytes_max).await
    }

    /// Posts a body to the place itself; only the status of the answer counts.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post(
        &self,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<u16, WebError> {
        let mut request = Request::new(Method::POST, self.base.itself());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let odd = |_| WebError(format!("the header {name} cannot be sent"));
            map.insert(HeaderName::from_static(name), HeaderValue::from_str(value).map_err(odd)?);
        }
        *request.headers_mut() = map;
        *request.body_mut() = Some(body.into());
        let timeout = self.timeout;
        let answered = tokio::time::timeout(timeout, self.client.execute(request)).await;
        let response = answered.map_err(|_| late(timeout))?.map_err(|error| sentence(&error))?;
        Ok(response.status().as_u16())
    }

    /// Posts JSON to the place itself, with headers an operator named; only the status of the answer
    /// counts.
    ///
    /// # Errors
    /// When a header cannot be sent, or there is no answer.
    pub async fn post_json(
        &self,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<u16, WebError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let odd = || WebError(format!("the header {name} cannot be sent"));
            let name = HeaderName::try_from(name.as_str()).map_err(|_| odd())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| odd())?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut request = Request::new(Method::POST, self.base.itself());
        *request.headers_mut() = map;
        *request.body_mut() = Some(body.into());
        let timeout = self.timeout;
        let answered = tokio::time::timeout(timeout, self.client.execute(request)).await;
        let response = answered.map_err(|_| late(timeout))?.map_err(|error| sentence(&error))?;
        Ok(response.status().as_u16())
    }

    /// Asks something of a path below the place, as JSON: status and body, which may not be larger
    /// than allowed. What follows a `?` is the query.
    ///
    /// # Errors
    /// When there is no answer, or too much of it.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        bearer: &str,
        body: Option<Vec<u8>>,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), WebError> {
        let method = Method::from_bytes(method.as_bytes());
        let method = method.map_err(|_| WebError("there is no such method".to_owned()))?;
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        let mut url = self.base.endpoint(path);
        url.set_query(query.filter(|query| !query.is_empty()));
        let mut request = Request::new(method, url);
        let odd = |_| WebError("the key cannot stand in a header".to_owned());
        let mut value = HeaderValue::from_str(&format!("Bearer {bearer}")).map_err(odd)?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
        if let Some(body) = body {
            let kind = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, kind);
            *request.body_mut() = Some(body.into());
        }
        self.send(request, bytes_max).await
    }

    /// Posts a text to a path below the place: status and body, which may not be larger than allowed.
    ///
    /// # Errors
    /// When there is no answer, or too much of it.
    pub async fn post_text(
        &self,
        path: &str,
        body: String,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), WebError> {
        let mut request = Request::new(Method::POST, self.base.endpoint(path));
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        *request.body_mut() = Some(body.into());
        self.send(request, bytes_max).await
    }

    async fn send(&self, request: Request, bytes_max: usize) -> Result<(u16, Vec<u8>), WebError> {
        let timeout = self.timeout;
        let whole = async {
            let mut response = self.client.execute(request).await.map_err(|e| sentence(&e))?;
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(|error| sentence(&error))? {
                if body.len() + piece.len() > bytes_max {
                    return Err(WebError(format!("the answer has more than {bytes_max} bytes")));
                }
                body.extend_from_slice(&piece);
            }
            Ok((response.status().as_u16(), body))
        };
        tokio::time::timeout(timeout, whole).await.map_err(|_| late(timeout))?
    }
}

fn late(timeout: Duration) -> WebError {
    WebError(format!("there was no answer within {} seconds", timeout.as_secs()))
}

/// The error without the URL, which may be long or telling.
fn sentence(error: &reqwest::Error) -> WebError {
    if error.is_connect() {
        return WebError("no connection could be opened".to_owned());
    }
    WebError("the connection broke, or its host has no address that is permitted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_answer_with_credentials_are_refused() {
        let second = Duration::from_secs(1);
        for url in ["http://169.254.169.254/x", "ftp://example.com", "http://10.0.0.1/", "x"] {
            assert!(WebClient::new(url, false, second).is_err(), "{url}");
        }
        assert!(WebClient::new("http://169.254.169.254/", true, second).is_err());
        assert!(WebClient::new("http://127.0.0.1:1/", false, second).is_ok());
        assert!(WebClient::new("http://10.0.0.1/", true, second).is_ok());
    }
}
