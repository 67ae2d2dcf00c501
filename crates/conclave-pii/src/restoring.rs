//! Owns the way back in replies: values in place of tokens, written so that JSON stays JSON.
//!
//! **Invariant:** a text that is JSON is JSON afterwards, with the same structure. A value that was
//! put back is never read again.

use crate::json::{JsonValue, LAYERS_MAX, is_document, json_pieces};
use crate::tokens::{Tokens, restore};
use serde_json::Value;

impl Tokens {
    /// A reply with values in place of the tokens that are known; unknown tokens stay. Tokens that a
    /// model wrote a little differently (`[email_1]`, `【EMAIL 1】`) count. A reply that is JSON as a
    /// whole is restored as such.
    ///
    /// ```
    /// use conclave_pii::{Finder, Tokens, redact};
    /// # fn main() -> Result<(), conclave_pii::BuildError> {
    /// let mut tokens = Tokens::new();
    /// let text = "Write to jane@example.com.";
    /// let _safe = redact(text, &Finder::builtin()?.find(text), &mut tokens);
    /// let reply = tokens.restore("I wrote to [Email 1], not to [EMAIL_2].");
    /// assert_eq!(reply, "I wrote to jane@example.com, not to [EMAIL_2].");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        self.restore_layer(text, 0)
    }

    fn restore_layer(&self, text: &str, layer: usize) -> String {
        if layer < LAYERS_MAX && is_document(text) {
            self.restore_document(text, layer)
        } else {
            restore(text, self)
        }
    }

    /// Only strings in which something changes are written anew, so that numbers and blanks stay as
    /// they were.
    fn restore_document(&self, text: &str, layer: usize) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in json_pieces(text) {
            let (JsonValue::Name(meant) | JsonValue::Text(meant)) = piece.value else {
                out.push_str(piece.written);
                continue;
            };
            let restored = self.restore_layer(&meant, layer + 1);
            if restored == meant {
                out.push_str(piece.written);
            } else {
                out.push_str(&Value::String(restored).to_string());
            }
        }
        out
    }
}
