//! Whether the people whose words would be used have agreed.
//!
//! **Invariant:** consent is read from the records every time, so that a withdrawal is in force with the
//! next request.

use super::{Examined, Guard, GuardEffect, GuardError};
use crate::engine::Engine;
use crate::matter::Matter;
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Phase};
use conclave_govern::{ConsentAsk, ConsentState};
use conclave_ports::Governance;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

pub(super) struct Consent;

impl Guard for Consent {
    fn kind(&self) -> GuardKind {
        GuardKind::Consent
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        async move {
            let question = &matter.consent;
            if phase == Phase::After || !question.is_required {
                return Ok(None);
            }
            if question.scopes.is_empty() {
                return Ok(Some(missing("No scope of consent is stated.")));
            }
            if question.subjects.is_empty() {
                return Ok(Some(missing("Nobody is named who agreed.")));
            }
            match &engine.governance {
                Some(governance) => ask_records(engine, &**governance, matter).await.map(Some),
                None if question.stated == Some(false) => {
                    Ok(Some(missing("The content comes without consent.")))
                }
                None if question.passes_unverified => Ok(Some(
                    Finding::new(
                        GuardKind::Consent,
                        Phase::Before,
                        Disposition::Flagged,
                        GuardCode::ConsentUnverified,
                        "Consent is stated, not checked.",
                    )
                    .into(),
                )),
                None => Ok(Some(missing("Nobody keeps records of consent."))),
            }
        }
        .boxed()
    }
}

async fn ask_records(
    engine: &Engine,
    governance: &dyn Governance,
    matter: &Matter,
) -> Result<Examined, GuardError> {
    let question = &matter.consent;
    let mut consented = Vec::new();
    for subject in &question.subjects {
        let ask = ConsentAsk {
            subject: subject.clone(),
            scopes: question.scopes.clone(),
            purpose: question.purpose.clone(),
            party: question.party.clone(),
            now_ms: engine.clock.now_ms(),
        };
        match governance.consent(&matter.tenant, ask).await? {
            ConsentState::Granted { .. } => consented.push(subject.clone()),
            ConsentState::Withdrawn { .. } => {
                let why = "The person has withdrawn their consent.";
                return Ok(blocked(GuardCode::ConsentWithdrawn, why.to_owned()));
            }
            // An intake is where consent is first written down.
            ConsentState::Missing if question.stated == Some(true) => {}
            ConsentState::Missing => return Ok(missing("Nobody has agreed to this.")),
            ConsentState::Expired { .. } => {
                return Ok(missing("The person agreed for a time that is over."));
            }
            ConsentState::NotCovered { missing } => {
                let why = format!("There is consent, but not to this: {}.", missing.join(", "));
                return Ok(blocked(GuardCode::ConsentRequired, why));
            }
        }
    }
    let finding = Finding::passed(GuardKind::Consent, Phase::Before);
    Ok(Examined::with(finding, GuardEffect::Consented(consented)))
}

fn missing(why: &str) -> Examined {
    blocked(GuardCode::ConsentRequired, why.to_owned())
}

fn blocked(code: GuardCode, why: String) -> Examined {
    Finding::new(GuardKind::Consent, Phase::Before, Disposition::Blocked, code, why).into()
}
