//! Whether words may be put before a model at all: what the person agreed to, and where they would go.
//!
//! **Invariant:** nothing here asks a model; consent is read from the records at every turn, so that a
//! withdrawal is in force with the next one.
//! **Invariant:** a person in crisis is answered whatever comes of it, in words of our own.

use crate::engine::Engine;
use crate::guards::answer;
use crate::holding::Hold;
use crate::preflight::{Examination, Stop, is_crisis};
use crate::turn::Turn;
use crate::workshop::BUILTIN;
use conclave_govern::{ConsentAsk, ConsentState, Issue, TenantPolicy};
use conclave_ports::Elsewhere;
use conclave_recipes::{Guard, Phase, Ruling, Taken, Transfer};
use serde::Serialize;

/// What a request is to those who count and permit it, where it is no recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// A conversation, whichever way it is spoken.
    #[default]
    Chat,
    /// Texts that become vectors.
    Embeddings,
    /// A reply made elsewhere.
    Verify,
    /// A text that is only read.
    Moderations,
}

impl Interface {
    /// The stable name, beside those of recipes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
            Self::Verify => "verify",
            Self::Moderations => "moderations",
        }
    }

    /// What a person must have agreed to it for.
    #[must_use]
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Embeddings => "search",
            _ => "conversation",
        }
    }
}

/// Why a turn is refused whoever asks and whatever they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The person has not agreed, not to this, or not for now.
    ConsentRequired,
    /// The person has taken their consent back.
    ConsentWithdrawn,
    /// The words may not go where they would go.
    Jurisdiction,
}

impl Refusal {
    /// The stable name; clients get it as the code of the error.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConsentRequired => "consent_required",
            Self::ConsentWithdrawn => "consent_withdrawn",
            Self::Jurisdiction => "jurisdiction",
        }
    }

    /// A sentence for the client.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::ConsentRequired => {
                "This needs the person's consent, and there is none that covers it."
            }
            Self::ConsentWithdrawn => "The person has taken their consent back.",
            Self::Jurisdiction => {
                "The person's words may not be sent to where this model runs, or nobody knows \
                 whether they may."
            }
        }
    }
}

/// What stands in the way of a turn.
enum Obstacle {
    Refused(Refusal),
    /// Nobody knows; a person must decide.
    Unclear {
        code: &'static str,
        detail: String,
    },
}

impl Obstacle {
    /// Notes which guard it came from.
    fn note_in(&self, examined: &mut Examination) {
        let (guard, taken, code, detail) = match self {
            Self::Refused(refusal @ Refusal::Jurisdiction) => {
                (Guard::Jurisdiction, Taken::Blocked, refusal.as_str(), refusal.sentence())
            }
            Self::Refused(refusal) => {
                (Guard::Consent, Taken::Blocked, refusal.as_str(), refusal.sentence())
            }
            Self::Unclear { code: code @ "guard_failed", detail } => {
                (Guard::Consent, Taken::Failed, *code, detail.as_str())
            }
            Self::Unclear { code, detail } => {
                (Guard::Jurisdiction, Taken::Held, *code, detail.as_str())
            }
        };
        examined.note((guard, Phase::Pre), taken, code, detail.to_owned());
    }
}

impl Engine {
    /// Looks whether the person agreed and where their words would go, as far as the tenant's policy
    /// asks for it; sets a stop where the turn may not go on.
    pub(crate) async fn guard_permission(
        &self,
        turn: &Turn,
        policy: &TenantPolicy,
        examined: &mut Examination,
    ) {
        if examined.stop.is_some() {
            return;
        }
        let obstacle = match self.without_consent(turn, policy, examined.interface).await {
            Some(obstacle) => obstacle,
            None => match self.without_a_way(turn, policy, examined.interface) {
                Some(obstacle) => obstacle,
                None => return,
            },
        };
        let crisis = is_crisis(examined.input.crisis);
        obstacle.note_in(examined);
        examined.stop = Some(match obstacle {
            _ if crisis => Stop::CrisisWithMeans,
            Obstacle::Refused(refusal) => Stop::Refused(refusal),
            Obstacle::Unclear { code, detail } => {
                let held = self.settings.staffed && examined.interface == Interface::Chat;
                let issue = Issue { code: code.to_owned(), detail };
                examined.hold = Some(Hold::of_nobody(issue, held));
                match (held, code) {
                    (true, _) => Stop::Held,
                    // What nobody can decide is refused, not held for ever.
                    (false, "guard_failed") => Stop::Unguarded,
                    (false, _) => Stop::Refused(Refusal::Jurisdiction),
                }
            }
        });
    }

    async fn without_consent(
        &self,
        turn: &Turn,
        policy: &TenantPolicy,
        interface: Interface,
    ) -> Option<Obstacle> {
        if !policy.requires_consent(interface.as_str()) {
            return None;
        }
        let missing = Some(Obstacle::Refused(Refusal::ConsentRequired));
        let (Some(governance), Some(user)) = (&self.governed.governance, &turn.user) else {
            return missing;
        };
        let ask = ConsentAsk {
            subject: user.as_str().to_owned(),
            scopes: vec![interface.as_str().to_owned()],
            purpose: interface.purpose().to_owned(),
            party: None,
            now_ms: self.clock.now_ms(),
        };
        match answer(async { governance.consent(&turn.tenant, ask).await }).await {
            Ok(ConsentState::Granted { .. }) => None,
            Ok(ConsentState::Withdrawn { .. }) => {
                Some(Obstacle::Refused(Refusal::ConsentWithdrawn))
            }
            Ok(_) => missing,
            Err(why) => {
                tracing::error!(%why, "consent could not be asked for: the turn does not go on");
                let detail = "Consent could not be asked for.".to_owned();
                Some(Obstacle::Unclear { code: "guard_failed", detail })
            }
        }
    }

    fn without_a_way(
        &self,
        turn: &Turn,
        policy: &TenantPolicy,
        interface: Interface,
    ) -> Option<Obstacle> {
        if policy.regions.is_empty() {
            return None;
        }
        let cheaper = policy.downgrade_model.as_deref().filter(|_| policy.auto_downgrade_enabled);
        let models: Vec<&str> = std::iter::once(turn.model.as_str()).chain(cheaper).collect();
        // Vectors are judged by nobody.
        let judges = match interface {
            Interface::Embeddings => Vec::new(),
            _ => self.panel.elsewhere(),
        };
        let country = turn.context.country.as_deref();
        match self.may_go(country, &policy.regions, &models, &judges) {
            Ruling::Allowed => None,
            Ruling::Forbidden => Some(Obstacle::Refused(Refusal::Jurisdiction)),
            Ruling::Unknown(what) => {
                let detail = format!("Where the words may go is not known: {what}.");
                Some(Obstacle::Unclear { code: "jurisdiction_unknown", detail })
            }
        }
    }

    /// Whether words of somebody may go to the tenant's regions and wherever these models and judges run,
    /// with those that stand in for them; the strictest ruling wins.
    pub(crate) fn may_go(
        &self,
        subject: Option<&str>,
        regions: &[String],
        models: &[&str],
        judges: &[Elsewhere],
    ) -> Ruling {
        let places = &self.workshop.settings.provider_regions;
        let ask = |provider: Option<Option<&str>>| {
            self.workshop.jurisdictions.rule(&Transfer { subject, regions, provider })
        };
        // What this program does itself goes nowhere.
        let elsewhere = models.iter().filter(|model| **model != BUILTIN);
        let providers = elsewhere.flat_map(|model| self.models.providers(model));
        let providers = providers.chain(judges.iter().map(|judge| judge.provider.clone()));
        let mut strictest = ask(None);
        for provider in providers {
            let ruling = ask(Some(places.get(&*provider).map(String::as_str)));
            strictest = match (strictest, ruling) {
                (Ruling::Forbidden, _) | (_, Ruling::Forbidden) => Ruling::Forbidden,
                (Ruling::Allowed, other) => other,
                (unknown, _) => unknown,
            };
        }
        strictest
    }
}
