//! Finds identifying data in texts and JSON, and replaces it with tokens that can be undone.
//!
//! **Invariant:** pure: no clock, no file, no network, no other crate of this workspace. Every
//! function takes time linear in its input and fails on no input.
//!
//! ```
//! use conclave_pii::{Finder, Tokens, redact, restore};
//! # fn main() -> Result<(), conclave_pii::BuildError> {
//! let finder = Finder::builtin()?;
//! let text = "Write to jane@example.com.";
//! let mut tokens = Tokens::new();
//! let safe = redact(text, &finder.find(text), &mut tokens);
//! assert_eq!(safe, "Write to [EMAIL_1].");
//! assert_eq!(restore(&safe, &tokens), text);
//! # Ok(())
//! # }
//! ```

mod address;
mod breaks;
mod checksum;
mod finder;
mod json;
mod kind;
mod names;
mod patterns;
mod phone;
mod redactor;
mod restoring;
mod secrets;
mod shape;
mod text;
mod tokens;

pub use breaks::{UNCUT_BYTES_MAX, last_safe_cut};
pub use finder::{BuildError, FOUND_MAX, Finder};
pub use kind::{Class, Classes, Found, IDENTIFYING_MIN, Kind, is_identifying};
pub use names::{KnownNames, NAMES_MAX};
pub use redactor::Redactor;
pub use tokens::{Tokens, redact, restore};
