//! The built-in responder as a [`Model`]: an answer without any provider, offline.
//!
//! **Invariant:** the same request gives the same words.

use crate::usage::{count_tokens, input_bytes, output_bytes};
use conclave_core::{Candidate, Usage};
use conclave_engine::{Model, ModelError, ModelRequest};
use conclave_voice::{Responder, VoiceError};
use futures_util::future::{self, BoxFuture};

/// The model `builtin`.
pub struct Builtin {
    responder: Responder,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Builtin").finish_non_exhaustive()
    }
}

impl Builtin {
    /// What clients call it, and who runs it.
    pub const NAME: &str = "builtin";

    /// With the words that are compiled in.
    ///
    /// # Errors
    /// When a data file is broken.
    pub fn new() -> Result<Self, VoiceError> {
        Ok(Self { responder: Responder::builtin()? })
    }

    fn respond(&self, request: &ModelRequest) -> Candidate {
        let text = self.responder.respond(
            &request.conversation,
            &request.field,
            request.crisis,
            &request.reasons,
            request.seed,
        );
        let mut candidate =
            Candidate { text, model: Self::NAME.to_owned(), ..Candidate::default() };
        candidate.usage = Usage {
            input_tokens: count_tokens(input_bytes(request)),
            output_tokens: count_tokens(output_bytes(&candidate)),
        };
        candidate
    }
}

impl Model for Builtin {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        Box::pin(future::ready(Ok(self.respond(&request))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request_saying;

    #[tokio::test]
    async fn it_answers_the_same_each_time_and_counts_its_words() {
        let builtin = Builtin::new().unwrap();
        let request = request_saying("I had a long day and I am tired.");
        let first = builtin.generate(request.clone()).await.unwrap();
        let second = builtin.generate(request).await.unwrap();
        assert_eq!(first, second);
        assert!(!first.is_silence());
        assert_eq!(first.model, Builtin::NAME);
        assert_eq!(first.usage.input_tokens, 8);
        assert_eq!(first.usage.output_tokens, count_tokens(first.text.len()));
    }
}
