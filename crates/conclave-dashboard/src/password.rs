//! Passwords of people, kept as Argon2id hashes.
//!
//! **Invariant:** a hash that cannot be read opens nothing.

use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use conclave_engine::Entropy;

/// The longest password that is looked at; longer ones are wrong.
const PASSWORD_BYTES_MAX: usize = 1_024;
const SALT_BYTES: usize = 16;
/// Argon2id with the parameters of [`hash_password`] over a salt of zeroes and an output nobody
/// knows a password for: what an unknown name is checked against.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA\
                      $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Hashes a password with a new salt, in PHC form. A password that is empty or too long gives an
/// empty hash, which no password opens.
#[must_use]
pub fn hash_password(password: &str, entropy: &dyn Entropy) -> String {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return String::new();
    }
    let mut salt = [0; SALT_BYTES];
    entropy.fill(&mut salt);
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).unwrap_or_default()
}

/// Whether this password made this hash. Takes some tens of milliseconds: not for a runtime worker.
#[must_use]
pub fn verify_password(password: &str, hash: &str) -> bool {
    password.len() <= PASSWORD_BYTES_MAX
        && Argon2::default().verify_password(password.as_bytes(), hash).is_ok()
}

/// The same, and as slow without a hash.
pub(crate) fn verify_or_pretend(hash: Option<&str>, password: &str) -> bool {
    let right = verify_password(password, hash.unwrap_or(NOBODY));
    right && hash.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering};

    #[derive(Default)]
    struct Counting(AtomicU8);

    impl Entropy for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    #[test]
    fn a_password_opens_its_own_hash_only() {
        let entropy = Counting::default();
        let (one, two) =
            (hash_password("open sesame", &entropy), hash_password("open sesame", &entropy));
        assert_ne!(one, two, "each has its own salt");
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert!(verify_password("open sesame", &one) && verify_password("open sesame", &two));
        assert!(!verify_password("open barley", &one));
    }

    #[test]
    fn nonsense_opens_nothing() {
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        for hash in ["", "x", "$argon2id$", NOBODY, &hash_password(&long, &Counting::default())] {
            for password in ["", "x", "open sesame", &long] {
                assert!(!verify_password(password, hash), "{hash}");
                assert!(!verify_or_pretend(None, password));
            }
        }
    }

    #[test]
    fn an_unknown_name_is_checked_in_earnest() {
        let real = argon2::PasswordHash::new(NOBODY).unwrap();
        let made = hash_password("x", &Counting::default());
        let made = argon2::PasswordHash::new(&made).unwrap();
        assert_eq!((real.algorithm, real.version), (made.algorithm, made.version));
        assert_eq!(real.params, made.params, "the same work for both");
        assert_eq!(real.hash.map(|hash| hash.len()), made.hash.map(|hash| hash.len()));
    }
}
