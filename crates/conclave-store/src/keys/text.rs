//! What a key looks like, and its keyed hash.
//!
//! **Invariant:** a text with a wrong checksum is no key: a slip of the hand costs no look-up.

use crate::durable;
use crate::error::StoreError;
use conclave_engine::Entropy;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::path::Path;

/// The longest text that is looked at.
const KEY_BYTES_MAX: usize = 256;
/// Where one of these is, keys were made under a pepper.
const KEPT_BESIDE: [&str; 3] = ["ops.db", "cache.db", "ledger.db"];
const LOST_PEPPER: &str = "without it no API key opens anything, and nobody is known again; restore it \
    from a backup (replicas of one database have the same). If it is lost for good, write 32 random bytes \
    into it (`head -c 32 /dev/urandom`) and make new keys";
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A whole key: `ck_<environment>_<id>_<secret>_<checksum>`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText {
    id: String,
    text: String,
}

impl KeyText {
    /// Draws a key. The environment is a word such as `live` or `test`.
    ///
    /// # Errors
    /// When the environment is not 1 to 16 letters or digits.
    pub fn draw(environment: &str, entropy: &dyn Entropy) -> Result<Self, StoreError> {
        let word = environment.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !word || !(1..=16).contains(&environment.len()) {
            let message = "the environment of a key must be 1 to 16 letters or digits";
            return Err(StoreError::Key(message.to_owned()));
        }
        let (mut id, mut secret) = ([0; 12], [0; 32]);
        entropy.fill(&mut id);
        entropy.fill(&mut secret);
        let id: String =
            id.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
        let body = format!("ck_{environment}_{id}_{}", hex::encode(secret));
        let text = format!("{body}_{}", checksum(&body));
        Ok(Self { id, text })
    }

    /// The public part.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole key, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Whether a text could be a key at all.
    #[must_use]
    pub fn is_plausible(text: &str) -> bool {
        text.len() <= KEY_BYTES_MAX
            && text.starts_with("ck_")
            && text.rsplit_once('_').is_some_and(|(body, sum)| checksum(body) == sum)
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

fn checksum(body: &str) -> String {
    format!("{:08x}", crc32c::crc32c(body.as_bytes()))
}

/// The secret of this installation that turns keys into digests: a stolen database alone opens
/// nothing.
#[derive(Clone)]
pub struct Pepper(Hmac<Sha256>);

impl Pepper {
    /// Reads the pepper of a data directory, or draws one; makes the directory if need be.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is not 32 bytes long.
    pub fn load(dir: &Path, entropy: &dyn Entropy) -> Result<Self, StoreError> {
        durable::make_dir(dir)?;
        let path = dir.join("pepper");
        let read = || std::fs::read(&path);
        let bytes = match read() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if KEPT_BESIDE.iter().any(|name| dir.join(name).exists()) {
                    return Err(StoreError::Missing { path, advice: LOST_PEPPER });
                }
                let mut drawn = [0; 32];
                entropy.fill(&mut drawn);
                // Another process may be first; then its pepper is the one.
                let made = durable::create(&path, &drawn);
                made.map_err(StoreError::file("write", &path))?;
                read()
            }
            bytes => bytes,
        };
        let bytes = bytes.map_err(StoreError::file("read", &path))?;
        let advice = "it must hold 32 bytes; restore it, or write 32 random ones and make new keys";
        let whole = (bytes.len() == 32).then_some(bytes);
        whole
            .and_then(|bytes| Hmac::new_from_slice(&bytes).ok())
            .map(Self)
            .ok_or_else(|| StoreError::damaged(&path, advice))
    }

    /// The keyed hash of a key.
    #[must_use]
    pub fn digest(&self, key: &str) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(key.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pepper(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU8, Ordering};

    struct Counting(AtomicU8);
    impl Entropy for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    fn entropy() -> Counting {
        Counting(AtomicU8::new(0))
    }

    #[test]
    fn a_key_has_its_form() {
        let key = KeyText::draw("live", &entropy()).unwrap();
        assert!(key.reveal().starts_with("ck_live_abcdefghijkm_0c0d0e0f10"), "{}", key.reveal());
        let rest = key.reveal().strip_prefix("ck_").unwrap();
        assert!(rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        assert_eq!(key.id(), "abcdefghijkm");
        assert!(KeyText::is_plausible(key.reveal()));
        assert!(!format!("{key:?}").contains("0c0d0e"), "the secret is not shown");
    }

    #[test]
    fn a_slip_of_the_hand_is_no_key() {
        let key = KeyText::draw("live", &entropy()).unwrap();
        let text = key.reveal();
        for at in 0..text.len() {
            let mut slip = text.as_bytes().to_vec();
            slip[at] = if slip[at] == b'x' { b'y' } else { b'x' };
            assert!(!KeyText::is_plausible(std::str::from_utf8(&slip).unwrap()), "at {at}");
        }
        for other in ["", "ck_", "sk-123", "ck_live", &format!("ck_{}", "x".repeat(300))] {
            assert!(!KeyText::is_plausible(other), "{other}");
        }
    }

    #[test]
    fn environments_are_words() {
        for bad in ["", "pro_d", "a-b", "12345678901234567", "é"] {
            assert!(KeyText::draw(bad, &entropy()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_pepper_is_drawn_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let entropy = entropy();
        let first = Pepper::load(dir.path(), &entropy).unwrap();
        let again = Pepper::load(dir.path(), &entropy).unwrap();
        assert_eq!(first.digest("ck_a"), again.digest("ck_a"));
        assert_ne!(first.digest("ck_a"), first.digest("ck_b"));
        let mode = std::fs::metadata(dir.path().join("pepper")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(dir.path().join("pepper"), b"short").unwrap();
        let sentence = Pepper::load(dir.path(), &entropy).unwrap_err().to_string();
        assert!(sentence.contains("must hold 32 bytes"), "{sentence}");
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_digest_is_hmac_sha256() {
        let pepper = Pepper(Hmac::new_from_slice(b"Jefe").unwrap());
        assert_eq!(
            hex::encode(pepper.digest("what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
