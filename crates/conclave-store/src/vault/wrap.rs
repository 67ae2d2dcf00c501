//! Secrets wrapped by other secrets, for the database of keys.
//!
//! **Invariant:** a wrapped secret opens only under the secret that wrapped it and for the purpose it
//! was wrapped for, so that rows cannot be exchanged for each other.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use conclave_engine::Entropy;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;

/// Thirty-two bytes that leave no trace in memory when they are dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// A new secret.
pub(super) fn draw(entropy: &dyn Entropy) -> Secret {
    let mut secret = Zeroizing::new([0; 32]);
    entropy.fill(&mut *secret);
    secret
}

/// Encrypts `text` under a secret; nonce first.
pub(super) fn wrap(under: &Secret, purpose: &[u8], text: &[u8], entropy: &dyn Entropy) -> Vec<u8> {
    let mut nonce = [0; NONCE_BYTES];
    entropy.fill(&mut nonce);
    let cipher = XChaCha20Poly1305::new((&**under).into());
    // Fails only beyond 256 GiB; what nobody can unwrap is then treated as a lost key.
    let sealed = cipher.encrypt(&XNonce::from(nonce), Payload { msg: text, aad: purpose });
    [nonce.as_slice(), &sealed.unwrap_or_default()].concat()
}

/// The text again; `None` under another secret or for another purpose.
pub(super) fn unwrap(under: &Secret, purpose: &[u8], wrapped: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = wrapped.split_first_chunk::<NONCE_BYTES>()?;
    let cipher = XChaCha20Poly1305::new((&**under).into());
    let opened = cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: purpose });
    opened.ok().map(Zeroizing::new)
}

/// A wrapped secret again.
pub(super) fn unwrap_secret(under: &Secret, purpose: &[u8], wrapped: &[u8]) -> Option<Secret> {
    let opened = unwrap(under, purpose, wrapped)?;
    opened.as_slice().try_into().ok().map(Zeroizing::new)
}

/// A keyed hash of parts; each part's length is hashed too, so that none runs into the next.
pub(super) fn keyed(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes a key of any length, so this cannot fail; an all-zero digest would find nobody.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[test]
    fn a_wrapped_secret_opens_only_where_it_belongs() {
        let (under, other) = (Zeroizing::new([1; 32]), Zeroizing::new([2; 32]));
        let wrapped = wrap(&under, b"here", &[9; 32], &Sevens);
        assert_eq!(unwrap_secret(&under, b"here", &wrapped).as_deref(), Some(&[9; 32]));
        assert!(unwrap_secret(&other, b"here", &wrapped).is_none());
        assert!(unwrap_secret(&under, b"there", &wrapped).is_none());
        for short in [0, 10, 24, wrapped.len() - 1] {
            assert!(unwrap(&under, b"here", &wrapped[..short]).is_none(), "{short} bytes");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(keyed(&[1; 32], &[b"ab", b"c"]), keyed(&[1; 32], &[b"a", b"bc"]));
        assert_ne!(keyed(&[1; 32], &[b"a"]), keyed(&[2; 32], &[b"a"]));
    }
}
