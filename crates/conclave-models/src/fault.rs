//! Why an exchange with a provider failed, before it becomes a [`ModelError`].

use conclave_core::GenerationFailure;
use conclave_engine::{ModelError, UpstreamRefusal};

/// A failure, and whether it speaks of the provider's health rather than of this one request.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) failure: GenerationFailure,
    pub(crate) message: String,
    /// Counts against the provider in its circuit breaker.
    pub(crate) is_outage: bool,
    /// Whether another model would be asked in vain.
    pub(crate) is_conclusive: bool,
    /// What the provider said of the request, where it refused it.
    pub(crate) upstream: Option<Box<UpstreamRefusal>>,
}

impl Fault {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(GenerationFailure::Invalid, message, false)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(GenerationFailure::TooLarge, message, false)
    }

    pub(crate) fn refused(message: impl Into<String>, is_outage: bool) -> Self {
        Self::new(GenerationFailure::Refused, message, is_outage)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(GenerationFailure::Unreachable, message, true)
    }

    pub(crate) fn timeout(is_outage: bool) -> Self {
        let message = "did not answer in the time that was left";
        Self::new(GenerationFailure::Timeout, message, is_outage)
    }

    fn new(failure: GenerationFailure, message: impl Into<String>, is_outage: bool) -> Self {
        Self { failure, message: message.into(), is_outage, is_conclusive: false, upstream: None }
    }

    /// The same, but no other model is to be asked.
    pub(crate) fn conclusive(self) -> Self {
        Self { is_conclusive: true, ..self }
    }

    /// The same, with what the provider said of the request.
    pub(crate) fn stating(self, upstream: Option<UpstreamRefusal>) -> Self {
        Self { upstream: upstream.map(Box::new), ..self }
    }

    /// The error as the use-cases see it.
    pub(crate) fn into_error(self, provider: &str) -> ModelError {
        ModelError {
            failure: self.failure,
            message: format!("provider {provider}: {}", self.message),
            upstream: self.upstream,
        }
    }
}
