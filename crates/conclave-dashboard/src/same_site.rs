//! Whether a form was really sent from one of our own pages.
//!
//! **Invariant:** a form counts only with a token that belongs to the cookie it came with, and only
//! from our own origin; either alone is not enough.

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, header};
use sha2::Sha256;

/// Makes and checks the tokens in forms; its key lives as long as the process.
pub(crate) struct FormKey([u8; 32]);

impl FormKey {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The token that belongs to this cookie.
    pub(crate) fn token(&self, cookie: &str) -> String {
        self.mac(cookie).map(|mac| hex::encode(mac.finalize().into_bytes())).unwrap_or_default()
    }

    /// Whether the token belongs to the cookie; takes as long for every wrong one.
    pub(crate) fn fits(&self, cookie: &str, token: &str) -> bool {
        let Ok(token) = hex::decode(token) else { return false };
        self.mac(cookie).is_some_and(|mac| mac.verify_slice(&token).is_ok())
    }

    fn mac(&self, cookie: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(cookie.as_bytes());
        Some(mac)
    }
}

/// Whether a request comes from our own origin. What the browser says about the site decides,
/// because a page cannot forge it; browsers that say nothing, and everybody else, must name an
/// origin with our host.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let host = text(header::HOST.as_str()).filter(|host| !host.is_empty());
    let origin = text(header::ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
    matches!((origin, host), (Some((_, named)), Some(host)) if named.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn a_token_belongs_to_one_cookie() {
        let (key, other) = (FormKey::new([1; 32]), FormKey::new([2; 32]));
        let token = key.token("cookie");
        assert_eq!(token.len(), 64);
        assert!(key.fits("cookie", &token));
        for (cookie, wrong) in
            [("another", token.as_str()), ("cookie", ""), ("cookie", "zz"), ("cookie", &token[2..])]
        {
            assert!(!key.fits(cookie, wrong), "{cookie} {wrong}");
        }
        assert!(!other.fits("cookie", &token), "another process");
    }

    #[test]
    fn only_our_own_origin_may_send_forms() {
        let host = ("host", "127.0.0.1:8420");
        for (said, own) in [
            (vec![host, ("origin", "http://127.0.0.1:8420")], true),
            (vec![host, ("origin", "https://127.0.0.1:8420")], true),
            (vec![host, ("origin", "null"), ("sec-fetch-site", "same-origin")], true),
            (
                vec![host, ("origin", "http://127.0.0.1:8420"), ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                vec![host, ("origin", "http://127.0.0.1:8420"), ("sec-fetch-site", "same-site")],
                false,
            ),
            (vec![host, ("origin", "http://evil.example")], false),
            (vec![host, ("origin", "http://127.0.0.1:8420.evil.example")], false),
            (vec![host, ("origin", "http://127.0.0.1:9999")], false),
            (vec![host, ("origin", "null")], false),
            (vec![host], false),
            (vec![("origin", "http://"), ("host", "")], false),
            (vec![], false),
        ] {
            assert_eq!(is_same_origin(&headers(&said)), own, "{said:?}");
        }
    }
}
