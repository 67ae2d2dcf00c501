//! The governance-sentinel recipe: a request or a response, read as the guards would, under the records of
//! consent and the protocols that are in force.
//!
//! **Invariant:** records that cannot be read never count as consent, nor protocols as silence.

use crate::engine::Engine;
use crate::guards::{answer, harm_of};
use crate::running::{Running, texts};
use conclave_core::Mode;
use conclave_detect::Reading;
use conclave_govern::{ConsentAsk, ConsentState, CulturalAsk, CulturalFinding};
use conclave_recipes::{Consent, Culture, Guard, Phase, RunContext, Seen, Taken, sentinel};
use serde_json::Value;

impl Engine {
    /// What the sentinel says of what a run asks about.
    pub(crate) async fn stand_guard(&self, run: &mut Running) -> Value {
        let asked_texts = texts(&run.input["request"]);
        let said_texts = texts(&run.input["response"]);
        let (request, response) = (asked_texts.join("\n"), said_texts.join("\n"));
        let count = |text: &str| {
            let found = self.workshop.finder().find(text).into_iter();
            found.filter(conclave_pii::is_identifying).count()
        };
        let (pii_request, pii_response) = (count(&request), count(&response));
        let asked = self.read_or_hold(run, request, Phase::Pre).await;
        let said = self.read_or_hold(run, response, Phase::Post).await;
        // A context that cannot be read names nobody; what it lacks is flagged by itself.
        let context = serde_json::from_value(run.input["request"]["context"].clone());
        let context: RunContext = context.unwrap_or_default();
        let material = asked_texts.into_iter().chain(said_texts).collect();
        let seen = Seen {
            pii_request,
            pii_response,
            harm_request: asked.harm.hundredths(),
            harm_response: harm_of(&said),
            injection: asked.injection.hundredths(),
            crisis: asked.crisis.hundredths(),
            consent: self.consent_on_record(run, &context).await,
            culture: self.culture_on_record(run, &context, material).await,
        };
        sentinel(&run.input, &seen)
    }

    /// What nobody could read is not allowed: the run waits for a person.
    async fn read_or_hold(&self, run: &mut Running, text: String, phase: Phase) -> Reading {
        self.read_words(text, phase).await.unwrap_or_else(|why| {
            run.found((Guard::Toxicity, phase), Taken::Failed, "guard_failed", why);
            Reading::empty(Mode::Normal)
        })
    }

    async fn consent_on_record(&self, run: &Running, context: &RunContext) -> Consent {
        let (Some(governance), Some(subject)) = (&self.governed.governance, context.subject())
        else {
            return Consent::Unasked;
        };
        let ask = ConsentAsk {
            subject: subject.to_owned(),
            scopes: context.consent_scope.clone(),
            purpose: context.purpose.clone(),
            party: context.party.clone(),
            now_ms: self.clock.now_ms(),
        };
        match answer(async { governance.consent(&run.tenant, ask).await }).await {
            Ok(ConsentState::Granted { .. }) => Consent::Granted,
            Ok(ConsentState::Withdrawn { .. }) => Consent::Withdrawn,
            Ok(_) => Consent::Missing,
            Err(why) => {
                tracing::error!(run = %run.id, %why, "consent could not be asked for");
                Consent::Unknown
            }
        }
    }

    async fn culture_on_record(
        &self,
        run: &Running,
        context: &RunContext,
        material: Vec<String>,
    ) -> Culture {
        let Some(governance) = &self.governed.governance else { return Culture::Clear };
        let ask = CulturalAsk {
            texts: material,
            sensitivity: context.sensitivity_level,
            affiliations: context.cultural_affiliations.clone(),
            labels: context.labels.clone(),
            audience: context.audience.clone(),
            now_ms: self.clock.now_ms(),
        };
        match answer(async { governance.look(&run.tenant, ask).await }).await {
            Ok(CulturalFinding::Clear) => Culture::Clear,
            Ok(CulturalFinding::Flag { .. }) => Culture::Flagged,
            Ok(CulturalFinding::Hold { .. }) => Culture::Held,
            Err(why) => {
                tracing::error!(run = %run.id, %why, "protocols could not be asked");
                Culture::Unknown
            }
        }
    }
}
