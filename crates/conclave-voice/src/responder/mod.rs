//! The built-in responder: a kind listener that needs no model and no network.

use crate::{FieldState, VoiceError};
use conclave_core::{Message, Reason, Score};

/// The responder with its sentences.
#[derive(Clone, Debug)]
pub struct Responder {}

impl Responder {
    /// The responder compiled in.
    ///
    /// # Errors
    /// When a data file is broken.
    pub fn builtin() -> Result<Self, VoiceError> {
        Ok(Self {})
    }

    /// A reply to the person's last message; never empty.
    #[must_use]
    pub fn respond(
        &self,
        _conversation: &[Message],
        _field: &FieldState,
        _crisis: Score,
        _reasons: &[Reason],
        _seed: u64,
    ) -> String {
        String::from("I am here, and I am listening.")
    }
}
