//! Links under replies: whoever has one may ask why about one decision, without a key and without signing in.
//!
//! A link says which decision it is about and when it ends, and is marked with a key that is derived from the
//! key of pseudonyms, so that every replica reads the links of all others.
//!
//! **Invariant:** nothing is stored of a link. One that was not made here, or was changed, opens nothing; one
//! opens one decision of one tenant and nothing else.

use crate::people::People;
use conclave_core::{AuditId, TenantId};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

/// How long a link works.
const LASTS_MS: u64 = 30 * 24 * 3_600_000;
/// The longest text that is looked at.
const TOKEN_BYTES_MAX: usize = 1_024;
/// So many bytes of the mark stand in a link.
const MARK_BYTES: usize = 16;

/// What a link opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyLink {
    /// Whose decision.
    pub tenant: TenantId,
    /// Which.
    pub audit: AuditId,
    /// Until when.
    pub expires_ms: u64,
}

/// Why a link opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WhyLinkError {
    /// It was not made here, or not all of it came.
    #[error("this link was not made here")]
    Unknown,
    /// Its time is over.
    #[error("this link has ended")]
    Expired,
}

impl People {
    /// The text of a link about a decision; it works for thirty days from now.
    #[must_use]
    pub fn write_why_token(&self, tenant: &TenantId, audit: AuditId) -> Option<String> {
        let expires_s = self.clock.now_ms().saturating_add(LASTS_MS) / 1_000;
        let tenant = hex::encode(tenant.as_str());
        let said = format!("{}_{expires_s:x}_{tenant}", audit.0.simple());
        let mark = self.why_mark(&said)?.finalize().into_bytes();
        Some(format!("{said}_{}", hex::encode(&mark[..MARK_BYTES])))
    }

    /// What a link opens.
    ///
    /// # Errors
    /// When it was not made here or its time is over.
    pub fn read_why_token(&self, text: &str) -> Result<WhyLink, WhyLinkError> {
        let link = self.open_why_token(text).ok_or(WhyLinkError::Unknown)?;
        if self.clock.now_ms() >= link.expires_ms {
            return Err(WhyLinkError::Expired);
        }
        Ok(link)
    }

    fn open_why_token(&self, text: &str) -> Option<WhyLink> {
        if text.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (said, mark) = text.rsplit_once('_')?;
        let mark = hex::decode(mark).ok().filter(|mark| mark.len() == MARK_BYTES)?;
        // Compares in the same time wherever the difference is.
        self.why_mark(said)?.verify_truncated_left(&mark).ok()?;
        let mut parts = said.split('_');
        let (audit, expires, tenant) = (parts.next()?, parts.next()?, parts.next()?);
        let tenant = String::from_utf8(hex::decode(tenant).ok()?).ok()?;
        Some(WhyLink {
            tenant: TenantId::new(tenant).ok()?,
            audit: AuditId::parse(audit)?,
            expires_ms: u64::from_str_radix(expires, 16).ok()?.checked_mul(1_000)?,
        })
    }

    /// HMAC takes a key of any length, so there always is one.
    fn why_mark(&self, said: &str) -> Option<Hmac<Sha256>> {
        let mut derived = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        derived.update(b"links that ask why");
        let mut mac = Hmac::<Sha256>::new_from_slice(&derived.finalize().into_bytes()).ok()?;
        mac.update(said.as_bytes());
        Some(mac)
    }
}
