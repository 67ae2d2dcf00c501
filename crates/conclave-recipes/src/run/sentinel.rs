//! The governance-sentinel recipe: a request or a response, read as the guards would, under the records of
//! consent and the protocols that are in force.
//!
//! **Invariant:** records that cannot be read never count as consent, nor protocols as silence.

use super::content::texts;
use super::model::NoResult;
use super::{RecipeRunner, RunningRun};
use crate::{Consent, Culture, RunContext, SentinelReading, sentinel};
use conclave_core::Phase;
use conclave_engine::{GuardError, harm_of, read_words, within_patience};
use conclave_govern::{ConsentAsk, ConsentState, CulturalAsk, CulturalFinding};
use futures_util::FutureExt;
use serde_json::Value;

impl RecipeRunner {
    /// What the sentinel says of what a run asks about.
    pub(super) async fn inspect(&self, run: &RunningRun) -> Result<Value, NoResult> {
        let input = &run.matter.content.input;
        let asked_texts = texts(&input["request"]);
        let said_texts = texts(&input["response"]);
        let request = asked_texts.join("\n");
        let response = said_texts.join("\n");
        // What nobody could read is not allowed: the run waits for a person.
        let unread = |GuardError(why): GuardError| NoResult::Unread(why);
        let finder = self.engine.personal_data.finder().map_err(unread)?;
        let count = |text: &str| {
            let found = finder.find(text).into_iter();
            found.filter(conclave_pii::is_identifying).count()
        };
        let pii_request = count(&request);
        let pii_response = count(&response);
        let read = |text, phase| read_words(&self.engine, &run.matter, text, phase);
        let asked = read(request, Phase::Before).await.map_err(unread)?;
        let said = read(response, Phase::After).await.map_err(unread)?;
        // A context that cannot be read names nobody; what it lacks is flagged by itself.
        let context = serde_json::from_value(input["request"]["context"].clone());
        let context: RunContext = context.unwrap_or_default();
        let material = asked_texts.into_iter().chain(said_texts).collect();
        let seen = SentinelReading {
            pii_request,
            pii_response,
            harm_request: asked.harm.hundredths(),
            harm_response: harm_of(&said),
            injection: asked.injection.hundredths(),
            crisis: asked.crisis.hundredths(),
            consent: self.consent_on_record(run, &context).await,
            culture: self.culture_on_record(run, &context, material).await,
        };
        Ok(sentinel(input, &seen))
    }

    async fn consent_on_record(&self, run: &RunningRun, context: &RunContext) -> Consent {
        let (Some(governance), Some(subject)) = (&self.engine.governance, context.subject()) else {
            return Consent::Unasked;
        };
        let ask = ConsentAsk {
            subject: subject.to_owned(),
            scopes: context.consent_scope.clone(),
            purpose: context.purpose.clone(),
            party: context.party.clone(),
            now_ms: self.engine.clock.now_ms(),
        };
        let tenant = &run.matter.tenant;
        let asking = async { Ok(governance.consent(tenant, ask).await?) }.boxed();
        match within_patience(asking).await {
            Ok(ConsentState::Granted { .. }) => Consent::Granted,
            Ok(ConsentState::Withdrawn { .. }) => Consent::Withdrawn,
            Ok(_) => Consent::Missing,
            Err(why) => {
                tracing::error!(run = %run.matter.id, %why, "consent could not be asked for");
                Consent::Unknown
            }
        }
    }

    async fn culture_on_record(
        &self,
        run: &RunningRun,
        context: &RunContext,
        material: Vec<String>,
    ) -> Culture {
        let Some(governance) = &self.engine.governance else { return Culture::Clear };
        let ask = CulturalAsk {
            texts: material,
            sensitivity: context.sensitivity_level,
            affiliations: context.cultural_affiliations.clone(),
            labels: context.labels.clone(),
            audience: context.audience.clone(),
            now_ms: self.engine.clock.now_ms(),
        };
        let tenant = &run.matter.tenant;
        let asking = async { Ok(governance.look(tenant, ask).await?) }.boxed();
        match within_patience(asking).await {
            Ok(CulturalFinding::Clear) => Culture::Clear,
            Ok(CulturalFinding::Flag { .. }) => Culture::Flagged,
            Ok(CulturalFinding::Hold { .. }) => Culture::Held,
            Err(why) => {
                tracing::error!(run = %run.matter.id, %why, "protocols could not be asked");
                Culture::Unknown
            }
        }
    }
}
