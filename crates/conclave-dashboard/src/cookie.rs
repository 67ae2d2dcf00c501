//! The two cookies: one for the session, one for the form that asks for a password.
//!
//! **Invariant:** no script can read them and no other site can send them.

use http::{HeaderMap, HeaderValue, header};

/// The longest cookie that is looked at.
const VALUE_BYTES_MAX: usize = 128;

/// Which cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cookie {
    /// Who is signed in.
    Session,
    /// Who was shown the sign-in form.
    Form,
}

impl Cookie {
    /// Over https the name itself promises that only this host could have set it.
    const fn name(self, https: bool) -> &'static str {
        match (self, https) {
            (Self::Session, true) => "__Host-conclave_session",
            (Self::Session, false) => "conclave_session",
            (Self::Form, true) => "__Host-conclave_form",
            (Self::Form, false) => "conclave_form",
        }
    }

    /// Its value in a request.
    pub(crate) fn read(self, headers: &HeaderMap, https: bool) -> Option<&str> {
        let all = headers.get_all(header::COOKIE).into_iter();
        let pairs = all.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
        let mut values = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            (name.trim() == self.name(https)).then_some(value.trim())
        });
        values.find(|value| !value.is_empty() && value.len() <= VALUE_BYTES_MAX)
    }

    /// The header that sets it; `value` is hexadecimal.
    pub(crate) fn set(self, value: &str, https: bool) -> HeaderValue {
        self.header(value, https, "")
    }

    /// The header that removes it.
    pub(crate) fn unset(self, https: bool) -> HeaderValue {
        self.header("", https, "; Max-Age=0")
    }

    fn header(self, value: &str, https: bool, end: &str) -> HeaderValue {
        let name = self.name(https);
        let secure = if https { "; Secure" } else { "" };
        let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{end}");
        HeaderValue::try_from(line).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(line: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(line))])
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        for (line, found) in [
            ("conclave_session=ab", Some("ab")),
            ("a=b; conclave_session=ab; c=d", Some("ab")),
            ("xconclave_session=ab", None),
            ("conclave_session=", None),
            ("conclave_session", None),
            ("__Host-conclave_session=ab", None),
        ] {
            assert_eq!(Cookie::Session.read(&sent(line), false), found, "{line}");
        }
        let secure = sent("conclave_session=ab; __Host-conclave_session=cd");
        assert_eq!(Cookie::Session.read(&secure, true), Some("cd"));
    }

    #[test]
    fn cookies_are_closed_to_scripts_and_other_sites() {
        let plain = Cookie::Session.set("ab", false);
        assert_eq!(plain, "conclave_session=ab; Path=/; HttpOnly; SameSite=Strict");
        let secure = Cookie::Session.set("ab", true);
        assert_eq!(secure, "__Host-conclave_session=ab; Path=/; HttpOnly; SameSite=Strict; Secure");
        let gone = Cookie::Form.unset(false);
        assert_eq!(gone, "conclave_form=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    }
}
