//! Identifiers that cannot be mistaken for each other.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A name given by a client was empty, too long or held control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidId {
    /// Which identifier.
    pub what: &'static str,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be 1 to {NAME_BYTES_MAX} bytes without control characters", self.what)
    }
}

impl std::error::Error for InvalidId {}

/// The longest name accepted for a tenant, user or session.
const NAME_BYTES_MAX: usize = 256;

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Checks the length and refuses control characters.
            ///
            /// # Errors
            /// When the name is empty, too long or holds a control character.
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidId> {
                let name = name.into();
                let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
                if fits && !name.chars().any(char::is_control) {
                    Ok(Self(name))
                } else {
                    Err(InvalidId { what: $what })
                }
            }

            /// The name as given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(d)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_id!(
    /// The organisation whose application is talking.
    TenantId, "tenant id");
name_id!(
    /// The person at the other end, as the application names them.
    UserId, "user id");
name_id!(
    /// One conversation.
    SessionId, "session id");
name_id!(
    /// The public part of an API key.
    KeyId, "key id");

/// The id of one decision; a UUIDv7, so that ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditId(pub Uuid);

impl AuditId {
    /// The id with these bytes, as the ledger stores them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Builds a UUIDv7 from a time and ten random bytes; both come from ports.
    #[must_use]
    pub fn from_parts(unix_ms: u64, random: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
    }

    /// Reads the usual hyphenated form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert!(UserId::new("ana").is_ok());
        for bad in [String::new(), "a\nb".into(), "x".repeat(257)] {
            assert!(UserId::new(bad.clone()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn audit_ids_are_version_7_and_sort_by_time() {
        let earlier = AuditId::from_parts(1_000, [255; 10]);
        let later = AuditId::from_parts(1_001, [0; 10]);
        assert_eq!(earlier.0.get_version_num(), 7);
        assert!(earlier < later);
        assert_eq!(AuditId::parse(&later.to_string()), Some(later));
    }
}
