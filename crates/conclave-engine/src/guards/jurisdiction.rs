//! Where words may go: the person's country, the tenant's regions, and where models and verifiers run.

use super::{Examined, Guard, GuardEffect, GuardError};
use crate::engine::Engine;
use crate::matter::{Hold, Matter, Purpose};
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Phase};
use conclave_govern::{Issue, JurisdictionRuling, Jurisdictions, Transfer};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model that is this program itself: what it is told goes nowhere.
pub const BUILTIN_MODEL: &str = "builtin";

/// Which rules there are, and where providers run.
pub struct Places {
    /// The rules.
    pub rules: Jurisdictions,
    /// Where providers run, ISO 3166, by name.
    pub provider_regions: BTreeMap<String, String>,
}

pub(super) struct Jurisdiction;

impl Guard for Jurisdiction {
    fn kind(&self) -> GuardKind {
        GuardKind::Jurisdiction
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        let acts = phase == Phase::Before && governs(matter);
        ready(Ok(acts.then(|| look(engine, matter)))).boxed()
    }
}

/// Whether anybody asks where the words of a matter may go.
pub(super) fn governs(matter: &Matter) -> bool {
    match matter.purpose {
        Purpose::Verify | Purpose::Moderations => false,
        Purpose::Chat | Purpose::Embeddings => !matter.policy().regions.is_empty(),
        Purpose::Recipe(_) => {
            matter.rule(GuardKind::Jurisdiction).is_some() || !matter.policy().regions.is_empty()
        }
    }
}

fn look(engine: &Engine, matter: &Matter) -> Examined {
    let kind = GuardKind::Jurisdiction;
    let policy = matter.policy();
    // Under a budget the cheaper model may be asked, so that it must be allowed from the beginning.
    let cheaper = policy.downgrade_model.as_deref().filter(|_| policy.auto_downgrade_enabled);
    let cheaper = cheaper.filter(|_| !matter.purpose.is_recipe() && matter.model.is_some());
    let models = matter.model.as_deref().into_iter().chain(matter.fallback.as_deref());
    let models: Vec<&str> = models.chain(cheaper).collect();
    match engine.may_go(matter, &models) {
        JurisdictionRuling::Allowed => Finding::passed(kind, Phase::Before).into(),
        JurisdictionRuling::Forbidden => Finding::new(
            kind,
            Phase::Before,
            Disposition::Blocked,
            GuardCode::Jurisdiction,
            "A rule forbids that these words go there.",
        )
        .into(),
        JurisdictionRuling::Unknown(what) => {
            let code = GuardCode::JurisdictionUnknown;
            let detail = format!("Where the words may go is not known: {what}.");
            if matter.is_approved(Phase::Before, code, &[]) {
                let flagged = Disposition::Flagged;
                return Finding::new(kind, Phase::Before, flagged, code, detail).into();
            }
            let issue = Issue { code: code.as_str().to_owned(), detail: detail.clone() };
            let finding = Finding::new(kind, Phase::Before, Disposition::Held, code, detail);
            let hold = Hold { issues: vec![issue], ..Hold::default() };
            Examined::with(finding, GuardEffect::Hold(hold))
        }
    }
}

impl Engine {
    /// Whether the words of a matter may go to its regions and wherever these models run, with those that
    /// stand in for them and the verifiers that would be shown the result; the strictest ruling wins.
    pub(super) fn may_go(&self, matter: &Matter, models: &[&str]) -> JurisdictionRuling {
        let subject = matter.context.country.as_deref();
        let ask = |provider: Option<Option<&str>>| {
            self.places.rules.rule(&Transfer { subject, regions: &matter.regions, provider })
        };
        let elsewhere = models.iter().filter(|model| **model != BUILTIN_MODEL);
        let mut providers: Vec<Arc<str>> =
            elsewhere.flat_map(|model| self.models.providers(model)).collect();
        if matter.is_judged_elsewhere {
            providers.extend(self.panel.elsewhere().into_iter().map(|judge| judge.provider));
        }
        let mut strictest = ask(None);
        for provider in providers {
            let place = self.places.provider_regions.get(&*provider).map(String::as_str);
            strictest = strictest.stricter(ask(Some(place)));
        }
        strictest
    }
}
