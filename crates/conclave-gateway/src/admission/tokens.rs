//! Tokens for the people at the other end: short, for one person, and of one conversation where wanted.
//!
//! **Invariant:** a token opens what concerns its own person and nothing else. It is made by a key, ends
//! with that key, and is never stored: what it says stands in it, marked with a secret of the house.

use crate::admission::entrance::{AdmittedCaller, TokenHolder};
use crate::state::Gateway;
use conclave_core::{KeyId, SessionId, UserId};
use conclave_engine::KeyRing;
use serde::{Deserialize, Serialize};

/// How a token begins.
pub(crate) const PREFIX: &str = "ct_";
/// How long a token may hold, in seconds, and how long it does unless asked otherwise.
pub(crate) const LASTS_S_MIN: u64 = 60;
pub(crate) const LASTS_S_MAX: u64 = 24 * 3600;
pub(crate) const LASTS_S: u64 = 3600;
/// The longest text that is looked at: two names of 256 bytes, each escaped at worst, in hex.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonToken {
    /// The key that made it.
    #[serde(rename = "k")]
    pub key: KeyId,
    #[serde(rename = "u")]
    pub user: UserId,
    /// The one conversation it is about; all of the person's where absent.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none", default)]
    pub session: Option<SessionId>,
    #[serde(rename = "e")]
    pub expires_ms: u64,
}

/// The token as text.
pub(crate) fn write_token(ring: &dyn KeyRing, token: &PersonToken) -> String {
    let said = hex::encode(serde_json::to_vec(token).unwrap_or_default());
    let mark = hex::encode(ring.mark(&said));
    format!("{PREFIX}{said}_{mark}")
}

/// Whose token it is, and the key that made it, if it was made here and both still hold.
pub(crate) fn read_token(gateway: &Gateway, text: &str) -> Option<AdmittedCaller> {
    let now_ms = gateway.engine().clock.now_ms();
    let token = open_token(gateway.keys(), text)?;
    let key = gateway.keys().find_id(&token.key)?;
    if now_ms >= token.expires_ms || !key.is_valid_at(now_ms) {
        return None;
    }
    let holder = TokenHolder { user: token.user, session: token.session };
    Some(AdmittedCaller { key, holder: Some(holder) })
}

fn open_token(ring: &dyn KeyRing, text: &str) -> Option<PersonToken> {
    if text.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (said, mark) = text.strip_prefix(PREFIX)?.rsplit_once('_')?;
    if !is_same_mark(&ring.mark(said), &hex::decode(mark).ok()?) {
        return None;
    }
    serde_json::from_slice(&hex::decode(said).ok()?).ok()
}

/// Compares in the same time wherever the difference is.
fn is_same_mark(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_engine::KeyRecord;
    use sha2::{Digest, Sha256};

    struct Ring;
    impl KeyRing for Ring {
        fn find(&self, _: &str) -> Option<KeyRecord> {
            None
        }
        fn find_id(&self, _: &KeyId) -> Option<KeyRecord> {
            None
        }
        fn mark(&self, text: &str) -> [u8; 32] {
            Sha256::digest(format!("secret{text}")).into()
        }
    }

    fn token() -> PersonToken {
        PersonToken {
            key: KeyId::new("abc").unwrap(),
            user: UserId::new("ana \u{202e}\"x").unwrap(),
            session: SessionId::new("s1").ok(),
            expires_ms: 7,
        }
    }

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let text = write_token(&Ring, &token());
        assert_eq!(open_token(&Ring, &text), Some(token()));
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    }

    #[test]
    fn a_token_with_one_changed_letter_is_none() {
        let text = write_token(&Ring, &token());
        for at in 0..text.len() {
            let mut slip = text.clone().into_bytes();
            slip[at] = if slip[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(open_token(&Ring, std::str::from_utf8(&slip).unwrap()), None, "at {at}");
        }
        for odd in ["", "ct_", "ct__", "ct_7b7d_00", &format!("ct_{}", "0".repeat(10_000))] {
            assert_eq!(open_token(&Ring, odd), None, "{odd}");
        }
    }
}
