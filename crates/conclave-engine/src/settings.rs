//! What an operator may set about turns; what the directives fix is not here.

use conclave_core::{Bars, Mode, Scrutiny, Sensitivity};
pub use conclave_govern::{AuditFailure, OnDoubt, UnjudgedParts};
use conclave_ledger::{Draft, Kind};
use conclave_ports::Stamp;
use std::time::Duration;

/// When the parts of a streamed reply may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamPolicy {
    /// When the whole reply has passed.
    #[default]
    Buffered,
    /// Window by window, each when it has passed with all text before it. Strict turns, child-safe mode
    /// and people in crisis are buffered all the same.
    Windowed,
}

/// Bounds and defaults of every turn.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Candidates asked of a model for one reply.
    pub attempts_max: u8,
    /// How long a model may be silent: before the first of a reply comes, and between two pieces of it.
    pub turn_deadline: Duration,
    /// How long a whole reply may take that keeps coming.
    pub reply_timeout: Duration,
    /// How long a turn may take when the person is in crisis.
    pub crisis_deadline: Duration,
    /// How long a panel may take.
    pub panel_deadline: Duration,
    /// The least scrutiny of every turn.
    pub scrutiny_min: Scrutiny,
    /// Bars on top of the scrutiny's own; each may only raise.
    pub bars_min: Option<Bars>,
    /// Modes a request may ask for.
    pub modes_allowed: Vec<Mode>,
    /// Whether an attempt to override instructions is refused instead of flagged.
    pub block_injection: bool,
    /// What happens to an input in doubt; a tenant may be stricter.
    pub on_doubt: OnDoubt,
    /// What happens to parts that nobody can judge; a tenant may be stricter.
    pub unjudged: UnjudgedParts,
    /// Whether people look at what waits; a message says so where the tenant has somebody who does.
    pub staffed: bool,
    /// Where people reach this program from outside, without a slash at its end; links are relative without it.
    pub public_url: Option<String>,
    /// What happens to a reply whose decision no disk takes; a tenant may be stricter.
    pub audit_failure: AuditFailure,
    /// When the parts of a streamed reply may leave.
    pub stream: StreamPolicy,
    /// The only models for material of high or sacred sensitivity; any where empty.
    pub sensitive_models: Vec<String>,
    /// The version that decided, for the ledger.
    pub build: String,
    /// The digest of the policy in force.
    pub policy: [u8; 32],
    /// The digest of the directives in force.
    pub directives: [u8; 32],
    /// Keys the pseudonyms that stand in the ledger instead of names.
    pub pseudonym_key: [u8; 32],
}

impl Settings {
    /// The defaults of the specification.
    #[must_use]
    pub fn standard(pseudonym_key: [u8; 32]) -> Self {
        Self {
            attempts_max: 3,
            turn_deadline: Duration::from_secs(120),
            reply_timeout: Duration::from_secs(600),
            crisis_deadline: Duration::from_secs(8),
            panel_deadline: Duration::from_millis(500),
            scrutiny_min: Scrutiny::Normal,
            bars_min: None,
            modes_allowed: Mode::ALL.to_vec(),
            block_injection: false,
            on_doubt: OnDoubt::Flag,
            unjudged: UnjudgedParts::Pass,
            staffed: false,
            public_url: None,
            audit_failure: AuditFailure::Hold,
            stream: StreamPolicy::Buffered,
            sensitive_models: Vec::new(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            policy: [0; 32],
            directives: [0; 32],
            pseudonym_key,
        }
    }

    /// An entry that is about to be written, with the version, the policy and the directives that decided.
    #[must_use]
    pub fn draft(&self, kind: Kind, tenant: u64) -> Draft {
        Draft {
            policy: self.policy,
            directives: self.directives,
            build: self.build.clone(),
            ..Draft::new(kind, tenant)
        }
    }

    /// What every entry says about the program and configuration that wrote it.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp { policy: self.policy, directives: self.directives, build: self.build.clone() }
    }

    /// Whether a model may be shown material of this sensitivity.
    #[must_use]
    pub fn permits(&self, model: &str, sensitivity: Sensitivity) -> bool {
        let is_grave = matches!(sensitivity, Sensitivity::High | Sensitivity::Sacred);
        !is_grave
            || self.sensitive_models.is_empty()
            || self.sensitive_models.iter().any(|known| known == model)
    }
}
