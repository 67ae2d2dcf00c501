//! What the person asks for, read before any model is asked: harm, and attempts to override instructions.
//!
//! Crisis is not a reason to stop; whoever is in crisis is answered in any case (see
//! [`crate::conclude`]). Trend and drift raise scrutiny when the matter is admitted.

use super::{Examined, Guard, GuardError, within_patience};
use crate::engine::Engine;
use crate::matter::{Matter, Purpose, long_text, off_thread};
use conclave_core::{Disposition, Finding, GuardCode, GuardKind, Mode, Phase};
use conclave_detect::Reading;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

pub(super) struct Interpretation;

impl Guard for Interpretation {
    fn kind(&self) -> GuardKind {
        GuardKind::Interpretation
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        async move {
            if phase == Phase::After {
                return Ok(None);
            }
            Ok(match matter.purpose {
                // Nothing of what becomes a vector is judged.
                Purpose::Embeddings => None,
                Purpose::Chat | Purpose::Moderations | Purpose::Verify => {
                    let is_binding = matter.reading.floor;
                    Some(Examined { is_binding, ..look(engine, matter).into() })
                }
                Purpose::Recipe(_) if matter.model.is_none() => None,
                // Material is data: what it asks for is no request, but it may try to give orders.
                Purpose::Recipe(_) => {
                    let texts = matter.content.texts(phase).join("\n");
                    let reading = read_words(engine, texts, phase).await?;
                    Some(injection_or_none(&reading).into())
                }
            })
        }
        .boxed()
    }
}

fn look(engine: &Engine, matter: &Matter) -> Finding {
    let reading = &matter.reading;
    // A reply made elsewhere is judged whatever was asked; what was asked stands in the decision.
    if matter.purpose != Purpose::Verify {
        if reading.is_harmful() {
            let category = reading.gravest().map_or("harm", |category| category.as_str());
            return blocked(GuardCode::Harmful, format!("The person asks for {category}."));
        }
        let blocks = engine.settings.block_injection || matter.policy().block_injection;
        // Crisis wins contact over everything that could stop a turn.
        if blocks && reading.injection.is_injection() && !reading.crisis.is_crisis() {
            return blocked(GuardCode::Injection, "It tries to override instructions.".to_owned());
        }
    }
    injection_or_none(reading)
}

fn injection_or_none(reading: &Reading) -> Finding {
    let kind = GuardKind::Interpretation;
    if !reading.injection.is_injection() {
        return Finding::passed(kind, Phase::Before);
    }
    let why = "Somebody tries to give orders to the model.";
    Finding::new(kind, Phase::Before, Disposition::Flagged, GuardCode::Injection, why)
}

fn blocked(code: GuardCode, why: String) -> Finding {
    Finding::new(GuardKind::Interpretation, Phase::Before, Disposition::Blocked, code, why)
}

/// What a text is read as, all of it: before, as a request; after, as a reply.
///
/// # Errors
/// When nobody could read it.
pub async fn read_words(
    engine: &Engine,
    text: String,
    phase: Phase,
) -> Result<Reading, GuardError> {
    let reading = off_thread::reading(&engine.detector, move |detector| {
        long_text::read_all(&text, |passage| match phase {
            Phase::Before => detector.read(passage, Mode::Normal),
            Phase::After => detector.read_reply("", passage, Mode::Normal),
        })
    });
    within_patience(async { Ok(reading.await) }.boxed()).await
}
