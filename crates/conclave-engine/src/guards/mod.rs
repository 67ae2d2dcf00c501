//! The guards: who looks at a matter before a model is asked, and at what comes back.
//!
//! [`standard_guards`] is the one list, in order. A new guard is one file with one type and one line
//! there; it then acts for chat, messages, responses, streams and recipes alike. What a guard finds is a
//! [`Finding`]; what follows from it is decided here, in [`Engine::guard`], not in the guard.
//!
//! **Invariant:** a guard only looks. What it wants changed it returns as an [`GuardEffect`], so that one that
//! merely watches (`monitor`) changes nothing.
//! **Invariant:** whoever cannot be asked, takes too long or panics has failed, and the matter is held.
//! **Invariant:** no guard asks a model.

mod budget;
mod consent;
mod cost;
mod culture;
mod interpretation;
mod jurisdiction;
mod personal_data;
mod toxicity;

pub use budget::{Payment, is_unseen, refusal_sentence};
pub use interpretation::read_words;
pub use jurisdiction::{BUILTIN_MODEL, Places};
pub use personal_data::PersonalData;
pub use toxicity::harm_of;

use crate::engine::Engine;
use crate::matter::{Hold, Matter};
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Passage, Phase, TenantId};
use conclave_govern::Issue;
use conclave_money::BudgetRefusal;
use conclave_pii::Tokens;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;

/// How long a guard may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Every guard, in the order in which they look. Money is reserved last, when nothing else speaks
/// against the matter.
#[must_use]
pub fn standard_guards() -> Arc<[GuardEntry]> {
    let all: [Arc<dyn Guard>; 8] = [
        Arc::new(cost::Cost),
        Arc::new(culture::Culture),
        Arc::new(consent::Consent),
        Arc::new(personal_data::PersonalDataGuard),
        Arc::new(jurisdiction::Jurisdiction),
        Arc::new(interpretation::Interpretation),
        Arc::new(toxicity::Toxicity),
        Arc::new(budget::Budget),
    ];
    all.into_iter().map(|guard| GuardEntry { guard, monitor: false }).collect()
}

/// A guard in the list.
#[derive(Clone)]
pub struct GuardEntry {
    /// Who looks.
    pub guard: Arc<dyn Guard>,
    /// Whether it only watches: what it finds is recorded and changes nothing.
    pub monitor: bool,
}

/// Somebody who looks at matters.
pub trait Guard: Send + Sync {
    /// Which it is.
    fn kind(&self) -> GuardKind;
    /// Looks; `None` where it has nothing to do with the matter in this phase.
    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>>;
}

/// Why a guard could not look; the matter waits for a person then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct GuardError(pub String);

/// What a guard found, and what it wants changed.
pub struct Examined {
    /// What it found.
    pub finding: Finding,
    /// What follows for the matter.
    pub effect: GuardEffect,
    /// Whether no policy can have it merely watched: what reaches the directives' floor, and what is
    /// sacred.
    pub is_binding: bool,
}

impl From<Finding> for Examined {
    fn from(finding: Finding) -> Self {
        Self { finding, effect: GuardEffect::None, is_binding: false }
    }
}

impl Examined {
    /// A finding, and what follows from it.
    #[must_use]
    pub const fn with(finding: Finding, effect: GuardEffect) -> Self {
        Self { finding, effect, is_binding: false }
    }
}

/// What a guard wants changed in a matter.
pub enum GuardEffect {
    /// Nothing.
    None,
    /// These texts in the place of those the content has, and what now stands behind tokens.
    Replace {
        /// One slot for each text of the content, in order.
        texts: Vec<Option<String>>,
        /// What stands behind the tokens in them.
        tokens: Tokens,
    },
    /// It waits for these people.
    Hold(Hold),
    /// These people have agreed.
    Consented(Vec<String>),
    /// It is paid for like this.
    Pay(Box<Payment>),
    /// It may not be paid for.
    Unpaid(Box<BudgetRefusal>),
}

impl Engine {
    /// Everybody looks, in order. The first that blocks ends it; what is held goes on being looked at,
    /// because a later guard may be stricter.
    pub async fn guard(&self, matter: &mut Matter, phase: Phase) -> Passage {
        for entry in self.guards.iter() {
            let kind = entry.guard.kind();
            // `async`, so that a panic while the future is being made is caught as well.
            let looking = async { entry.guard.examine(self, matter, phase).await }.boxed();
            let examined = match within_patience(looking).await {
                Ok(None) => continue,
                Ok(Some(examined)) => examined,
                Err(GuardError(why)) => {
                    tracing::error!(guard = kind.as_str(), %why, "a guard failed: the matter is held");
                    failed(kind, phase, why)
                }
            };
            if !matter.looked.contains(&kind) {
                matter.looked.push(kind);
            }
            let watches = entry.monitor || matter.policy().monitors(kind);
            if watches && !examined.is_binding {
                matter.note(Finding { monitor: true, ..examined.finding });
                continue;
            }
            let is_blocked = examined.finding.disposition == Disposition::Blocked;
            apply(matter, phase, examined);
            if is_blocked {
                break;
            }
        }
        matter.passage()
    }

    /// Notes that somebody who must look at a matter could not: it waits for a person.
    pub fn note_failure(&self, matter: &mut Matter, kind: GuardKind, phase: Phase, why: String) {
        tracing::error!(guard = kind.as_str(), %why, "a guard failed: the matter is held");
        apply(matter, phase, failed(kind, phase, why));
    }

    /// Whether anybody could decide what waits. What nobody can decide is refused at once, not held for
    /// ever.
    ///
    /// A conversation waits for people in general only where somebody is on duty, because nobody else
    /// would learn of it. Whoever asked for a run is told the review and can bring it to a person.
    pub async fn is_decidable(&self, matter: &Matter) -> bool {
        let Some(governance) = &self.governance else { return false };
        let hold = matter.hold.clone().unwrap_or_default();
        if hold.communities.is_empty() {
            // What is sacred and belongs to nobody known is no stranger's to decide.
            let is_recipe = matter.purpose.is_recipe();
            return !hold.sacred && (is_recipe || self.is_on_duty(&matter.tenant).await);
        }
        for community in &hold.communities {
            let known = async { governance.has_elders(&matter.tenant, community).await };
            let known = within_patience(async { Ok(known.await?) }.boxed()).await;
            match known {
                Ok(true) => {}
                Ok(false) => return false,
                Err(GuardError(why)) => {
                    tracing::error!(audit_id = %matter.id, %why, "elders could not be looked up");
                    return false;
                }
            }
        }
        true
    }

    /// Whether a person of the tenant looks at what waits: nobody is promised where nobody is.
    pub(crate) async fn is_on_duty(&self, tenant: &TenantId) -> bool {
        let Some(governance) = self.governance.as_ref().filter(|_| self.settings.staffed) else {
            return false;
        };
        let known = async { Ok(governance.has_reviewers(tenant).await?) };
        within_patience(known.boxed()).await.unwrap_or_else(|GuardError(why)| {
            tracing::error!(%tenant, %why, "reviewers could not be looked up: nobody is promised");
            false
        })
    }
}

impl From<conclave_ports::GovernError> for GuardError {
    fn from(error: conclave_ports::GovernError) -> Self {
        Self(error.0)
    }
}

/// An answer in time; whoever panics has failed like anybody else.
///
/// # Errors
/// When there is none.
pub async fn within_patience<T>(
    asked: BoxFuture<'_, Result<T, GuardError>>,
) -> Result<T, GuardError> {
    match timeout(PATIENCE, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_panic)) => Err(GuardError("the guard panicked".to_owned())),
        Err(_late) => Err(GuardError("the guard did not answer in time".to_owned())),
    }
}

fn failed(kind: GuardKind, phase: Phase, why: String) -> Examined {
    let code = GuardCode::GuardFailed;
    let issue = Issue { code: code.as_str().to_owned(), detail: why.clone() };
    let finding = Finding::new(kind, phase, Disposition::Failed, code, why);
    Examined::with(finding, GuardEffect::Hold(Hold { issues: vec![issue], ..Hold::default() }))
}

fn apply(matter: &mut Matter, phase: Phase, examined: Examined) {
    matter.note(examined.finding);
    match examined.effect {
        GuardEffect::None => {}
        GuardEffect::Replace { texts, tokens } => {
            matter.content.replace(phase, texts);
            matter.tokens = tokens;
        }
        GuardEffect::Hold(hold) => matter.add_hold(hold),
        GuardEffect::Consented(subjects) => matter.consented = subjects,
        GuardEffect::Pay(payment) => {
            if let Some(model) = &payment.downgraded_to {
                matter.model = Some(model.clone());
            }
            if let Some(tokens) = payment.output_tokens {
                matter.content.limit_output(tokens);
            }
            matter.payment = *payment;
        }
        GuardEffect::Unpaid(refusal) => matter.payment.refusal = Some(*refusal),
    }
}
