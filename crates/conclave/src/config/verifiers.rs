//! Seats on the panel: changes to those of the built-in verifiers, and verifiers of one's own.

use super::SecretRef;
use super::named::Named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A verifier: a change to a built-in one's seat, or one that is asked elsewhere.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SeatChange {
    /// Its name, where it is written as `[[verifiers]]`.
    #[serde(skip_serializing)]
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "VerifierKind::is_builtin")]
    pub kind: VerifierKind,
    /// How grave its field is: from which confidence `harmful` is a veto. Built-in ones have their own.
    #[schemars(range(min = 1, max = 3))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Its weight in the sum; its priority when left out.
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<u16>,
    /// Nothing is delivered without its vote.
    pub required: Option<bool>,
    /// Recorded, never counted.
    pub monitor: Option<bool>,
    /// Milliseconds it may take.
    #[schemars(range(min = 10, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What its silence counts as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Also asked about people who are long known and calm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// Of a judge or a guard: the model that is asked, one of `models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of a guard: how it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<GuardTemplate>,
    /// Of a moderation service: the provider that runs it, one of `providers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Of a moderation service: what it calls its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_model: Option<String>,
    /// Of an HTTP verifier: where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of an HTTP verifier: sent as a bearer token; `env:NAME` or `file:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// Of an HTTP verifier: permits a private address other than loopback.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    /// Of a moderation service or an HTTP verifier: dollars a call costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_call: Option<f64>,
}

impl Named for SeatChange {
    fn name_mut(&mut self) -> &mut String {
        &mut self.name
    }
}

/// What a verifier is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifierKind {
    /// One of the seven that are compiled in.
    #[default]
    Builtin,
    /// A language model that is given instructions and the reply, and must answer in a fixed form.
    Judge,
    /// A model trained to say `safe` or `unsafe`, such as Llama Guard.
    Guard,
    /// A service that speaks OpenAI's moderation interface.
    Moderation,
    /// A program of your own.
    Http,
}

impl VerifierKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde calls")]
    const fn is_builtin(&self) -> bool {
        matches!(self, Self::Builtin)
    }
}

/// What a verifier's silence counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Full dissent.
    #[default]
    Dissent,
    /// Nothing: the others decide without it.
    LeaveOut,
}

/// How a guard model is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardTemplate {
    /// The server has the model's own template: it is sent the two messages.
    #[default]
    Chat,
    /// The server has none: it is sent the whole task as one message.
    Prompt,
}
